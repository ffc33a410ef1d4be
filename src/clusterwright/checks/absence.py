"""Who is missing: the rank that fell silent, the node that came late, the peer that everybody lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clusterwright.checks.joining import KEPT_RANKS, evidence_of
from clusterwright.health import Evidence, Where
from clusterwright.knowledge import Judgement

if TYPE_CHECKING:
    from clusterwright.checks.joining import Job
    from clusterwright.checks.observing import Observation

Together = tuple[Judgement, list[Evidence], str]

TIMEOUTS = frozenset({"gloo-timeout", "watchdog-timeout", "store-timeout", "barrier-reached"})
"""What ranks print that have waited too long."""
CLOSED = frozenset({"peer-reset"})
"""What ranks print when the other end of a connection is gone."""
MEETING = frozenset({"rendezvous", "store-timeout"})
"""What ranks print that did not find each other."""
WAITING = TIMEOUTS | CLOSED | MEETING | frozenset({
    "exit-code-1", "elastic-exit-1", "elastic-abort", "nccl-generic", "connection-refused", "connect-timeout",
    "cancelled", "ib-flush",
})  # fmt: skip
"""What victims print."""
ENOUGH = 2
"""So many others must complain before silence means something."""
LATE_S = 10.0
WAITS = re.compile(rb"timed? ?out|peer|closed|reset|ChildFailed|SignalException|waiting|Broken pipe", re.IGNORECASE)
"""Words of exceptions that victims raise."""
RAISED_HEAD = re.compile(r"^(?:\[\w+\]:?\s*)+")
KNOCKED = "client socket has"
"""What a rank prints that finds no master."""
SHOWN = 6
_TORCH = "https://docs.pytorch.org/docs/stable/distributed.html"
_ELASTIC = "https://docs.pytorch.org/docs/stable/elastic/errors.html"

SILENT = Judgement(
    name="silent-rank", cause="a rank fell silent: it is missing from the collective that the others wait in",
    scope="job", action="investigate", confidence="likely", weight=4, source=_TORCH,
    because="on its node read the kernel log, and the state and the stack of its process (ps, py-spy dump)",
)  # fmt: skip
AHEAD = Judgement(
    name="rank-ahead", cause="one rank went on without the others: it left out a collective that they wait in",
    scope="job", action="investigate", confidence="likely", weight=3, source=_TORCH,
    because="software: look for a branch that not all ranks take",
)  # fmt: skip
OTHER_ERROR = Judgement(
    name="other-error", cause="one rank or node alone ended with an error of its own, the others waited for it",
    scope="job", action="investigate", confidence="likely", weight=4, source=_ELASTIC,
    because="read the traceback above the line",
)  # fmt: skip
FEWER_CALLS = Judgement(
    name="fewer-calls", cause="a rank has called fewer collectives than the others, and timed out too", scope="job",
    action="investigate", confidence="unknown", weight=5, source=_TORCH,
    because="it lags behind, or waits for a group that lags: see its stack and its node first",
)  # fmt: skip
LOST_PEER = Judgement(
    name="lost-peer", cause="the connections that were closed all lead to one node: what ended there came first",
    scope="node", action="investigate", confidence="likely", weight=4, source=_TORCH,
    because="read the output of its ranks and its kernel log",
)  # fmt: skip
LATE = Judgement(
    name="late-node", cause="a node came late to the rendezvous, and the others had given up waiting", scope="job",
    action="restart-job", confidence="likely", weight=3, source=_ELASTIC,
    because="see what held its start back (image, file system, scheduler), or whether its clock is wrong",
)  # fmt: skip
UNREACHED = Judgement(
    name="unreached", cause="one node does not reach the master: its name, address, route or firewall", scope="config",
    action="investigate", confidence="likely", weight=3, source=_ELASTIC,
    because="from that node resolve the master's name and connect to its port",
)  # fmt: skip


def missing(job: Job, seen: list[Observation]) -> list[Together]:
    """Ranks and nodes that are told by their absence.

    Args:
        job: What was read of the job, settled.
        seen: Observations, with the node and rank that the job gives them.
    """
    return [
        *_silent(job, seen),
        *_ahead(job, seen),
        *_other_error(job, seen),
        *_fewer_calls(job),
        *_lost_peer(job, seen),
        *_late(job, seen),
        *_unreached(seen),
    ]


def _silent(job: Job, seen: list[Observation]) -> list[Together]:
    """Ranks that spoke before, did not end, and said nothing while others complained of waiting."""
    failed = {one.where.rank for one in seen if one.where.rank is not None and one.judgement.health == "failed"}
    known = set(job.ranks) | (set(job.spoken) if job.several() else set())
    waited = {one.where.rank for one in seen if one.judgement.name in TIMEOUTS | CLOSED} & known
    silent = sorted(
        known - failed - job.accounted - set(job.raised) - {rank for rank in job.ranks if job.ranks[rank].ended},
        key=int,
    )
    nodes = {job.node_of(rank) for rank in silent}
    if len(waited) < max(ENOUGH, len(silent) + 1) or not silent or (len(nodes) > 1 and len(silent) > 1):
        return []
    furthest = max((job.ranks[rank].step for rank in waited if rank in job.ranks), default=0)
    if any(rank in job.ranks and job.ranks[rank].step > furthest for rank in silent):
        return []
    place = Where(node=nodes.pop(), rank=silent[0] if len(silent) == 1 else None)
    last = [job.ranks[rank].line if rank in job.ranks else job.spoken[rank] for rank in silent[:SHOWN]]
    after = f" after step {job.ranks[silent[0]].step}" if silent[0] in job.ranks else ""
    said = f"rank {', '.join(silent[:SHOWN])} printed nothing{after} while {len(waited)} others complained"
    return [(SILENT, [evidence_of(line, place) for line in last], said)]


def _ahead(job: Job, seen: list[Observation]) -> list[Together]:
    """The one rank that went on while the others waited for it: its program left a collective out."""
    waited = [one.where.rank for one in seen if one.judgement.name in TIMEOUTS and one.where.rank in job.ranks]
    if len(set(waited)) < ENOUGH:
        return []
    furthest = max(job.ranks[rank].step for rank in waited if rank is not None)
    ahead = [rank for rank, known in job.ranks.items() if known.step > furthest + 1 and rank not in waited]
    if len(ahead) != 1:
        return []
    rank = ahead[0]
    place = Where(node=job.node_of(rank), rank=rank)
    said = f"rank {rank} went on to step {job.ranks[rank].step}, the others wait at step {furthest + 1}"
    return [(AHEAD, [evidence_of(job.ranks[rank].line, place)], said)]


def _other_error(job: Job, seen: list[Observation]) -> list[Together]:
    """An exception, whatever it says, of one rank or node alone while others complain of waiting."""
    told = {(line.file, line.line) for one in seen for line in one.evidence}
    places = {
        speaker: Where(
            node=job.node_of(speaker) or job.node_of_file(line.file), rank=speaker if speaker.isdigit() else None
        )
        for speaker, line in job.raised.items()
        if (line.file, line.number) not in told and not WAITS.search(line.raw)
    }
    waiting = {one.where.node or one.where.rank for one in seen if one.judgement.name in WAITING} - {None}
    nodes = {place.node for place in places.values()}
    if len(nodes) != 1 or len(waiting - nodes) < ENOUGH or None in nodes:
        return []
    place = next(iter(places.values())) if len(places) == 1 else Where(node=nodes.pop())
    lines = [evidence_of(job.raised[speaker], place) for speaker in places][:SHOWN]
    return [(OTHER_ERROR, lines, f"it says: {RAISED_HEAD.sub('', lines[0].text)[:160]}")]


def _fewer_calls(job: Job) -> list[Together]:
    """Ranks that have called fewer collectives of a group than most: they lag behind, or wait for another group."""
    found: list[Together] = []
    for group in dict.fromkeys(group for group, _ in job.enqueued):
        told = {rank: told for (named, rank), told in job.enqueued.items() if named == group}
        values = [one.value for one in told.values()]
        usual = max(set(values), key=values.count)
        if len(values) <= ENOUGH or values.count(usual) * 2 <= len(values):
            continue
        behind = [rank for rank, one in told.items() if int(one.value) < int(usual)]
        if len(behind) == 1:
            one = told[behind[0]]
            said = f"rank {behind[0]} has called {one.value} collectives of group {group}, most {usual}"
            place = Where(node=job.node_of(behind[0]), rank=behind[0])
            found.append((FEWER_CALLS, [evidence_of(one.line, place)], said))
    return found


def _lost_peer(job: Job, seen: list[Observation]) -> list[Together]:
    """The node that all closed connections lead to; none where somebody timed out: then victims left too."""
    if any(one.judgement.name in TIMEOUTS for one in seen):
        return []
    blamed: dict[str, set[str]] = {}
    lines: dict[str, list[Evidence]] = {}
    for one in seen:
        if one.judgement.name in CLOSED and one.where.peer is not None:
            peer = job.node_of_address.get(one.where.peer, one.where.peer)
            source = one.where.node or f"rank {one.where.rank}"
            if peer != source:
                blamed.setdefault(source, set()).add(peer)
                lines.setdefault(peer, []).append(one.first)
    ends = {peer for peers in blamed.values() for peer in peers} - set(blamed)
    if len(blamed) < ENOUGH or len(ends) != 1:
        return []
    node = ends.pop()
    said = f"{len(blamed)} nodes lost a connection, and {node} alone lost none"
    return [(LOST_PEER, [line.model_copy(update={"where": Where(node=node)}) for line in lines[node]][:SHOWN], said)]


def _late(job: Job, seen: list[Observation]) -> list[Together]:
    meeting = {line.file for one in seen if one.judgement.name in MEETING for line in one.evidence}
    if not meeting:
        return []
    first: dict[str, tuple[float, str]] = {}
    for file, (moment, clock, _) in job.began.items():
        node = job.node_of_file(file)
        if (
            node is not None
            and clock == "utc"
            and (job.speaks(file) or file in meeting)
            and (node not in first or moment < first[node][0])
        ):
            first[node] = (moment, file)
    moments = sorted((moment, node, file) for node, (moment, file) in first.items())
    if len(moments) <= ENOUGH or moments[-1][0] - moments[-2][0] < LATE_S:
        return []
    moment, node, file = moments[-1]
    line = evidence_of(job.began[file][2], Where(node=node))
    after, last = moment - moments[0][0], moment - moments[-2][0]
    said = f"{node} began {after:.0f} s after the first node and {last:.0f} s after the last of the others"
    return [(LATE, [line], said)]


def _unreached(seen: list[Observation]) -> list[Together]:
    """The one node that did not reach the master while the others waited for it there."""
    knocked = [one for one in seen if one.judgement.name == "rendezvous" and KNOCKED in one.first.text.lower()]
    inside = {one.where.node for one in seen if one.judgement.name in MEETING and one not in knocked} - {None}
    nodes = {one.where.node for one in knocked}
    if len(nodes) != 1 or None in nodes or len(inside - nodes) < ENOUGH:
        return []
    node = nodes.pop()
    said = f"{node} alone did not reach the master, {len(inside - {node})} other nodes did and waited"
    lines = [one.first.model_copy(update={"where": Where(node=node)}) for one in knocked][:SHOWN]
    return [(UNREACHED, lines, said)]


def unread(job: Job) -> str:
    """Which ranks of the job no log was read of; empty where all are there or the size is not known."""
    known = {int(rank) for rank in job.known_ranks()}
    lacking = [rank for rank in range(min(job.world, KEPT_RANKS)) if rank not in known]
    if not lacking or not known or len(lacking) >= job.world:
        return ""
    shown = ", ".join(str(rank) for rank in lacking[:SHOWN]) + (", ..." if len(lacking) > SHOWN else "")
    return f"no output of rank{'s' * (len(lacking) > 1)} {shown} (of {job.world}) was read: theirs may tell"
