"""Lines and readings -> observations: which fault, where, since when, on which lines."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ahocorasick

from clusterwright.checks.joining import Job
from clusterwright.health import Evidence, Where
from clusterwright.knowledge import Xid
from clusterwright.probes.envelope import BLOCK_WORDS, block, normal_pci, time_of, where
from clusterwright.probes.job import WORDS_ALONE as JOB_WORDS
from clusterwright.probes.job import local_rank
from clusterwright.probes.labels import Labels, named
from clusterwright.probes.nvidia import WORDS as XID_WORDS
from clusterwright.probes.nvidia import xid_line
from clusterwright.probes.patterns import groups, pattern
from clusterwright.probes.tables import Reading, TableProbe, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.knowledge import Fault, Judgement, Knowledge, Threshold
    from clusterwright.probes.reading import Line
    from clusterwright.probes.recorder import Dump
    from clusterwright.probes.repeats import Repeats

KEPT_LINES = 5
"""Evidence lines kept of one observation; the others are counted."""
KEPT_OBSERVATIONS = 2000
CODE = (
    r"^\s*(?:>>> |\w+ = [\"'b(\[]|print\(|pass +#|//|/\*|<[a-z/!])|^\s*[*-]\s+[A-Za-z`]|^\s+# [A-Za-z]"
    r"|^\s*(?-i:raise|assert|return|except|def|class|import|if|elif|for) "
)
"""A line of a program's text or of a list in prose, not of a log."""
BLOCK_LINES = 60
"""So far a heading reaches."""
JOB_PARTS, HARDWARE_PARTS = frozenset({"node", "rank", "peer"}), frozenset({"accelerator", "port"})
"""What the lines before may add to the place of a fault of the job, and of one of the hardware that names no part."""


@dataclass(slots=True)
class Observation:
    """One fault at one place, as often as it was seen."""

    judgement: Judgement
    where: Where
    order: int
    evidence: list[Evidence] = field(default_factory=list)
    count: int = 0
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def first(self) -> Evidence:
        """The line that was seen first."""
        return self.evidence[0]


