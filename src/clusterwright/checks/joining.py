"""What the files of one job say together: which rank runs where, how far it got, whose address is whose."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterwright.health import Evidence, Where
from clusterwright.probes import job
from clusterwright.probes.envelope import time_of
from clusterwright.probes.labels import label_in
from clusterwright.probes.patterns import groups, pattern
from clusterwright.probes.tables import text_of

if TYPE_CHECKING:
    from clusterwright.probes.reading import Line

KEPT_RANKS = 20_000
KEPT_DURATIONS = 200
"""So many last durations of one kind are kept of each rank."""
KEPT_LINKS = 5000
ROW_LINES = 4
"""The lines of an entry of torchrun's table of failures, from its rank on."""
MASTERS = (b"master ", b"master_addr", b"rdzv_endpoint")
_WORDS = tuple(word.encode() for word in job.WORDS)


@dataclass(slots=True)
class Rank:
    """How far one rank got, and how long the parts of its steps took."""

    line: Line
    """Its last line of training."""
    step: int
    parts: dict[str, deque[float]] = field(default_factory=dict)
    ended: bool = False
    """It said that training is done."""


@dataclass(frozen=True, slots=True)
class Told:
    """A value, who told it, and on which line."""

    value: str
    line: Line
    source: str = ""
    target: str = ""


