# ruff: noqa: E501 - a pattern is read better in one piece
"""Where and when a line was written: time, host, rank, PCI address, port, peer."""

from __future__ import annotations

import calendar
import functools
from typing import TYPE_CHECKING

from clusterwright.health import Where
from clusterwright.probes.patterns import groups, pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

MONTHS = {
    name: index + 1
    for index, name in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))
}

NOT_HOSTS = frozenset({
    "kernel", "error", "warning", "info", "runtimeerror", "oserror", "nvrm", "reason", "torch", "lustreerror", "lnet", "lustre",
    "slurmstepd", "slurmctld", "slurmd", "srun", "systemd", "nvidia-smi", "warn", "gpu", "e", "w", "i", "debug", "fatal",
})  # fmt: skip

HOSTS = (
    r"^\s*(?:\S+ )?(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) (?P<node>[A-Za-z0-9][\w.-]*) [\w.()/-]+(?:\[\d+\])?:",
    r"(?:^|[\s\]>])(?P<node>[A-Za-z0-9][\w.-]*):\d+:\d+ \[\d+\]",
    r"^\s*(?:\[[^\]]*\] )?(?P<node>[A-Za-z][\w.-]*) kernel:",
    r"^\s*(?P<node>[A-Za-z][\w.-]*\d[\w.-]*) \| ",
    r"^\s*(?P<node>[A-Za-z][\w.-]*-\d+|node\d+): ",
    r"[ ,(]node[ =:](?P<node>[A-Za-z][\w.-]*\d[\w.-]*)",
    r"(?:error|Node failure on|JOB \d+ ON|host(?:name)?)\s*[:=]?\s*(?P<node>[A-Za-z][\w]*-?\d+)\b",
    r"\d\d:\d\d:\d\d (?P<node>[A-Za-z][\w]*-?\d+)$",
    r"[{,]Hostname=\"(?P<node>[^\"]+)\"",
    r"^\s*(?:\[[^\]]*\]:)?\s*host\s*: (?P<node>[A-Za-z][\w.-]*)",
    r"(?:NodeName|hostname|Host)[=:] ?(?P<node>[A-Za-z][\w.-]*)",
    r"^\s*(?P<node>[A-Za-z]+-[\w-]*\d+)\s+(?:State=|down|drain|idle)",
)
PEERS = (
    r"(?:peer|from|to|with|server|addr(?:ess)?|node)[ =:(\[]*(?P<peer>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})",
    r"(?P<peer>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:<\d+>|@o2ib|@tcp|:\d{2,5}\b)",
    r"connect to [(\[]?(?P<peer>[A-Za-z][\w.-]*\d)[,:\]]",
)
RANKS = (
    r"\brank\s*: (?P<rank>\d+) \(local_rank",
    r"\[(?:default)?rank ?(?P<rank>\d+)\]",
    r"\bRank[ :](?P<rank>\d+)\b",
    r"local_rank: ?(?P<rank>\d+)",
    r"\brank[ =:](?P<rank>\d+)\b",
)
ACCELERATORS = (
    r"[{,]pci_bus_id=\"(?P<accelerator>[0-9A-Fa-f:.]+)\"",
    r"[{,]gpu=\"(?P<accelerator>\d+)\"",
    r"PCI:(?P<accelerator>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?|[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)",
    r"(?:GPU|amdgpu|nvidia|habanalabs)[ :-]+(?:PCI:)?(?P<accelerator>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])",
    r"\bGPU at (?:PCI:)?(?P<accelerator>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)",
    r"\bGPU(?:s|[ _-]?id|[ _-]?index)?[ :#]*(?P<accelerator>\d{1,2})\b",
    r"\b(?:CUDA device|device|/dev/nvidia|card|hl)[ :#]?(?P<accelerator>\d{1,2})\b",
)
PORTS = (
    r"(?P<port>mlx5_(?:ib|bond_?|)\d+)(?::\d+)?(?:[\s:'\")/,.]|$)",
    r"(?:mlx5_core|pcieport|bnxt_en|irdma|ice|i40e|ionic) (?P<port>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])",
    r"(?P<port>nvidia-nvswitch\d+)",
)


GATES = (b"gpu", b"pci", b"device", b"nvidia", b"card", b"hl", b"amdgpu")
"""One of these stands in every line that names an accelerator."""
PORT_GATES = (b"mlx5", b"pcieport", b"bnxt_en", b"irdma", b"ice ", b"i40e", b"ionic", b"nvswitch")


@functools.lru_cache(maxsize=64)
def where(raw: bytes) -> Where:
    """The places that a line names.

    >>> where(b"node-3:12:34 [1] NCCL WARN Connect to 10.0.0.7<555> failed").named()
    {'node': 'node-3', 'peer': '10.0.0.7'}
    """
    lower = raw.lower()
    node = _first(HOSTS, raw, "node")
    if node is not None and (node.lower() in NOT_HOSTS or node.startswith("PCI")):
        node = None
    return Where(
        node=node,
        accelerator=normal_pci(_first(ACCELERATORS, raw, "accelerator")) if _any(GATES, lower) else None,
        port=_first(PORTS, raw, "port") if _any(PORT_GATES, lower) else None,
        rank=_first(RANKS, raw, "rank") if b"rank" in lower else None,
        peer=_first(PEERS, raw, "peer") if raw.count(b".") >= 3 or b"connect to" in lower else None,  # noqa: PLR2004
    )


