"""Ranks, links and settings that differ from their siblings: what a job's logs tell when nothing has failed."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from clusterwright.checks.joining import Told, evidence_of
from clusterwright.health import Evidence, Where
from clusterwright.knowledge import Judgement

if TYPE_CHECKING:
    from clusterwright.checks.joining import Job

Together = tuple[Judgement, list[Evidence], str]

ENOUGH = 3
"""Fewer siblings have no majority."""
ENOUGH_STEPS = 4
SLOWER = 2.0
"""From so many times the siblings' median a rank is a straggler."""
FAR_SLOWER = 3.0
"""From so many times on it is certain."""
SLOW_RANK = 0.8
"""Below this share of the fastest rank's throughput a rank is a straggler."""
SHARE_OF_STEP = 0.1
"""A part that is slow must be this share of the step, or the step does not feel it."""
SLOW_LINK = 0.25
"""Below this share of the usual speed a link is slow."""
LOST = 0.005
"""From this share of segments that were sent again a connection loses packets."""
LOST_SEGMENTS = 20
NO_PART = ("eta", "remaining", "left", "total", "since", "uptime", "timeout", "elapsed")
"""What is no part of a step; but for the time of an iteration."""
WAITING = ("comm", "wait", "sync", "reduce", "barrier", "exposed", "bubble", "recv", "send", "gather", "all-to-all")
"""Parts of a step in which a rank waits for the others: the one that is waited for has the least of them."""
SHOWN_RANKS = 4
_TORCH = "https://docs.pytorch.org/docs/stable/distributed.html"

STRAGGLER = Judgement(
    name="straggler", cause="a rank is slower than its siblings (straggler), and all others wait for it", scope="job",
    action="investigate", confidence="certain", health="degraded", weight=4,
    because="compare clocks, temperature, other processes, data and disk of its node with those of the others",
    source="https://github.com/NVIDIA/nvidia-resiliency-ext/blob/main/docs/source/straggler_det/index.rst",
)  # fmt: skip
SLOW_PATH = Judgement(
    name="slow-path", cause="links of one node are far slower than those of the others", scope="link",
    action="investigate", confidence="certain", health="degraded", weight=4,
    because="read speed, errors and cable of its port, and the port of the switch", source=_TORCH,
)  # fmt: skip
LOSSY_PATH = Judgement(
    name="lossy-path", cause="connections of one node lose packets: they send segments again (retransmit)",
    scope="link", action="investigate", confidence="certain", health="degraded", weight=4,
    because="read the error counters of both ends of its cable",
    source="https://man7.org/linux/man-pages/man8/ss.8.html",
)  # fmt: skip
OTHER_MTU = Judgement(
    name="other-mtu", cause="a port has a smaller MTU than its siblings: large packets do not pass, small ones do",
    scope="config", action="fix-config", confidence="likely", weight=2,
    source="https://man7.org/linux/man-pages/man8/ip-link.8.html",
)  # fmt: skip
OTHER_MASTER = Judgement(
    name="other-master", cause="a node was given another address of the master than the others", scope="config",
    action="fix-config", confidence="likely", weight=2, source="https://docs.pytorch.org/docs/stable/elastic/run.html",
)  # fmt: skip
OTHER_SETTING = Judgement(
    name="other-setting", cause="one rank differs from all others in its program, settings or versions (mismatch)",
    scope="config", action="fix-config", confidence="likely", weight=2, source=_TORCH,
    because="ranks that disagree send tensors of other sizes, or other collectives",
)  # fmt: skip


def compare(job: Job) -> list[Together]:
    """Everything in which one sibling differs from most.

    Args:
        job: What was read of the job, settled.
    """
    return [
        *_stragglers(job),
        *_least_throughput(job),
        *_slow_links(job),
        *_lossy(job),
        *_other_mtu(job),
        *_other_master(job),
        *_other_setting(job),
    ]