@dataclass(slots=True)
class Observer:
    """Takes lines, keeps what they say; memory does not grow with their number."""

    knowledge: Knowledge
    seen: dict[tuple[Any, ...], Observation] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)
    readings: dict[str, list[Evidence]] = field(default_factory=dict)
    tables: dict[str, TableProbe] = field(default_factory=dict)
    job: Job = field(default_factory=Job)
    dumps: list[Dump] = field(default_factory=list)
    """What the ranks' flight recorders hold."""
    _blocks: dict[str, tuple[int, Where]] = field(default_factory=dict)
    """The last heading of a file, and its line."""
    _touched: list[Observation] = field(default_factory=list)
    """What the line at hand added to."""
    _varies: bool = False
    """The line at hand says more than its form."""
    _anew: bool = False
    """The lines to come mean something else by the same form."""
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _faults: Any = None
    """Automaton from words to the faults that want them."""
    _thresholds: dict[str, list[Threshold]] = field(default_factory=dict)
    _xids: dict[int, Xid] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare the look-ups."""
        wanting: dict[str, list[Fault]] = {}
        for fault in self.knowledge.faults:
            for word in fault.words:
                wanting.setdefault(word, []).append(fault)
        self._faults = ahocorasick.Automaton()
        for word, faults in wanting.items():
            self._faults.add_word(word, tuple(faults))
        if wanting:
            self._faults.make_automaton()
        self._xids = {xid.code: xid for xid in self.knowledge.xids}
        for threshold in self.knowledge.thresholds:
            self._thresholds.setdefault(threshold.reading, []).append(threshold)

    def words(self) -> set[str]:
        """Every word whose lines are wanted."""
        words = {word for fault in self.knowledge.faults for word in fault.words}
        return words | set(XID_WORDS) | set(JOB_WORDS) | set(BLOCK_WORDS) | set(self._probe().words())

    def _probe(self) -> TableProbe:
        return TableProbe(frozenset(name for name in self._thresholds if "." not in name))

    def take(self, lines: Iterable[Line], repeats: Repeats | None = None) -> None:
        """Read lines to their end.

        Args:
            lines: What the reader found.
            repeats: Where forms of lines are kept whose repetitions need only be counted.
        """
        for line in Labels().split(lines):
            self._touched.clear()
            self._take(line)
            if line.form is None or repeats is None:
                continue
            if self._anew:
                repeats.settle()
                self._anew = False
            elif not self._varies:
                repeats.learn(line.form, tuple(self._touched))
        if repeats is not None:
            repeats.settle()

    def _take(self, line: Line) -> None:
        self._varies = False
        lower = line.raw.lower()
        self._varies |= self.job.take(line, lower) or self._take_block(line, lower)
        said = self._faults.iter(lower.decode("latin-1")) if len(self._faults) else ()
        likely = {fault.name: fault for _, faults in said for fault in faults}
        for fault in likely.values():
            if any(word.encode() in lower for word in fault.unless):
                continue
            if (match := pattern(fault.pattern).search(line.raw)) and pattern(CODE).search(line.raw) is None:
                self._add_fault(fault, line, groups(match))
        if b"xid" in lower:
            self._take_xid(line)
        probe = self.tables.get(line.file)
        if probe is None:
            probe = self.tables[line.file] = self._probe()
        columns, heads = probe.columns, probe.heads
        for reading in probe.read(line, lower):
            self._take_reading(probe, line, reading)
        self._anew |= probe.columns != columns
        self._varies |= probe.heads != heads

    def _take_block(self, line: Line, lower: bytes) -> bool:
        if any(word in lower for word in _BLOCK_WORDS) and (place := block(line.raw)) is not None:
            self._blocks[line.file] = (line.number, place)
            return True
        return False

    def _add_fault(self, fault: Fault, line: Line, found: dict[str, str]) -> None:
        place = _merge(where(line.raw), found)
        start, heading = self._blocks.get(line.file, (0, None))
        if heading is not None and line.number - start <= BLOCK_LINES and line.raw[:1] in b" \t=":
            self._varies = True
            place = place.model_copy(update={k: v for k, v in heading.named().items() if getattr(place, k) is None})
        if fault.lookback:
            self._varies = True
            near = [other for other in line.before[-fault.lookback :] if not place.contradicts(where(other))]
            of_hardware = frozenset() if place.accelerator or place.port else HARDWARE_PARTS
            place = _from_before(place, near, JOB_PARTS if fault.scope in {"job", "config"} else of_hardware)
        facts = {key: value for key, value in found.items() if key in {"code", "what"}}
        if fault.lookback:
            facts["before"] = text_of(b" ".join(near))
        self._add(fault, place, line, facts, fault.name)

    def _take_xid(self, line: Line) -> None:
        said = xid_line(line.raw)
        if said is None:
            return
        xid = self._xids.get(said.code) or unlisted(said.code)
        facts = {
            "code": str(said.code),
            "severity": said.severity,
            "detail": said.detail,
            "previous": str(said.previous or ""),
        }
        self._add(xid, where(line.raw), line, facts, f"{said.code} {said.severity} {said.previous}")

    def _take_reading(self, probe: TableProbe, line: Line, reading: Reading) -> None:
        if reading.tool:
            self.tools.add(reading.tool)
        kept = self.readings.setdefault(reading.name, [])
        over = [
            threshold
            for threshold in self._thresholds.get(reading.name, ())
            if threshold.name not in AGGREGATED and is_bad(threshold, reading.value)
        ]
        if len(kept) >= KEPT_OBSERVATIONS and not over:
            return
        self._varies = True
        evidence = probe.evidence(line, reading)
        evidence = evidence.model_copy(update={"where": named(evidence.where, line.file)})
        if len(kept) < KEPT_OBSERVATIONS:
            kept.append(evidence)
        for threshold in over:
            self._put(threshold, evidence, {}, threshold.name)

    def _add(self, judgement: Judgement, place: Where, line: Line, facts: dict[str, str], key: str) -> None:
        place = named(place, line.file)
        found = self._observation(judgement, place, line.file, facts, key)
        if found is not None and len(found.evidence) < KEPT_LINES:
            time_s, clock = time_of(line.raw)
            found.evidence.append(
                Evidence(
                    file=line.file,
                    line=line.number,
                    text=text_of(line.raw),
                    time_s=time_s,
                    clock=clock,
                    where=place,
                )
            )

    def _put(self, judgement: Judgement, evidence: Evidence, facts: dict[str, str], key: str) -> None:
        found = self._observation(judgement, evidence.where, evidence.file, facts, key)
        if found is not None and len(found.evidence) < KEPT_LINES:
            found.evidence.append(evidence)

    def _observation(
        self, judgement: Judgement, place: Where, file: str, facts: dict[str, str], key: str
    ) -> Observation | None:
        """The observation of this fault at this place, counted once more; None when there are too many places."""
        alone = file if place.node is None and place.rank is None else ""
        identity = (key, place.node, place.accelerator, place.port, place.rank, place.peer, alone)
        found = self.seen.get(identity)
        if found is None:
            if len(self.seen) >= KEPT_OBSERVATIONS:
                return None
            found = self.seen[identity] = Observation(judgement, place, next(self._order), facts=facts)
        found.count += 1
        self._touched.append(found)
        return found


def unlisted(code: int) -> Xid:
    """What is said of a code that the catalogue does not have."""
    return Xid(
        code=code, name=f"unlisted {code}", cause=f"Xid {code}: the catalogue does not list this code",
        scope="accelerator", action="investigate", confidence="unknown", weight=4,
        because="look it up in the notes of the driver's release",
        source="https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html",
    )  # fmt: skip


_BLOCK_WORDS = tuple(word.encode() for word in BLOCK_WORDS)
AGGREGATED = frozenset({"socket-speed", "dcgm-link-down"})
"""Thresholds over all readings together, judged when everything has been read."""


def is_bad(threshold: Threshold, value: str) -> bool:
    """Whether a reading is over the threshold.

    Args:
        threshold: What is bad.
        value: The reading as it was printed, lower case.
    """
    if threshold.comparison == "is":
        return value == threshold.limit
    try:
        number = float(value)
    except ValueError:
        return False
    return number > float(threshold.limit) if threshold.comparison == "above" else number < float(threshold.limit)


def _from_before(place: Where, before: Iterable[bytes], parts: frozenset[str]) -> Where:
    """The place, with what it lacks taken from the lines before that are of the same place, the nearest first."""
    for line in reversed([*before]):
        other = where(line)
        # Of two lines one of which alone names its host, nothing tells that they are of one host.
        alike = place.node == other.node or ("node" in parts and place.node is None)
        if alike and not place.contradicts(other):
            told = parts - {"rank"} if local_rank(text_of(line)) is not None else parts
            lacking = {key: value for key, value in other.named().items() if key in told and not getattr(place, key)}
            place = place.model_copy(update=lacking)
    return place


def _merge(place: Where, found: dict[str, str]) -> Where:
    update = {key: value for key, value in found.items() if key in Where.model_fields}
    if "accelerator" in update:
        update["accelerator"] = normal_pci(update["accelerator"].rstrip(":")) or ""
    if "port" in update and update["port"].count(":") > 1:
        update["port"] = normal_pci(update["port"]) or update["port"]
    return place.model_copy(update=update)
