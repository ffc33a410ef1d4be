"""Observations -> findings: the root first, what only echoes it beneath it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterwright.checks.judging import RECOVERY_CODE, judge, judge_together
from clusterwright.health import Evidence, Finding, Where
from clusterwright.knowledge import Xid

if TYPE_CHECKING:
    from clusterwright.checks.observing import Observation, Observer
    from clusterwright.knowledge import Judgement

CAUSE = 2
"""Up to this weight an observation is a cause and a finding of its own."""
REMARK = 7
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
    made = [_finding(root, echoes if index == 0 else []) for index, root in enumerate(roots[:KEPT_FINDINGS])]
    made[0] = _with_more_names(made[0], roots, echoes)
    return made


def _seen(observer: Observer) -> list[Seen]:
    seen = []
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
    for index, (judgement, evidence, because) in enumerate(judge_together(observer)):
        seen.append(Seen(judgement, evidence[0].where, evidence, len(evidence), len(seen) + index, because))
    return _in_order(seen)


def _in_order(seen: list[Seen]) -> list[Seen]:
    """By weight, then by time where all tell it on one clock, else as read."""
    clocks = {one.evidence[0].clock for one in seen}
    timed = len(clocks) == 1 and "" not in clocks
    return sorted(seen, key=lambda one: (one.weight, one.evidence[0].time_s if timed else 0.0, one.order))


def _said(observation: Observation) -> str:
    facts = observation.facts
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
    echoes = [one for one in seen if one not in roots and one.weight <= REMARK]
    for root in roots:
        twin = next((one for one in kept if _same_place(one, root)), None)
        if twin is None:
            kept.append(root)
            continue
        echoes.append(root)
        if isinstance(root.judgement, Xid) and root.judgement.code == RECOVERY_CODE:
            twin.judgement = twin.judgement.model_copy(update={"action": root.judgement.action})
            twin.because += f"; {root.judgement.cause}"
    return kept, sorted(echoes, key=lambda one: one.order)


def _same_place(one: Seen, other: Seen) -> bool:
    if one.judgement.name == other.judgement.name:
        parts = [
            (getattr(one.where, key), getattr(other.where, key))
            for key in ("node", "accelerator", "port", "rank", "peer")
        ]
        return all(a is None or b is None or a == b for a, b in parts)
    same_family = one.judgement.scope in {"accelerator", "link", "job"} and other.judgement.scope in {
        "accelerator",
        "link",
        "job",
    }
    same_accelerator = one.where.accelerator is not None and one.where.accelerator == other.where.accelerator
    same_config = one.judgement.scope == other.judgement.scope == "config" and one.where.node == other.where.node
    return (same_family and same_accelerator and one.where.node == other.where.node) or same_config


def _finding(root: Seen, echoes: list[Seen]) -> Finding:
    judgement = root.judgement
    place = _place(root)
    parts = [root.because, judgement.because, f"seen {root.count} times" if root.count > 1 else "", _names(place)]
    return Finding(
        health=judgement.health,
        cause=judgement.cause,
        scope=judgement.scope,
        where=place,
        action=judgement.action,
        confidence=judgement.confidence,
        because="; ".join(part for part in parts if part) or judgement.cause,
        evidence=tuple(root.evidence),
        echoes=tuple(evidence for echo in echoes for evidence in echo.evidence)[:KEPT_ECHOES],
        count=root.count,
        source=judgement.source,
    )


def _place(root: Seen) -> Where:
    place = root.where.model_dump()
    for evidence in root.evidence:
        for key, value in evidence.where.named().items():
            if place[key] is None:
                place[key] = value
    return Where(**place)


def _names(place: Where) -> str:
    words = {"node": "on node", "accelerator": "GPU", "port": "port", "rank": "rank", "peer": "peer"}
    return ", ".join(f"{words[key]} {value}" for key, value in place.named().items())


def _with_more_names(first: Finding, roots: list[Seen], echoes: list[Seen]) -> Finding:
    """Fill in the node from echoes where the root line names none and they agree on one."""
    nodes = {one.where.node for one in (*roots, *echoes) if one.where.node}
    place = first.where
    if place.node is None and len(nodes) == 1:
        place = place.model_copy(update={"node": nodes.pop()})
    told = sorted({_names(echo.where) for echo in echoes if echo.where.named()})[:6]
    because = first.because + (f"; echoes: {' / '.join(told)}" if told else "")
    return first.model_copy(update={"where": place, "because": because})
