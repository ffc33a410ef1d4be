"""What was measured against what the plan expects: bus bandwidth between nodes, time of a step, size of the job."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from clusterwright.health import Finding

if TYPE_CHECKING:
    from clusterwright.health import Evidence
    from clusterwright.plan import Plan

ENOUGH = 0.7
"""Share of the expected bus bandwidth under which a path is slow."""

PACES = (
    "training.step_time_s", "training.tokens_per_s_per_accelerator", "training.samples_per_s", "training.steps_per_s",
)  # fmt: skip
"""Readings that tell the time of a step, the plainest first."""


def against(plan: Plan, readings: dict[str, list[Evidence]]) -> list[Finding]:
    """How far off the plan the readings are; nothing where they hold.

    Args:
        plan: What was expected.
        readings: Readings by name, as the probes give them.
    """
    return (
        _bus_bandwidth(plan, readings.get("nccl_tests.busbw", []))
        + _step_time(plan, readings)
        + _size(plan, readings.get("job.world", []))
    )


def _bus_bandwidth(plan: Plan, measured: list[Evidence]) -> list[Finding]:
    node = plan.hardware_node
    if node is None or not node.nics or not measured:
        return []
    best = max(measured, key=lambda evidence: float(evidence.value))
    expected = node.nics * node.nic_bits_per_s / 8
    share = float(best.value) * 1e9 / expected
    if share >= ENOUGH:
        return []
    said = f"{best.value} GB/s of {expected / 1e9:.0f} GB/s that the ports of a {node.name} carry"
    return [_finding(f"bus bandwidth is {share:.0%} of what the plan's network carries", "fabric", said, [best])]


def _step_time(plan: Plan, readings: dict[str, list[Evidence]]) -> list[Finding]:
    if plan.chosen is None:
        return []
    name, measured = next(((name, readings[name]) for name in PACES if readings.get(name)), ("", []))
    if not measured:
        return []
    value = statistics.median(float(evidence.value) for evidence in measured)
    if value <= 0:
        return []
    estimate = plan.chosen.estimate
    tokens = estimate.tokens_per_s * estimate.step_time_s
    seconds = {
        "training.step_time_s": value,
        "training.steps_per_s": 1 / value,
        "training.tokens_per_s_per_accelerator": tokens / (value * plan.chosen.accelerators),
        "training.samples_per_s": plan.chosen.layout.global_batch / value,
    }[name]
    limit = estimate.interval[1]
    if seconds <= limit:
        return []
    said = f"a step takes {seconds:.3g} s in the median, expected {estimate.step_time_s:.3g} s, at most {limit:.3g} s"
    return [
        _finding(f"steps are {seconds / estimate.step_time_s - 1:.0%} slower than planned", "job", said, measured[:3])
    ]


def _size(plan: Plan, said: list[Evidence]) -> list[Finding]:
    largest = max(said, key=lambda evidence: int(evidence.value), default=None)
    if plan.chosen is None or largest is None or not 0 < int(largest.value) < plan.chosen.accelerators:
        return []
    planned = plan.chosen.accelerators
    lacking = (planned - int(largest.value)) / (planned // plan.chosen.nodes)
    because = f"{largest.value} ranks run, the plan has {planned} accelerators: {lacking:.3g} nodes are not in it"
    cause = f"the job runs on {largest.value} of {planned} accelerators of the plan"
    return [_finding(cause, "job", because, [largest])]


def _finding(cause: str, scope: str, because: str, evidence: list[Evidence]) -> Finding:
    return Finding.model_validate({
        "health": "degraded", "cause": cause, "scope": scope, "action": "investigate", "confidence": "likely",
        "because": because, "evidence": tuple(evidence),
    })  # fmt: skip