def _stragglers(job: Job) -> list[Together]:
    worst: dict[str, tuple[float, float, str, list[str]]] = {}
    medians = {
        rank: {name: statistics.median(kept) for name, kept in known.parts.items() if len(kept) >= ENOUGH_STEPS}
        for rank, known in job.ranks.items()
    }
    whole = statistics.median([max(parts.values()) for parts in medians.values() if parts] or [0.0])
    for name in dict.fromkeys(name for parts in medians.values() for name in parts):
        values = {rank: parts[name] for rank, parts in medians.items() if name in parts}
        usual = statistics.median(values.values())
        if len(values) < ENOUGH or not _is_work(name):
            continue
        slow = [rank for rank, value in values.items() if value > SLOWER * usual and value > SHARE_OF_STEP * whole]
        if slow and len(slow) * 2 < len(values):
            most = max(values[rank] for rank in slow)
            said = f"{name} takes {_ranks(slow, job)} {most:.3g} s in the median, the others {usual:.3g} s"
            worst[name] = (most - usual, most / max(usual, 1e-9), said, sorted(slow, key=int))
    if not worst:
        return []
    _, ratio, said, slow = max(worst.values())
    place = _place(slow, job)
    lines = [evidence_of(job.ranks[rank].line, place) for rank in slow[:SHOWN_RANKS]]
    fault = STRAGGLER if ratio >= FAR_SLOWER else STRAGGLER.model_copy(update={"confidence": "likely"})
    return [(fault, lines, said)]


def _is_work(name: str) -> bool:
    """Whether a duration is a part of the step that a rank spends on its own work."""
    words = set(name.replace("-", " ").split())
    return not any(word in name for word in WAITING) and (not words & set(NO_PART) or "iteration" in words)


def _least_throughput(job: Job) -> list[Together]:
    """The rank that Megatron's own report shows far under the fastest."""
    if job.throughput is None:
        return []
    least, most, rank, line = job.throughput
    if least >= SLOW_RANK * most:
        return []
    said = f"rank {rank} does {least:g} TFLOP/s, the fastest {most:g}"
    fault = STRAGGLER.model_copy(update={"confidence": "likely"})
    return [(fault, [evidence_of(line, Where(node=job.node_of(rank), rank=rank))], said)]


def _ranks(ranks: list[str], job: Job) -> str:
    nodes = sorted({node for rank in ranks if (node := job.node_of(rank)) is not None})
    shown = ", ".join(sorted(ranks, key=int)[:SHOWN_RANKS]) + (", ..." if len(ranks) > SHOWN_RANKS else "")
    return f"rank{'s' * (len(ranks) > 1)} {shown}" + (f" of {', '.join(nodes)}" if len(nodes) == 1 else "")


def _place(ranks: list[str], job: Job) -> Where:
    """The one rank, or the one node of several."""
    nodes = {job.node_of(rank) for rank in ranks}
    return Where(node=nodes.pop() if len(nodes) == 1 else None, rank=ranks[0] if len(ranks) == 1 else None)


def _slow_links(job: Job) -> list[Together]:
    between: dict[tuple[str, str], Told] = {}
    for told in job.links:
        source, target = job.node_of(told.source), job.node_of(told.target)
        if source is not None and target is not None and source != target:
            between[source, target] = told
    if len(between) < ENOUGH:
        return []
    usual = statistics.median_high(float(told.value) for told in between.values())
    slow = {ends: told for ends, told in between.items() if float(told.value) < SLOW_LINK * usual}
    return _of_one_end(slow, len(between), SLOW_PATH, f"GB/s, usual are {usual:.3g} GB/s")


def _lossy(job: Job) -> list[Together]:
    counts: dict[tuple[str, str], list[int]] = {}
    lines: dict[tuple[str, str], Told] = {}
    for (source, target), (sent, again) in job.sockets.items():
        ends = (job.node_of_address.get(source, source), job.node_of_address.get(target, target))
        if ends[0] == ends[1]:
            continue
        count = counts.setdefault(ends, [0, 0])
        count[0] += sent
        count[1] += again
        if (source, target) in job.socket_lines:
            lines.setdefault(ends, Told("", job.socket_lines[source, target]))
    lossy = {
        ends: Told(f"{again} of {sent}", lines[ends].line)
        for ends, (sent, again) in counts.items()
        if again >= LOST_SEGMENTS and again > LOST * sent
    }
    return _of_one_end(lossy, len(counts), LOSSY_PATH, "segments were sent again") if len(counts) >= ENOUGH else []


