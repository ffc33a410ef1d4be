"""What was measured against what the plan expects: bus bandwidth between nodes, time of a step."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from clusterwright.health import Finding

if TYPE_CHECKING:
    from clusterwright.health import Evidence
    from clusterwright.plan import Plan

ENOUGH = 0.7
"""Share of the expected bus bandwidth under which a path is slow."""


def against(plan: Plan, readings: dict[str, list[Evidence]]) -> list[Finding]:
    """How far off the plan the readings are; nothing where they hold.

    Args:
        plan: What was expected.
        readings: Readings by name, as the probes give them.
    """
    return _bus_bandwidth(plan, readings.get("nccl_tests.busbw", [])) + _step_time(
        plan, readings.get("training.step_time_ms", [])
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


def _step_time(plan: Plan, measured: list[Evidence]) -> list[Finding]:
    if plan.chosen is None or not measured:
        return []
    seconds = statistics.median(float(evidence.value) for evidence in measured) / 1e3
    estimate = plan.chosen.estimate
    if seconds <= estimate.interval[1]:
        return []
    limit = estimate.interval[1]
    said = f"a step takes {seconds:.3g} s in the median, expected {estimate.step_time_s:.3g} s, at most {limit:.3g} s"
    return [
        _finding(f"steps are {seconds / estimate.step_time_s - 1:.0%} slower than planned", "job", said, measured[:3])
    ]


def _finding(cause: str, scope: str, because: str, evidence: list[Evidence]) -> Finding:
    return Finding.model_validate({
        "health": "degraded", "cause": cause, "scope": scope, "action": "investigate", "confidence": "likely",
        "because": because, "evidence": tuple(evidence),
    })  # fmt: skip
