"""An estimate with the factors fitted to one's own runs: each multiplies the parts of a step that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from clusterwright.measurement import Calibration

    Floats = NDArray[np.float64]

FACTORS: dict[str, tuple[str, ...]] = {
    "compute": ("matrix products",),
    "attention": ("attention",),
    "memory_bound": ("memory-bound kernels", "optimizer step"),
    "recompute": ("recompute",),
    "head": ("output head and loss",),
    "launch": ("launch floor",),
    "communication": (
        "tensor-parallel communication",
        "context-parallel communication",
        "expert-parallel communication",
    ),
    "data_parallel": ("data-parallel communication",),
    "pipeline": ("pipeline communication", "pipeline bubble"),
    "overhead": ("fixed time of a step",),
    "stragglers": ("stragglers",),
}
"""Factor of a calibration, and the parts of a step that it multiplies."""
_FACTOR_OF = {part: factor for factor, parts in FACTORS.items() for part in parts}
_LAUNCHED = (*FACTORS["compute"], *FACTORS["attention"], "memory-bound kernels", "recompute",
             "tensor-parallel communication", "expert-parallel communication")  # fmt: skip
"""What runs while the host launches: the launch floor is what the host takes beyond it."""
_ONCE = ("pipeline bubble", "data-parallel communication", "optimizer step", "fixed time of a step", "stragglers")
"""Parts that are not of every micro-batch."""


def calibrated(parts: Mapping[str, Floats], calibration: Calibration) -> dict[str, Floats]:
    """The parts of a step times their factors.

    What follows from other parts follows them here: the launch floor is what the host takes longer than the kernels it
    launches, the bubble goes with the time of a micro-batch, stragglers with the step.

    Args:
        parts: Parts of a step as shipped. [s], any shape
        calibration: Factors fitted to one's own runs.

    Returns:
        The same parts [s].
    """
    found = {name: seconds * _value(calibration, name) for name, seconds in parts.items()}
    if "launch floor" in parts:
        floor = parts["launch floor"]
        host = (floor + _sum(parts, _LAUNCHED)) * calibration.launch.value
        found["launch floor"] = np.where(floor > 0, np.maximum(host - _sum(found, _LAUNCHED), 0.0), 0.0)
    slot = [name for name in parts if name not in _ONCE]
    for name, rest in (("pipeline bubble", slot), ("stragglers", [name for name in parts if name != "stragglers"])):
        if name in parts:
            before = _sum(parts, rest)
            found[name] = found[name] * np.divide(_sum(found, rest), before, out=np.ones_like(before), where=before > 0)
    return found


def spread_of(parts: Mapping[str, Floats], calibration: Calibration) -> Floats:
    r"""Spread of the step time's logarithm that a calibration leaves.

    .. math:: \sigma^2 = \sigma_0^2 + \sum_i (s_i \sigma_i)^2

    with the share :math:`s_i` of the step that a factor multiplies, the factor's spread :math:`\sigma_i`, and what the
    runs left unexplained, :math:`\sigma_0`.

    Args:
        parts: Parts of a step, calibrated. [s], any shape
        calibration: Factors fitted to one's own runs.

    Returns:
        The spread [1], shape of a part.
    """
    step = _sum(parts, parts)
    shares = {factor: _sum(parts, names) / step for factor, names in FACTORS.items()}
    variance = sum((share * getattr(calibration, factor).spread) ** 2 for factor, share in shares.items())
    return np.asarray(np.sqrt(calibration.unexplained**2 + variance), dtype=float)


def _value(calibration: Calibration, part: str) -> float:
    factor: Any = getattr(calibration, _FACTOR_OF[part]) if part in _FACTOR_OF else None
    return 1.0 if factor is None else float(factor.value)


def _sum(parts: Mapping[str, Floats], names: Iterable[str]) -> Floats:
    return np.asarray(sum(parts[name] for name in names if name in parts), dtype=float)