def _of_one_end(bad: dict[tuple[str, str], Told], of: int, judgement: Judgement, what: str) -> list[Together]:
    """The node at one end of every bad connection, where there is exactly one and the others are well."""
    if not bad or len(bad) == of:
        return []
    common = set.intersection(*(set(ends) for ends in bad))
    said = "; ".join(f"{source} -> {target}: {told.value}" for (source, target), told in sorted(bad.items())[:4])
    if len(common) != 1:  # one connection alone has two ends
        names = " and ".join(sorted({end for ends in bad for end in ends}))
        judgement = judgement.model_copy(update={"confidence": "likely"})
        return [
            (
                judgement,
                [evidence_of(told.line, Where()) for told in bad.values()][:4],
                f"{said} {what}; between {names}",
            )
        ]
    place = Where(node=common.pop())
    return [(judgement, [evidence_of(told.line, place) for told in bad.values()][:4], f"{said} {what}")]


def _other_mtu(job: Job) -> list[Together]:
    """A port of one bridge, or the port of one name on all nodes, with less than most."""
    groups: dict[tuple[str, str], dict[str, Told]] = {}
    for (file, port, master), told in job.mtus.items():
        if master:
            groups.setdefault((file, master), {})[port] = told
        elif (node := job.node_of_file(file)) is not None and port != "lo":
            groups.setdefault(("", port), {})[node] = told
    found: list[Together] = []
    for (file, _), members in groups.items():
        for name, told, usual in _odd(members):
            if int(told.value) < int(usual):
                place = Where(node=None if file else name, port=name if file else None)
                if file and name in job.nodes():
                    place = Where(node=name, port=name)
                found.append(
                    (OTHER_MTU, [evidence_of(told.line, place)], f"{name} has mtu {told.value}, its siblings {usual}")
                )
    return found


def _other_master(job: Job) -> list[Together]:
    by_node: dict[str, Told] = {}
    for (file, rank), told in job.masters.items():
        node = (job.node_of(rank) if rank is not None else None) or job.node_of_file(file)
        if node is not None:
            by_node.setdefault(node, told)
    return [
        (OTHER_MASTER, [evidence_of(told.line, Where(node=name))],
         f"{name} looks for the master at {told.value}, most at {usual}")
        for name, told, usual in _odd(by_node)
    ]  # fmt: skip


def _other_setting(job: Job) -> list[Together]:
    """The one rank that has another value than all others, or the ranks of one node."""
    found: list[Together] = []
    for name in dict.fromkeys(name for name, _ in job.settings):
        odd = _odd({speaker: told for (named, speaker), told in job.settings.items() if named == name})
        ranks = [speaker for speaker, _, _ in odd if speaker.isdigit()]
        place = _place(ranks, job) if ranks else Where(node=odd[0][0] if len(odd) == 1 else None)
        if len({told.value for _, told, _ in odd}) != 1 or (place.rank is None and place.node is None):
            continue
        lines = [evidence_of(told.line, place) for _, told, _ in odd][:SHOWN_RANKS]
        who = _ranks(ranks, job) if ranks else place.node
        found.append((OTHER_SETTING, lines, f"{name} of {who}: {odd[0][1].value}, of all others: {odd[0][2]}"))
    return found


def _odd(members: dict[str, Told]) -> list[tuple[str, Told, str]]:
    """The members whose value is not that of the majority, with the majority's value."""
    values = [told.value for told in members.values()]
    usual = max(set(values), key=values.count, default="")
    if len(values) < ENOUGH or values.count(usual) * 2 <= len(values):
        return []
    return [(name, told, usual) for name, told in members.items() if told.value != usual]