@dataclass(slots=True)
class Job:
    """Who is who; bounded in memory by the number of ranks, not of lines."""

    ranks: dict[str, Rank] = field(default_factory=dict)
    node_of_rank: dict[str, str] = field(default_factory=dict)
    rank_of_local: dict[tuple[str, str], str] = field(default_factory=dict)
    """File and local rank -> rank."""
    _rows: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """File -> line and rank of every entry of a table of failures."""
    accounted: set[str] = field(default_factory=set)
    """Ranks that the launcher ended because another had failed."""
    node_of_address: dict[str, str] = field(default_factory=dict)
    masters: dict[tuple[str, str | None], Told] = field(default_factory=dict)
    """By file and rank."""
    settings: dict[tuple[str, str], Told] = field(default_factory=dict)
    """By name, and rank or node."""
    links: list[Told] = field(default_factory=list)
    sockets: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Addresses of both ends -> segments sent, and sent again."""
    socket_lines: dict[tuple[str, str], Line] = field(default_factory=dict)
    mtus: dict[tuple[str, str, str], Told] = field(default_factory=dict)
    """By file, port and the bridge that it belongs to."""
    raised: dict[str, Line] = field(default_factory=dict)
    """The first exception of each rank, or of a file where no rank is known."""
    spoken: dict[str, Line] = field(default_factory=dict)
    """The last line that is read of each rank."""
    enqueued: dict[tuple[str, str], Told] = field(default_factory=dict)
    """By process group and rank: how many collectives the rank has called."""
    throughput: tuple[float, float, str, Line] | None = None
    """Least and most of all ranks, the rank that has the least, the line: of the last report."""
    world: int = 0
    began: dict[str, tuple[float, str, Line]] = field(default_factory=dict)
    """First time that a file tells."""
    _hosts: dict[str, set[str]] = field(default_factory=dict)
    _ranks: dict[str, set[str]] = field(default_factory=dict)
    _addresses: list[tuple[str, str]] = field(default_factory=list)

    def take(self, line: Line, lower: bytes) -> bool:
        """Read one line; whether it told something."""
        hosts = self._hosts.setdefault(line.file, set())
        self._ranks.setdefault(line.file, set())
        if len(hosts) <= 1 and (match := job.SYSLOG_HOST.match(line.raw)) is not None:
            hosts.add(match[1].decode())
        if line.file not in self.began:
            moment, clock = time_of(line.raw)
            if moment is not None:
                self.began[line.file] = (moment, clock, line)
        self._take_raised(line)
        if b" loss" in lower and self._take_next_step(line):
            return True
        if not any(word in lower for word in _WORDS):
            return False
        self._take_table(line, lower)
        self._take_address(line, lower)
        self._take_socket(line, lower)
        self._take_report(line, lower)
        rank = job.rank_of(line.raw) or job.rank_of_file(line.file)
        if any(word in lower for word in MASTERS) and (match := pattern(job.MASTER).search(line.raw)) is not None:
            self.masters.setdefault((line.file, rank), Told(groups(match)["value"], line))
        if (speaker := rank or job.node_of_nccl(line.raw)) is not None and len(self.settings) < KEPT_RANKS:
            self._take_settings(speaker, line, lower)
        if rank is not None and len(self.ranks) < KEPT_RANKS:
            self._ranks[line.file].add(rank)
            self._take_rank(rank, line, lower)
        return True

    def _take_report(self, line: Line, lower: bytes) -> None:
        """The straggler detection of Megatron and of NVIDIA's resiliency extension."""
        if b"mnetpt/rnk" in lower and (match := pattern(job.THROUGHPUT).search(line.raw)) is not None:
            found = groups(match)
            self.throughput = (float(found["least"]), float(found["most"]), found["rank"], line)
        if b" score=" in lower and (match := pattern(job.NODE_OF_RANK).search(line.raw)) is not None:
            found = groups(match)
            self.node_of_rank[found["rank"]] = found["node"]

    def _take_next_step(self, line: Line) -> bool:
        """One more step of a rank that is known: what most lines of a job are."""
        rank = job.rank_of(line.raw) or job.rank_of_file(line.file)
        if rank not in self.ranks or (said := job.step_of(line.raw)) is None:
            return False
        self.spoken[rank] = line
        self._take_step(rank, line, said)
        return True

    def _take_raised(self, line: Line) -> None:
        if job.is_raised(line.raw) and len(self.raised) < KEPT_LINKS:
            self.raised.setdefault(job.rank_of(line.raw) or job.rank_of_file(line.file) or line.file, line)

    def names(self, file: str, node: str) -> None:
        """A line of the file names the host that it was written on."""
        self._hosts.setdefault(file, set()).add(node)

    def _take_table(self, line: Line, lower: bytes) -> None:
        """An entry of torchrun's table of failures: host, rank and local rank on lines of their own."""
        if b"(sigterm)" in lower and pattern(job.TABLE_TERMINATED).search(line.raw) is not None:
            ranks = [named for before in line.before if (named := pattern(job.TABLE_RANK).search(before)) is not None]
            self.accounted |= {groups(named)["rank"] for named in ranks[-1:]}
        if b"(local_rank: " not in lower or (match := pattern(job.TABLE_RANK).search(line.raw)) is None:
            return
        found = groups(match)
        self.rank_of_local[line.file, found["local"]] = found["rank"]
        rows = self._rows.setdefault(line.file, [])
        if len(rows) < KEPT_RANKS:
            rows.append((line.number, found["rank"]))
        for before in line.before:
            if (named := pattern(job.TABLE_HOST).search(before)) is not None:
                node = groups(named)["node"]
                self.node_of_rank[found["rank"]] = node
                self.names(line.file, node)

    def _take_address(self, line: Line, lower: bytes) -> None:
        if any(word in lower for word in (b"inet ", b"nodeaddr=", b"bootstrap : using")):
            match = pattern(job.ADDRESS).search(line.raw)
            if match is not None:
                found = groups(match)
                if "node" in found:
                    self.node_of_address[found["address"]] = found["node"]
                else:
                    self._addresses.append((line.file, found["address"]))

    def _take_socket(self, line: Line, lower: bytes) -> None:
        """A connection of ``ss -ti``: its ends on one line, its counters on the next; the ports of ``ip link``."""
        if b"segs_out:" in lower and line.before:
            ends = pattern(job.SOCKET_ENDS).search(line.before[-1])
            sent = pattern(job.SOCKET_SENT).search(line.raw)
            if ends is not None and sent is not None and len(self.sockets) < KEPT_LINKS:
                key = (groups(ends)["source"], groups(ends)["target"])
                again = pattern(job.SOCKET).search(line.raw)
                count = self.sockets.setdefault(key, [0, 0])
                count[0] += int(groups(sent)["value"])
                count[1] += int(groups(again)["value"]) if again is not None else 0
                if again is not None:
                    self.socket_lines.setdefault(key, line)
                self._addresses.append((line.file, key[0]))
        elif b"> mtu " in lower and (match := pattern(job.PORT_MTU).search(line.raw)) is not None:
            found = groups(match)
            if len(self.mtus) < KEPT_LINKS:
                self.mtus[line.file, found["port"], found.get("master", "")] = Told(found["value"], line)

    def _take_rank(self, rank: str, line: Line, lower: bytes) -> None:
        self.spoken[rank] = line
        if b"last enqueued" in lower and (match := pattern(job.ENQUEUED).search(line.raw)) is not None:
            found = groups(match)
            self.enqueued[found["group"], found["rank"]] = Told(found["value"], line)
        if rank not in self.node_of_rank and (match := pattern(job.NODE_OF_RANK).search(line.raw)) is not None:
            found = groups(match)
            self.node_of_rank[found["rank"]] = found["node"]
            self.names(line.file, found["node"])
        if (match := pattern(job.WORLD).search(line.raw)) is not None:
            self.world = max(self.world, int(groups(match)["value"]))
        if b" -> " in lower and (match := pattern(job.LINK).search(line.raw)) is not None:
            found = groups(match)
            if len(self.links) < KEPT_LINKS:
                self.links.append(Told(found["value"], line, found["source"], found["target"]))
        if b"loss" in lower and (said := job.step_of(line.raw)) is not None:
            self._take_step(rank, line, said)
        elif rank in self.ranks and pattern(job.ENDED).search(line.raw) is not None:
            self.ranks[rank].ended = True

    def _take_settings(self, speaker: str, line: Line, lower: bytes) -> None:
        """What every rank has alike, or should have; the speaker is a rank, or a node."""
        for name, words, text in job.SETTINGS:
            if any(word.encode() in lower for word in words) and (match := pattern(text).search(line.raw)) is not None:
                self.settings.setdefault((name, speaker), Told(groups(match)["value"], line, speaker))
        if b"collectivefingerprint(" in lower:
            for named, told in job.FINGERPRINT.findall(line.raw.decode("utf-8", "replace")):
                self.settings.setdefault(("collective", named), Told(told, line, named))

    def _take_step(self, rank: str, line: Line, said: job.Step) -> None:
        known = self.ranks.get(rank)
        if known is None:
            known = self.ranks[rank] = Rank(line, said.step)
        known.line, known.step = line, said.step
        for name, seconds in said.parts.items():
            known.parts.setdefault(name, deque(maxlen=KEPT_DURATIONS)).append(seconds)

    def node_of_file(self, file: str) -> str | None:
        """The one node that a file is of: by its lines, by its ranks, by its path among others."""
        hosts = self._hosts.get(file, set()) | {
            self.node_of_rank[rank] for rank in self._ranks.get(file, ()) if rank in self.node_of_rank
        }
        if label_in(file) is not None and not hosts:
            return job.node_of_file(file, set())
        if hosts or len(self._hosts) < 2:  # noqa: PLR2004 - the name of a single file says nothing
            return next(iter(hosts)) if len(hosts) == 1 else None
        return job.node_of_file(file, self.nodes())

    def speaks(self, file: str) -> bool:
        """Whether ranks of the job speak in the file."""
        return bool(self._ranks.get(file))

    def several(self) -> bool:
        """Whether more than one file was read: then a line can be told from the place that it speaks of."""
        return len(self._hosts) > 1

    def nodes(self) -> set[str]:
        """Every node that is named."""
        return {*self.node_of_rank.values(), *(host for hosts in self._hosts.values() for host in hosts)}

    def node_of(self, rank: str) -> str | None:
        """The node that a rank runs on."""
        known = self.ranks.get(rank)
        return self.node_of_rank.get(rank) or (self.node_of_file(known.line.file) if known is not None else None)

    def known_ranks(self) -> set[str]:
        """Every rank that has printed something."""
        return {rank for ranks in self._ranks.values() for rank in ranks}

    def settle(self) -> None:
        """When everything has been read: give the addresses of files their nodes."""
        for file, address in self._addresses:
            node = self.node_of_file(file)
            if node is not None and not address.startswith("127."):
                self.node_of_address[address] = node

    def placed(self, place: Where, evidence: Evidence, *, speaker: bool = False) -> Where:
        """The place with the node and the rank that other lines give.

        Args:
            place: What the line names.
            evidence: The line.
            speaker: The line is of the rank or node that prints it, whatever other node it names.
        """
        file, row = evidence.file, self._rank_of_row(evidence)
        rank = row or self._rank_of_local(place.rank, evidence)
        if place.node is not None and row is None and self._is_local(rank, evidence):
            rank = None  # of the node's own count: another node may have the rank of this number
        of_hardware = place.port is not None or ":" in str(place.accelerator)
        of_rank = job.rank_of_file(file) is not None or not of_hardware
        alone = len(self._ranks.get(file, ())) == 1 and self.several()
        if rank is None and place.node is None and alone and of_rank and not self._is_local(place.rank, evidence):
            rank = next(iter(self._ranks[file]))
        told = self.node_of(rank) if rank is not None else None
        given = None if place.node == label_in(file) else place.node
        node = told if told is not None and (row or given not in self.nodes()) else given
        speaks = label_in(file) is not None and rank is not None and job.is_spoken_by(rank, evidence.text)
        of_file = speaks or rank is None or rank in self._ranks.get(file, ())
        if (node is None or speaker) and of_file and (self.several() or label_in(file) is not None):
            node = self.node_of_file(file) or node
        peer = place.peer if place.peer is not None and place.peer in evidence.text else None
        return place.model_copy(update={"node": node, "rank": rank, "peer": peer})

    def _rank_of_row(self, evidence: Evidence) -> str | None:
        """The rank of the entry of a table of failures that the line is part of."""
        if not job.is_row(evidence.text):
            return None
        rows = [rank for line, rank in self._rows.get(evidence.file, ()) if 0 <= evidence.line - line <= ROW_LINES]
        return rows[-1] if rows else None

    def _is_local(self, rank: str | None, evidence: Evidence) -> bool:
        """Whether the number is that of a rank on its node, and no line says which of the job it is."""
        local = job.local_rank(evidence.text)
        return rank is not None and rank == local and (evidence.file, rank) not in self.rank_of_local

    def _rank_of_local(self, rank: str | None, evidence: Evidence) -> str | None:
        """The rank, where the line gives the rank on its node alone."""
        local = job.local_rank(evidence.text)
        return rank if local is None else self.rank_of_local.get((evidence.file, local), rank)


def evidence_of(line: Line, place: Where) -> Evidence:
    """A line as evidence."""
    time_s, clock = time_of(line.raw)
    return Evidence(
        file=line.file, line=line.number, text=text_of(line.raw), time_s=time_s, clock=clock, where=place
    )  # fmt: skip
