# ruff: noqa: E501 - a pattern is read better in one piece
"""Output of tools in blocks -> readings: nvidia-smi, nvlink, ibstat, dcgmi, nccl-tests, topology, counters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import ahocorasick

from clusterwright.health import Evidence, Where
from clusterwright.probes.envelope import normal_pci, pci_of_bus, where
from clusterwright.probes.patterns import groups, pattern
from clusterwright.probes.training import WORDS as PACE_WORDS
from clusterwright.probes.training import paces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusterwright.probes.reading import Line

LARGE_BYTES = 64 << 20
"""Messages from this size show the bandwidth of the path, smaller ones its latency."""

HEADERS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "gpu",
        ("gpu 0", "gpu "),
        r"^\s*GPU (?P<accelerator>\d+|[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)(?:: (?P<model>.*?)(?: \(UUID.*)?)?\s*$",
    ),
    ("attached", ("attached gpus",), r"^Attached GPUs\s*: (?P<attached>\d+)\s*$"),
    (
        "section",
        ("remapped rows", "volatile", "aggregate"),
        r"^\s*(?P<section>Remapped Rows|Volatile|Aggregate)(?: ECC.*)?\s*:?\s*$",
    ),
    ("port", ("ca '", "infiniband device"), r"(?:^\s*CA|Infiniband device) '(?P<port>[\w.-]+)'"),
    ("port", ("hca_id",), r"^\s*hca_id:\s*(?P<port>[\w.-]+)"),
    (
        "columns",
        ("index,", ", index", "bus_id"),
        r"^\s*(?P<columns>(?:[a-z_]+(?:\.[a-z_.]+)?(?: \[[^\]]+\])?, ?)+[a-z_]+(?:\.[a-z_.]+)?(?: \[[^\]]+\])?)\s*$",
    ),
)
READINGS = (
    ("remapped_rows.pending", ("pending",), r"^\s*Pending\s*:\s*(?P<value>Yes|No)\s*$", "nvidia-smi -q"),
    ("remapped_rows.failure", ("remapping failure",), r"^\s*Remapping Failure Occurred\s*:\s*(?P<value>Yes|No)", "nvidia-smi -q"),
    ("ecc.sram_threshold_exceeded", ("sram threshold",), r"SRAM Threshold Exceeded\s*:\s*(?P<value>Yes|No)", "nvidia-smi -q"),
    ("ecc.{section}.{what}_uncorrectable", ("uncorrectable",), r"^\s*(?P<what>SRAM|DRAM) Uncorrectable\S*(?: Parity| SEC-DED)?\s*:\s*(?P<value>\d+)", "nvidia-smi -q"),
    ("throttle.{what}", ("active",), r"^\s*(?P<what>Idle|SW Power Cap|HW Slowdown|HW Thermal Slowdown|HW Power Brake Slowdown|SW Thermal Slowdown|Sync Boost|Applications Clocks Setting|Display Clock Setting)\s*:\s*(?P<value>Active|Not Active)\s*$", "nvidia-smi -q"),
    ("pcie.width_max", ("max  ",), r"^\s*Max\s+: (?P<value>\d+)x\s*$", "nvidia-smi -q"),
    ("pcie.width", ("current  ",), r"^\s*Current\s+: (?P<value>\d+)x\s*$", "nvidia-smi -q"),
    ("temperature.current", ("current temp",), r"^\s*GPU Current Temp\s+: (?P<value>\d+) C", "nvidia-smi -q"),
    ("temperature.slowdown", ("slowdown temp",), r"^\s*GPU Slowdown Temp\s+: (?P<value>\d+) C", "nvidia-smi -q"),
    ("remapped_rows.failure", ("dcgm_fi_dev_row_remap_failure{",), r"^DCGM_FI_DEV_ROW_REMAP_FAILURE\{[^}]*\} (?P<value>\d+)", "dcgm exporter"),
    ("remapped_rows.pending", ("dcgm_fi_dev_row_remap_pending{",), r"^DCGM_FI_DEV_ROW_REMAP_PENDING\{[^}]*\} (?P<value>\d+)", "dcgm exporter"),
    ("ecc.volatile.uncorrectable", ("dcgm_fi_dev_ecc_dbe_vol_total{",), r"^DCGM_FI_DEV_ECC_DBE_VOL_TOTAL\{[^}]*\} (?P<value>\d+)", "dcgm exporter"),
    ("nvlink.state", ("link ",), r"^\s*Link (?P<link>\d+):\s*<?(?P<value>inactive|[\d.]+ GB/s)>?\s*$", "nvidia-smi nvlink"),
    ("nvlink.{what}_errors", ("errors:", "error:"), r"^\s*Link (?P<link>\d+): (?P<what>Replay|Recovery|CRC)(?: \w+)? Errors?\s*:\s*(?P<value>\d+)", "nvidia-smi nvlink -e"),
    ("ib.state", ("state:",), r"^\s*state:\s*(?:\d+: )?(?P<value>Active|Down|Init\w*|Armed)\s*$", "ibstat"),
    ("ib.physical_state", ("phys",), r"^\s*phys(?:ical)? state:\s*(?:\d+: )?(?P<value>\w+)\s*$", "ibstat"),
    ("ib.state", ("port_",), r"^\s*state:\s*PORT_(?P<value>ACTIVE|DOWN|INIT\w*|ARMED)\b", "ibv_devinfo"),
    ("ib.rate", ("rate:",), r"^\s*rate:\s*(?P<value>\d+)(?: Gb/sec.*)?\s*$", "ibstat"),
    ("ecc.volatile.uncorrectable", (" off |", " on |"), r"^\|.*\b(?P<accelerator>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d) (?:Off|On)\s*\|\s*(?P<value>\d+)\s*\|", "nvidia-smi"),
    ("gpu.index", (" off |", " on |"), r"^\|\s+(?P<value>\d+)\s+\S.*?\b(?P<accelerator>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d) (?:Off|On)", "nvidia-smi"),
    ("gpu.index", ("init complete",), r"nvmlDev (?P<value>\d+) busId (?P<bus>[0-9a-f]+) .*Init COMPLETE", "nccl log"),
    ("rocm.row", ("gpu[",), r"^\s*GPU\[(?P<accelerator>\d+)\]\s*:\s*(?P<value>\S.*)", "rocm-smi"),
    ("watchdog.rank", ("watchdog caught",), r"Rank (?P<rank>\d+)\] Watchdog caught .*SeqNum=(?P<value>\d+)", "pytorch watchdog"),
    ("dcgm.nvlink_down", ("nvlink link",), r"GPU (?P<accelerator>\d+)'s NvLink link (?P<link>\d+) is currently down", "dcgmi health"),
    ("dcgm.overall", ("overall health",), r"Overall Health\s*\|\s*(?P<value>\w+)", "dcgmi health"),
    ("dcgm.diag", ("pass",), r"^\|.*\|\s*(?P<value>Pass)\b", "dcgmi diag"),
    ("topology.row", ("gpu",), r"^\s*GPU(?P<accelerator>\d+)\s+(?P<value>(?:(?:X|NV\d+|SYS|NODE|PHB|PXB|PIX|XGMI)\s+)+)", "nvidia-smi topo"),
    ("smi.row", ("mib /",), r"^\|.*\d+W / +\d+W \|.*MiB / +\d+MiB.*\|", "nvidia-smi"),
    ("rocm.row", ("c ",), r"^\s*(?P<accelerator>\d+)\s+\[0x[0-9a-f]+ : 0x[0-9a-f]+\]\s+(?P<value>[\d.]+)", "rocm-smi"),
    ("hl.row", ("hl-",), r"^\|\s*\d+\s+HL-\d+", "hl-smi"),
    ("fabricmanager.info", ("[info] [tid",), r"\[INFO\] \[tid \d+\]", "fabric manager log"),
    ("node.healthy", ("| healthy",), r"^\s*(?P<node>\S+) \| Healthy", "node health check"),
    ("ras.launched", ("launched up to operation", "elapsed time per iteration", "have not launched"), r"^\s*(?P<ranks>\d+) ranks? ha(?:s|ve) (?:launched up to operation (?P<value>\d+)|not launched)", "nccl ras"),
    ("ras.listed", ("managed by process",), r"Rank (?P<rank>\d+) -- GPU (?P<accelerator>\d+) managed by process \d+ on node (?P<node>\S+)", "nccl ras"),
    ("job.world", ("world size", "world_size"), r"\bworld[ _]size[ :=]+(?P<value>\d+)", ""),
    ("nccl.init", ("init complete", "net/ib : using", "connected all"), r"Init COMPLETE|NET/IB : Using|Connected all (?:rings|trees)", "nccl log"),
    ("training.step", ("loss",), r"(?:step|iter\w*|epoch)\b.*\bloss\b\S*\s*[:=]?\s*(?P<value>\d[\d.eE+-]*)", "training log"),
)  # fmt: skip
CSV_NAMES = {
    "hw_slowdown": "throttle.hw_slowdown", "hw_thermal_slowdown": "throttle.hw_thermal_slowdown",
    "hw_power_brake_slowdown": "throttle.hw_power_brake_slowdown", "sw_thermal_slowdown": "throttle.sw_thermal_slowdown",
    "sw_power_cap": "throttle.sw_power_cap", "remapped_rows.pending": "remapped_rows.pending", "remapped_rows.failure": "remapped_rows.failure",
    "ecc.errors.uncorrected.volatile.total": "ecc.volatile.uncorrectable", "ecc.errors.uncorrected.volatile.sram": "ecc.volatile.uncorrectable",
    "ecc.errors.uncorrected.aggregate.sram": "ecc.aggregate.sram_uncorrectable", "temperature.gpu": "temperature.gpu",
}  # fmt: skip
"""Columns of ``nvidia-smi --query-gpu`` and the readings that they are."""
CSV_PLACES = ("index", "pci.bus_id", "gpu_bus_id")
"""Columns that name the accelerator."""
COUNTER = r"^\s*(?P<name>[A-Za-z][\w.-]*?)\s*[:=]\s*\.*(?P<value>\d+)\s*$"
PERF_ROW = r"^\s*(?:\d+: *)?(?P<size>\d+)\s+\d+\s+(?:u?int\d+|half|float|double|bfloat16|fp8\w*|f8\w+)\s+(?:sum|prod|min|max|avg|none|mulsum)\s+-?\d+\s+[\d.]+\s+[\d.]+\s+(?P<value>[\d.]+)\s+(?P<wrong>\S+)"
PERF_WORDS = (" float ", " half ", " bfloat16 ", " int8 ", " uint8 ", " double ", " fp8", " int32 ")
WORDS = (
    "dcgm_fi_dev_row_remap", "dcgm_fi_dev_ecc_dbe_vol_total{",
    *(f"{blank}link {number}" for blank in " \t" for number in range(10)),
    "attached gpus", ": 16x", ": 8x", ": 4x", ": 1x", "current temp", "slowdown temp", "gpu 0", "gpu 1", "gpu 2", "gpu 3", "gpu 4", "gpu 5", "gpu 6", "gpu 7", "gpu 8", "gpu 9", "remapped rows", "volatile", "aggregate", "ca '",
    "infiniband device", "pending  ", "remapping failure", "sram ", "dram uncorrectable", ": active", ": not active",
    "state: ", "state:\t", "rate: ", "port_", " off |", " on |", "gpu[", "index,", ", index", "bus_id", ", active", ", not active", " mib, ", " mhz, ", "nvlink link", "overall health", "| pass", "gpu0 ", "gpu1 ", "gpu2 ", "gpu3 ", "gpu4 ", "gpu5 ", "gpu6 ", "gpu7 ",
    "gpu0\t", "gpu1\t", "gpu2\t", "gpu3\t", "gpu4\t", "gpu5\t", "gpu6\t", "gpu7\t", "mib /", " : 0x", "hl-", "[info] [tid", "| healthy", "launched up to operation",
    "not launched", "managed by process", "init complete", "net/ib : using", "connected all", *PERF_WORDS,
)  # fmt: skip
"""Words of the prefilter: rarer than those of single readings, and each of their lines holds one."""


def _automaton() -> Any:  # noqa: ANN401 - ahocorasick has no types
    """From the words of headings, readings and rows to what they may mean."""
    wanting: dict[str, list[int]] = {}
    lists = (*(words for _, words, _ in HEADERS), *(words for _, words, _, _ in READINGS), PACE_WORDS, PERF_WORDS)
    for place, words in enumerate(lists):
        for word in words:
            wanting.setdefault(word, []).append(place)
    automaton = ahocorasick.Automaton()
    for word, places in wanting.items():
        automaton.add_word(word, tuple(places))
    automaton.make_automaton()
    return automaton


_FIRST_READING = len(HEADERS)
_PACE = len(HEADERS) + len(READINGS)
_PERF = _PACE + 1


_WANTING = _automaton()


class Reading(NamedTuple):
    """What one line gives, before anyone asks for its place."""

    name: str
    value: str
    tool: str
    found: dict[str, str]


@dataclass(slots=True)
class TableProbe:
    """Keeps the last header of one file, so that a reading knows its accelerator, section and port."""

    counters: frozenset[str]
    """Names of the counters to look for, lower case."""
    state: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    """Columns of the query that is being read."""
    place: int = 0
    """Where in `columns` the accelerator is named."""
    heads: int = 0
    """Headings read so far."""
    listed: int = 0
    """Accelerators that the listing has named so far."""

    def words(self) -> tuple[str, ...]:
        """The words whose lines this probe wants to see."""
        return WORDS + tuple(self.counters)

    def read(self, line: Line, lower: bytes) -> Iterator[Reading]:
        """The readings of one line, given also in lower case."""
        if self.columns:
            yield from self._csv(line)
        for place in sorted({place for _, places in _WANTING.iter(lower.decode("latin-1")) for place in places}):
            yield from self._at(place, line, lower)
        if line.raw[-1:].isdigit() and (match := pattern(COUNTER).search(line.raw)):
            found = groups(match)
            if found["name"].lower() in self.counters:
                yield self._reading(found["name"].lower(), found, "counters")

    def _at(self, place: int, line: Line, lower: bytes) -> Iterator[Reading]:
        """What one of the forms that the words of a line suggest gives."""
        if place == _PACE:
            for name, value in paces(line.raw, lower):
                yield Reading(name, f"{value:.6g}", "training log", {})
        elif place == _PERF:
            if match := pattern(PERF_ROW).search(line.raw):
                yield from self._perf(groups(match))
        elif place < _FIRST_READING:
            name, _, text = HEADERS[place]
            if match := pattern(text).search(line.raw):
                yield from self._head(name, groups(match))
        else:
            name, _, text, tool = READINGS[place - _FIRST_READING]
            if match := pattern(text).search(line.raw):
                yield self._reading(name, groups(match), tool)

    def _head(self, name: str, found: dict[str, str]) -> Iterator[Reading]:
        self.heads += 1
        if name == "columns":
            self.columns = tuple(column.strip().partition(" ")[0] for column in found["columns"].split(","))
            self.place = next((self.columns.index(key) for key in CSV_PLACES if key in self.columns), 0)
        else:
            self.state |= found
        if name == "gpu" and "attached" in self.state and ":" in found["accelerator"]:
            yield Reading("gpu.order", f"{self.listed}/{self.state['attached']}", "nvidia-smi -q", found)
            self.listed += 1

    def _csv(self, line: Line) -> Iterator[Reading]:
        """A row of ``nvidia-smi --query-gpu``, by the header above it."""
        if line.raw.count(b",") != len(self.columns) - 1:
            return
        cells = [cell.strip() for cell in line.raw.decode("utf-8", "replace").split(",")]
        if not (cells[self.place].isdigit() or ":" in cells[self.place]):
            return
        row = dict(zip(self.columns, cells, strict=True))
        bus = row.get("pci.bus_id") or row.get("gpu_bus_id")
        if bus and row.get("index", "").isdigit():
            yield Reading("gpu.index", row["index"], "nvidia-smi csv", {"accelerator": bus})
        for column, cell in row.items():
            name = CSV_NAMES.get(column.rpartition("reasons.")[2] if "reasons." in column else column)
            if name is not None:
                yield Reading(name, cell.lower(), "nvidia-smi csv", {"value": cell, "accelerator": cells[self.place]})

    def _perf(self, found: dict[str, str]) -> Iterator[Reading]:
        if int(found["size"]) >= LARGE_BYTES:
            yield self._reading("nccl_tests.busbw", found, "nccl-tests")
        if found["wrong"].isdigit():
            yield self._reading("nccl_tests.wrong", {"value": found["wrong"]}, "nccl-tests")

    def _reading(self, name: str, found: dict[str, str], tool: str) -> Reading:
        parts = {"section": self.state.get("section", "volatile"), **found}
        filled = name.format(**{key: value.lower().replace(" ", "_") for key, value in parts.items()})
        if filled.startswith("ecc.volatile"):
            filled = "ecc.volatile.uncorrectable"
        value = (found.get("value") or found.get("ranks") or "1").strip().lower()
        if tool == "dcgm exporter" and filled.startswith("remapped"):
            value = "no" if value == "0" else "yes"
        if filled.startswith("ib.") and value.startswith("init"):
            value = "initializing"
        return Reading(filled, value, tool, found)

    def evidence(self, line: Line, reading: Reading) -> Evidence:
        """The line of a reading, with its place."""
        found, name = reading.found, reading.name
        place = where(line.raw).model_dump()
        if name.startswith(("remapped", "ecc", "throttle", "nvlink", "pcie.", "temperature.")):
            place["accelerator"] = normal_pci(self.state.get("accelerator")) or place["accelerator"]
        if name.startswith(("ib.", "link", "symbol", "port")):
            place["port"] = self.state.get("port")
        if "link" in found:
            place["port"] = f"link {found['link']}"
        place |= {key: value for key, value in found.items() if key in {"node", "accelerator", "rank"}}
        place["accelerator"] = pci_of_bus(found["bus"]) if "bus" in found else normal_pci(place["accelerator"])
        return Evidence(
            file=line.file, line=line.number, text=text_of(line.raw), name=name, value=reading.value,
            where=Where(**place),
        )  # fmt: skip


def text_of(raw: bytes) -> str:
    """The text of a line, cut to what a report can show."""
    text = raw[:1600].decode("utf-8", "replace").strip()[:400]
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)