def _any(words: tuple[bytes, ...], lower: bytes) -> bool:
    return any(word in lower for word in words)


def _first(patterns: Iterable[str], raw: bytes, key: str) -> str | None:
    for text in patterns:
        match = pattern(text).search(raw)
        if match is not None:
            return groups(match).get(key)
    return None


def normal_pci(address: str | None) -> str | None:
    """One spelling of a PCI address; anything else is left as it is.

    >>> normal_pci("00000000:3B:00"), normal_pci("3b:00.0"), normal_pci("5"), normal_pci("0008:01:00.0")
    ('0000:3b:00.0', '0000:3b:00.0', '5', '0008:01:00.0')
    """
    if address is None or ":" not in address:
        return address
    parts = address.lower().partition(".")[0].split(":")
    domain = int(parts[0], 16) if len(parts) == 3 else 0  # noqa: PLR2004 - domain, bus, device
    return f"{domain:04x}:{parts[-2]}:{parts[-1]}.0"


def pci_of_bus(bus: str) -> str | None:
    """The PCI address of NCCL's busId.

    >>> pci_of_bus("59000"), pci_of_bus("801000")
    ('0000:59:00.0', '0008:01:00.0')
    """
    digits = bus.removeprefix("0x").rjust(9, "0")
    return normal_pci(f"{digits[:-5] or '0'}:{digits[-5:-3]}:{digits[-3:-1]}.0")


BLOCKS = (
    r"^Name:\s+(?P<node>[a-z0-9][\w.-]*\d)\s*$",
    r"^=\s+RANK (?P<rank>\d+) PID \d+ RUNNING AT (?P<node>[\w.-]+)",
    r"^\s*NodeName=(?P<node>[A-Za-z][\w.-]*)(?:\s|$)",
    r"^Settings for (?P<port>[\w.-]+):\s*$",
)
"""Lines that say of what the indented lines under them speak."""
BLOCK_WORDS = ("nodename=", "settings for ", "name:  ", " running at ")


def block(raw: bytes) -> Where | None:
    """The place that a heading gives to the lines under it.

    >>> block(b"Settings for eth2:").named()
    {'port': 'eth2'}
    """
    for text in BLOCKS:
        if (match := pattern(text).search(raw)) is not None:
            return Where(**groups(match))
    return None


def time_of(raw: bytes) -> tuple[float | None, str]:
    """Seconds and their clock: ``utc``, ``year`` (no year given) or ``boot``; (None, "") without a time.

    A time without a zone is taken as UTC.

    >>> time_of(b"[ 1843.308145] NVRM: x")
    (1843.308145, 'boot')
    >>> time_of(b"2026-01-02T00:00:10.5Z x")
    (1767312010.5, 'utc')
    >>> time_of(b"[rank0]:[E102 00:00:10.250000 ProcessGroupNCCL.cpp:607] x")
    (86410.25, 'year')
    """
    match = pattern(
        r"(\d{4})[-/](\d\d)[-/](\d\d)[T_ ](\d\d):(\d\d):(\d\d)([.,]\d+)?(?: ?([+-])(\d\d):?(\d\d)(?:\D|$))?"
    ).search(raw)
    if match is not None:
        year, month, day, hour, minute, second = (int(match.group(i)) for i in range(1, 7))
        offset = 0
        if match.group(8) is not None:
            offset = (int(match.group(9)) * 60 + int(match.group(10))) * (60 if match.group(8) == b"+" else -60)
        seconds = calendar.timegm((year, month, day, hour, minute, second)) - offset
        return seconds + _fraction(match.group(7)), "utc"
    match = pattern(
        r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) +(\d{1,2}) (?:(\d{4}) )?(\d\d):(\d\d):(\d\d)(\.\d+)?(?: (\d{4}))?"
    ).search(raw)
    if match is not None:
        year = match.group(3) or match.group(8)
        month, day = MONTHS[match.group(1).decode().lower()], int(match.group(2))
        seconds = calendar.timegm((int(year) if year else 1970, month, day, *(int(match.group(i)) for i in (4, 5, 6))))
        return seconds + _fraction(match.group(7)), "utc" if year else "year"
    match = pattern(r"(?:^|[\[ ])[EWIF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)").search(raw)
    if match is not None and 1 <= int(match.group(1)) <= 12:  # noqa: PLR2004 - months
        seconds = calendar.timegm((1970, *(int(match.group(i)) for i in range(1, 6))))
        return seconds + _fraction(match.group(6)), "year"
    uptime = uptime_of(raw)
    return (uptime, "boot") if uptime is not None else (None, "")


def uptime_of(raw: bytes) -> float | None:
    """Seconds since boot, as the kernel prints them, also behind the time of a journal.

    >>> uptime_of(b"Jan  5 04:10:00 gpu-a7 kernel: [  12.500000] x")
    12.5
    """
    match = pattern(r"(?:^|kernel: )\s*(?:<\d+>)?\[ *(\d+\.\d{3,6})\]").search(raw)
    return float(match.group(1)) if match is not None else None


def _fraction(text: bytes | None) -> float:
    return float(b"0." + text[1:]) if text else 0.0
