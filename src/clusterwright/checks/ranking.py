"""Observations -> findings: the root first, what only echoes it beneath it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterwright.checks.absence import WAITING, missing, unread
from clusterwright.checks.judging import RECOVERY_CODE, judge, judge_together
from clusterwright.checks.siblings import compare
from clusterwright.checks.timeline import Timeline
from clusterwright.health import Evidence, Finding, Where
from clusterwright.knowledge import Fault, Xid
from clusterwright.probes.labels import label_in

if TYPE_CHECKING:
    from clusterwright.checks.observing import Observation, Observer
    from clusterwright.knowledge import Judgement

CAUSE = 2
"""Up to this weight an observation is a cause and a finding of its own."""
ERROR = 3
ECHO = 6
REMARK = 7
PROGRAM = "program-error"
CHAINED_LINES = 80
"""An error that is raised while another is handled comes so many lines after it."""
RAISED = re.compile(r"^(?:\[\w+\]:?\s*)*(?:\d+: )?(?:\w+\.)*\w+(?:Error|Exception)\b")
"""The last line of a traceback."""
HELD, KILLED = "worker-held", "elastic-sigkill"
"""Faults: the launcher could not end a worker; a worker ended by signal 9."""
ENOUGH_OTHERS = 2
MANY_VICTIMS = 3
SHOWN_RANKS = 8
DISAGREEING = frozenset({"gloo-size", "collective-mismatch"})
"""What either of two ranks prints that do not fit together."""
KEPT_FINDINGS = 40
KEPT_ECHOES = 50


@dataclass(slots=True)
class Seen:
    """An observation with its judgement, and where it stands in the order of events."""

    judgement: Judgement
    where: Where
    evidence: list[Evidence]
    count: int
    order: int
    because: str = ""
    at_s: float | None = None
    """When, on the clock of all files."""
    place: tuple[str | None, ...] = ()

    def __post_init__(self) -> None:
        """The parts of the place, to be compared often."""
        where = self.where
        self.place = (where.node, where.accelerator, where.port, where.rank, where.peer)

    @property
    def weight(self) -> int:
        """How near to the root."""
        return self.judgement.weight


def findings(observer: Observer) -> list[Finding]:
    """Everything that was seen, as findings, most likely root first."""
    seen = _seen(observer)
    if not seen:
        return []
    roots = [one for one in seen if one.weight <= CAUSE]
    if not roots:
        lowest = min(one.weight for one in seen)
        roots = [one for one in seen if one.weight == lowest]
    roots, echoes = _fold(roots, seen)
    roots, echoes = _victims(*_everywhere(roots, echoes, len(observer.job.known_ranks())))
    unplaced = [_unblame(root) for root in roots] if observer.job.several() else [False]
    made = [_finding(root, echoes if index == 0 else []) for index, root in enumerate(roots[:KEPT_FINDINGS])]
    made[0] = _with_more_names(made[0], [] if unplaced[0] else roots, [] if unplaced[0] else echoes)
    lacking = unread(observer.job)
    if lacking and made[0].confidence == "unknown":
        made[0] = made[0].model_copy(update={"because": f"{made[0].because}; {lacking}"})
    return made


def _seen(observer: Observer) -> list[Seen]:
    seen = []
    observer.job.settle()
    for observation in observer.seen.values():
        observation.where = observer.job.placed(
            observation.where, observation.first, speaker=observation.judgement.name in WAITING
        )
        if observation.where.node is None:
            observation.evidence = [_unlabelled(line) for line in observation.evidence]
        if observation.where.rank is None:
            observation.evidence = [
                line.model_copy(update={"where": line.where.model_copy(update={"rank": None})})
                for line in observation.evidence
            ]
    for observation in observer.seen.values():
        judgement = judge(observation, observer.knowledge)
        if judgement.weight > REMARK and judgement.health == "ok":
            continue
        seen.append(
            Seen(
                judgement,
                observation.where,
                observation.evidence,
                observation.count,
                observation.order,
                _said(observation),
            )
        )
    together = judge_together(observer) + compare(observer.job) + missing(observer.job, [*observer.seen.values()])
    for index, (judgement, evidence, because) in enumerate(together):
        seen.append(Seen(judgement, evidence[0].where, evidence, len(evidence), len(seen) + index, because))
    return _in_order(_in_company(seen))


def _unlabelled(line: Evidence) -> Evidence:
    """The line without the host that only its label names: it speaks of another rank."""
    if line.where.node is None or line.where.node != label_in(line.file):
        return line
    return line.model_copy(update={"where": line.where.model_copy(update={"node": None})})


def _in_company(seen: list[Seen]) -> list[Seen]:
    """What an observation means beside the others: a signal of the launcher, an error that one rank alone has."""
    held = {one.evidence[0].file: one for one in seen if one.judgement.name == HELD}
    waiting = {_who(one) for one in seen if one.judgement.name in WAITING} - {None}
    for one in seen:
        stays = held.get(one.evidence[0].file)
        if one.judgement.name == KILLED and stays is not None and not stays.where.contradicts(one.where):
            _weigh(one, ECHO)
            stays.where = one.where
        elif (
            isinstance(one.judgement, Fault)
            and one.judgement.name not in WAITING
            and ECHO - 1 <= one.weight <= ECHO
            and one.judgement.health == "failed"
        ):
            same = {_who(other) for other in seen if other.judgement.name == one.judgement.name}
            if (
                len(same) == 1
                and None not in same
                and len(waiting - same) >= ENOUGH_OTHERS
                and not _told_better(one, seen)
            ):
                _weigh(one, ERROR)
                one.because = "; ".join(
                    part for part in (one.because, "no other rank prints it, the others wait") if part
                )
    return _chained(seen)


def _told_better(one: Seen, seen: list[Seen]) -> bool:
    """Whether another observation of the same line says more."""
    at = (one.evidence[0].file, one.evidence[0].line)
    return any(other.weight < one.weight and (other.evidence[0].file, other.evidence[0].line) == at for other in seen)


def _chained(seen: list[Seen]) -> list[Seen]:
    """Of several errors that one rank raised one after the other the first is the cause, the later ones follow."""
    errors = [
        one
        for one in seen
        if one.weight <= ERROR and one.where.rank is not None and RAISED.search(one.evidence[0].text) is not None
    ]
    for one in errors:
        for other in errors:
            first, later = one.evidence[0], other.evidence[0]
            same = (first.file, one.where.rank) == (later.file, other.where.rank)
            if same and 0 < later.line - first.line <= CHAINED_LINES and one.weight <= ERROR:
                _weigh(one, min(one.weight, other.weight))
                _weigh(other, ECHO)
    return seen


def _who(one: Seen) -> str | None:
    return one.where.rank or one.where.node


def _weigh(one: Seen, weight: int) -> None:
    confidence = "likely" if weight < one.weight else one.judgement.confidence
    one.judgement = one.judgement.model_copy(update={"weight": weight, "confidence": confidence})


def _in_order(seen: list[Seen]) -> list[Seen]:
    """By weight, then by time where all of that weight tell it on clocks that can be compared, else as read."""
    timeline = Timeline.of(evidence for one in seen for evidence in one.evidence)
    for one in seen:
        one.at_s = timeline.at(one.evidence[0])
    untimed = {one.weight for one in seen if one.at_s is None}
    return sorted(seen, key=lambda one: (one.weight, 0.0 if one.weight in untimed else one.at_s, one.order))


def _said(observation: Observation) -> str:
    facts = observation.facts
    if facts.get("what") and observation.judgement.name == PROGRAM:
        return f"it says: {facts['what'][:160]}"
    if facts.get("what"):
        return f"the check says: {facts['what'][:160]}"
    if facts.get("code") and not isinstance(observation.judgement, Xid):
        return f"code {facts['code']} of NVSwitch" + (
            " (LTSSM fault: a link left its trained state)" if facts["code"] == "20034" else ""
        )
    if facts.get("detail") and isinstance(observation.judgement, Xid):
        return f"the line says: {facts['detail'][:120]}"
    return ""


def _fold(roots: list[Seen], seen: list[Seen]) -> tuple[list[Seen], list[Seen]]:
    """One root a place: what else befell the same accelerator, or says the same of the same place, is an echo."""
    kept: list[Seen] = []
    chosen = {id(one) for one in roots}
    echoes = [one for one in seen if id(one) not in chosen and one.weight <= REMARK]
    for root in roots:
        twin = next((one for one in kept if _same_place(one, root) or _same_lines(one, root)), None)
        if twin is None:
            kept.append(root)
            continue
        echoes.append(root)
        if _same_lines(twin, root):
            twin.where = root.where.model_copy(update=twin.where.named())
        if isinstance(root.judgement, Xid) and root.judgement.code == RECOVERY_CODE:
            twin.judgement = twin.judgement.model_copy(update={"action": root.judgement.action})
            twin.because += f"; {root.judgement.cause}"
    return kept, sorted(echoes, key=lambda one: one.order)


def _everywhere(roots: list[Seen], echoes: list[Seen], known: int) -> tuple[list[Seen], list[Seen]]:
    """What most ranks print of their program is no matter of one of them."""
    first = roots[0]
    same = [root for root in roots if root.judgement.name == first.judgement.name]
    ranks = {root.where.rank for root in same} - {None}
    victims = first.judgement.name in WAITING | DISAGREEING
    if victims or first.judgement.scope != "job" or len(ranks) < max(MANY_VICTIMS, known // 2 + 1):
        return roots, echoes
    _unplace(
        first,
        same,
        f"printed by {len(ranks)} ranks ({_listed(ranks)}): the same on all, so it is no matter of one node",
    )
    return [root for root in roots if root is first or root not in same], [*same[1:], *echoes]


def _listed(ranks: set[str | None]) -> str:
    """Ranks, and nodes of which no rank is known.

    >>> _listed({"10", "9", "node-1"})
    'ranks 9, 10, node-1'
    """
    names = sorted((name for name in ranks if name), key=lambda name: (not name.isdigit(), len(name), name))
    shown = ", ".join(names[:SHOWN_RANKS]) + (", ..." if len(names) > SHOWN_RANKS else "")
    return f"ranks {shown}" if names and names[0].isdigit() else shown


def _unplace(first: Seen, same: list[Seen], because: str) -> None:
    """Let one stand for all of its kind, at what place they have in common."""
    nodes = {root.where.node for root in same}
    first.where = Where(node=nodes.pop() if len(nodes) == 1 else None)
    first.because = because
    first.evidence = [line.model_copy(update={"where": first.where}) for line in first.evidence]
    first.count = sum(root.count for root in same)


def _victims(roots: list[Seen], echoes: list[Seen]) -> tuple[list[Seen], list[Seen]]:
    """What several ranks print that wait or do not fit together: none of them is the place."""
    told = [root for root in roots if root.judgement.name not in WAITING | DISAGREEING]
    if told:
        victims = [root for root in roots if root.judgement.name in DISAGREEING]
        return [root for root in roots if root not in victims], [*victims, *echoes]
    ranks = {_who(root) for root in roots} - {None}
    if len(ranks) < MANY_VICTIMS or len({root.judgement.name for root in roots}) > 1:
        return roots, echoes
    first = roots[0]
    _unplace(first, roots, f"printed by {len(ranks)} ranks or nodes ({_listed(ranks)}), none of which is the place")
    return [first], sorted([*roots[1:], *echoes], key=lambda one: one.order)


def _unblame(root: Seen) -> bool:
    """Who prints that it waits is where it is seen, not where it is."""
    if root.judgement.name not in WAITING | DISAGREEING:
        return False
    if root.where.node or root.where.rank:
        said = f"seen {_names(root.where)}, which is not the place"
        root.because = "; ".join(part for part in (root.because, said) if part)
        root.where = Where()
        root.evidence = [line.model_copy(update={"where": root.where}) for line in root.evidence]
    return True


def _same_place(one: Seen, other: Seen) -> bool:
    if one.judgement is other.judgement or one.judgement.name == other.judgement.name:
        return all(a is None or b is None or a == b for a, b in zip(one.place, other.place, strict=True))
    same_node = one.place[0] == other.place[0]
    both = {one.judgement.scope, other.judgement.scope}
    same_accelerator = one.place[1] is not None and one.place[1] == other.place[1]
    return same_node and (both == {"config"} or (same_accelerator and both <= {"accelerator", "link", "job"}))


def _same_lines(one: Seen, other: Seen) -> bool:
    """Whether another message is told by nothing but lines that the one rests on too: it says the same."""
    if not isinstance(one.judgement, Fault | Xid) or not isinstance(other.judgement, Fault | Xid):
        return False
    lines = {(line.file, line.line) for line in one.evidence}
    return (
        one.judgement.action == other.judgement.action
        and all((line.file, line.line) in lines for line in other.evidence)
        and not one.where.contradicts(other.where)
    )


def _finding(root: Seen, echoes: list[Seen]) -> Finding:
    judgement = root.judgement
    place = _place(root)
    parts = [root.because, judgement.because, f"seen {root.count} times" if root.count > 1 else ""]
    return Finding(
        health=judgement.health,
        cause=judgement.cause,
        scope=judgement.scope,
        where=place,
        action=judgement.action,
        confidence=judgement.confidence,
        because="; ".join(part for part in parts if part) or judgement.cause,
        evidence=tuple(root.evidence),
        echoes=_apart_from(root, echoes),
        count=root.count,
        source=judgement.source,
    )


def _apart_from(root: Seen, echoes: list[Seen]) -> tuple[Evidence, ...]:
    """The lines of the echoes, each once, without those that the finding rests on itself."""
    lines = {(one.file, one.line, one.text) for one in root.evidence}
    kept = []
    for evidence in (evidence for echo in echoes for evidence in echo.evidence):
        if (evidence.file, evidence.line, evidence.text) not in lines:
            lines.add((evidence.file, evidence.line, evidence.text))
            kept.append(evidence)
    return tuple(kept[:KEPT_ECHOES])


def _place(root: Seen) -> Where:
    place = root.where
    for evidence in root.evidence:
        if not place.contradicts(evidence.where):
            lacking = {key: value for key, value in evidence.where.named().items() if getattr(place, key) is None}
            place = place.model_copy(update=lacking)
    return place


def _names(place: Where) -> str:
    words = {"node": "on", "accelerator": "GPU", "port": "port", "rank": "rank", "peer": "peer"}
    return ", ".join(f"{words[key]} {value}" for key, value in place.named().items())


def _rank_of_node(node: str, echoes: list[Seen]) -> str | None:
    """The one rank of a node that printed more than that it waits."""
    ranks = {one.where.rank for one in echoes if one.where.node == node and one.weight < ECHO - 1} - {None}
    return ranks.pop() if len(ranks) == 1 else None


def _tells_of(place: Where, one: Seen) -> bool:
    """Whether the node of another observation is that of the place: a part is shared, or the place has none."""
    if one.judgement.name in WAITING or place.contradicts(one.where):
        return False
    parts = [(getattr(place, key), getattr(one.where, key)) for key in ("accelerator", "port", "rank")]
    return any(a and a == b for a, b in parts) or not any(a for a, _ in parts)


def _with_more_names(first: Finding, roots: list[Seen], echoes: list[Seen]) -> Finding:
    """Fill in the node from echoes where the root line names none and they agree on one."""
    place = first.where
    same = [one for one in (*roots, *echoes) if _tells_of(place, one)]
    nodes = {one.where.node for one in same if one.where.node}
    if place.node is None and len(nodes) == 1:
        place = place.model_copy(update={"node": nodes.pop()})
    if place.rank is None and place.node is not None and (rank := _rank_of_node(place.node, echoes)) is not None:
        place = place.model_copy(update={"rank": rank})
    told = sorted({_names(echo.where) for echo in echoes if echo.where.named()})[:6]
    because = first.because + (f"; echoes: {' / '.join(told)}" if told else "")
    return first.model_copy(update={"where": place, "because": because})
