"""Readings beside which the tool itself prints the limit: link width and its maximum, temperature and its slowdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.knowledge import Judgement

if TYPE_CHECKING:
    from clusterwright.health import Evidence

NARROW = Judgement(
    name="pcie-narrow",
    cause="the PCIe link of an accelerator is narrower than it can be (link width)",
    because="slot, riser or contact: compare with its siblings, and read it again under load",
    scope="link",
    action="investigate",
    health="degraded",
    weight=4,
    source="https://github.com/leptonai/gpud/tree/4a8de33a3f02e207f39e9023d67125592d599731/components",
)
HOT = Judgement(
    name="over-slowdown-temperature",
    cause="an accelerator is hotter than the temperature at which it slows down: check the cooling",
    scope="accelerator",
    action="investigate",
    weight=2,
    source="https://github.com/leptonai/gpud/blob/4a8de33a3f02e207f39e9023d67125592d599731/components/accelerator/nvidia/temperature/component.go",
)


def over(readings: dict[str, list[Evidence]]) -> list[tuple[Judgement, list[Evidence], str]]:
    """Readings on the wrong side of the limit that was printed for the same accelerator.

    Args:
        readings: Readings by name, as the probes give them.
    """
    together = []
    for now, most in _pairs(readings, "pcie.width", "pcie.width_max"):
        if int(now.value) < int(most.value):
            said = f"GPU {now.where.accelerator}: " if now.where.accelerator else ""
            together.append((NARROW, [now], f"{said}{now.value} of {most.value} lanes"))
    for now, most in _pairs(readings, "temperature.current", "temperature.slowdown"):
        if int(now.value) >= int(most.value):
            together.append((HOT, [now], f"{now.value} C, it slows down at {most.value} C"))
    return together


def _pairs(readings: dict[str, list[Evidence]], now: str, limit: str) -> list[tuple[Evidence, Evidence]]:
    limits = {(one.file, one.where.accelerator): one for one in readings.get(limit, [])}
    return [
        (one, limits[one.file, one.where.accelerator])
        for one in readings.get(now, [])
        if (one.file, one.where.accelerator) in limits
    ]
