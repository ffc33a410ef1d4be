"""An estimate with what was fitted to one's own runs: factors on the parts of a step, and what runs like it gained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from clusterwright.estimators.grid import Layouts
    from clusterwright.estimators.job import Job
    from clusterwright.measurement import Calibration

    Floats = NDArray[np.float64]

FACTORS: dict[str, tuple[str, ...]] = {
    "compute": ("matrix products",),
    "attention": ("attention",),
    "memory_bound": (
        "memory-bound kernels",
        "optimizer step",
        "optimizer on the host",
        "activations to the host",
    ),
    "recompute": ("recompute",),
    "head": ("output head and loss",),
    "launch": ("launch floor",),
    "communication": (
        "tensor-parallel communication",
        "context-parallel communication",
        "expert-parallel communication",
        "tensor-parallel waits",
    ),
    "data_parallel": ("data-parallel communication",),
    "pipeline": ("pipeline communication", "pipeline bubble"),
    "overhead": ("fixed time of a step",),
    "stragglers": ("stragglers", "stalled messages"),
}
"""Factor of a calibration, and the parts of a step that it multiplies."""
FADING = {
    "peak_flop_per_s": 0.5,
    "hidden": 3.0,
    "head_size": 1.0,
    "layers": 4.0,
    "experts": 1.0,
    "adapters": 1.0,
    "precision_bits": 0.4,
    "sequence_length": 6.0,
    "micro_batch_tokens": 6.0,
    "micro_batches": 12.0,
    "tp": 0.7,
    "pp": 1.0,
    "accelerators": 16.0,
    "recompute": 1.0,
}
"""Coordinates of a run, and how many doublings of each make two runs unlike (by a factor of e)."""
LOCAL = 0.06
"""Spread of the logarithm of what is left of runs that are alike, before any run is seen."""
_BITS = {"fp8": 8.0, "mxfp8": 8.0, "nvfp4": 4.0}
_FACTOR_OF = {part: factor for factor, parts in FACTORS.items() for part in parts}
_LAUNCHED = (*FACTORS["compute"], *FACTORS["attention"], "memory-bound kernels", "recompute", *FACTORS["head"],
             *FACTORS["communication"][:3])  # fmt: skip
"""What runs while the host launches: the launch floor is what the host takes beyond it."""
_ONCE = ("pipeline bubble", "data-parallel communication", "optimizer step", "fixed time of a step", "stragglers",
         "stalled messages", "optimizer on the host")  # fmt: skip
"""Parts that are not of every micro-batch."""


def place_of(job: Job, lay: Layouts) -> dict[str, Floats]:
    """Coordinates of a job in each layout, all above zero [1], shape (n,)."""
    mixer = job.model.blocks[-1].mixer
    whole = {
        "peak_flop_per_s": max(job.accelerator.peak_flop_per_s.get(name, 0.0) for name in ("bf16", "fp16")),
        "hidden": job.model.hidden,
        "head_size": getattr(mixer, "head_size", 1),
        "layers": job.model.layers,
        "experts": max(job.model.experts, 1),
        "adapters": 1.0 if job.method == "full" else 8.0,
        "precision_bits": _BITS.get(job.precision, 16.0),
        "sequence_length": job.sequence_length,
        "micro_batch_tokens": lay.micro_batch * job.sequence_length / lay.cp,
        "micro_batches": lay.micro_batches,
        "tp": lay.tp,
        "pp": lay.pp,
        "accelerators": lay.accelerators,
        "recompute": 2.0**lay.recompute,
    }
    return {name: np.asarray(value + 0.0 * lay.tp, dtype=float) for name, value in whole.items()}


def likeness(place: Mapping[str, Floats], other: Mapping[str, float]) -> Floats:
    r"""How alike runs are to another one.

    .. math:: s = \exp \Big( - \sum_i |\log_2 (x_i / y_i)| / \ell_i \Big)

    Args:
        place: Coordinates :math:`x`. [1], shape (n,)
        other: Coordinates :math:`y` of one run.

    Returns:
        From 0, nothing in common, to 1, the same [1], shape (n,); with `FADING` :math:`\ell`.
    """
    far = sum(np.abs(np.log2(place[name] / other[name])) / length for name, length in FADING.items())
    return np.asarray(np.exp(-far), dtype=float)


def calibrated(
    parts: Mapping[str, Floats], calibration: Calibration, place: Mapping[str, Floats] | None = None
) -> dict[str, Floats]:
    """The parts of a step times their factors, and times what runs like it gained.

    What follows from other parts follows them here: the launch floor is what the host takes longer than the kernels it
    launches, the bubble goes with the time of a micro-batch without the output head, stragglers with the step.

    Args:
        parts: Parts of a step as shipped. [s], shape (n,)
        calibration: What was fitted to one's own runs.
        place: Coordinates of the steps; none: the factors alone.

    Returns:
        The same parts [s].
    """
    found = {name: seconds * _value(calibration, name) for name, seconds in parts.items()}
    host: Any = 0.0
    if "launch floor" in parts:
        floor = parts["launch floor"]
        host = np.where(floor > 0, floor + _sum(parts, _LAUNCHED), 0.0)
        found["launch floor"] = np.maximum(host * calibration.launch.value - _sum(found, _LAUNCHED), 0.0)
    step = [name for name in parts if name not in {"stragglers", "stalled messages"}]
    _follow(found, "pipeline bubble", _other_stage(parts, host), _other_stage(found, host * calibration.launch.value))
    _follow(found, "stragglers", _sum(parts, step), _sum(found, step))
    if place is None or not calibration.like:
        return found
    gain = np.exp(sum(run.weight * likeness(place, run.place) for run in calibration.like))
    return {name: seconds if name == "stalled messages" else seconds * gain for name, seconds in found.items()}


def _other_stage(parts: Mapping[str, Floats], host: Any) -> Floats:  # noqa: ANN401 - array or number
    """Time of the micro-batches on a stage without the output head: what the host launches, and the rest [s]."""
    launched = [name for name in _LAUNCHED if name not in FACTORS["head"]]
    apart = {*_ONCE, *_LAUNCHED, "launch floor"}
    rest = _sum(parts, [name for name in parts if name not in apart])
    return np.asarray(np.maximum(_sum(parts, launched), host) + rest, dtype=float)


def _follow(found: dict[str, Floats], name: str, before: Floats, after: Floats) -> None:
    """Let one part grow as what it goes with did."""
    if name in found:
        found[name] = found[name] * np.divide(after, before, out=np.ones_like(after), where=before > 0)


def spread_of(parts: Mapping[str, Floats], calibration: Calibration, place: Mapping[str, Floats]) -> Floats:
    r"""Spread of the step time's logarithm that a calibration leaves.

    .. math:: \sigma^2 = \sigma_0^2 + \min \Big( \sum_i (a_i \sigma_i)^2 + \sigma_l^2,\
              \min_r \sum_i ((a_i - a_{ri}) \sigma_i)^2 + 2 \sigma_l^2 (1 - s_r) \Big)

    with the share :math:`a_i` of the step that a factor multiplies, the factor's spread :math:`\sigma_i`, the noise of
    a run :math:`\sigma_0`, `LOCAL` :math:`\sigma_l`, and for each run fitted to its likeness :math:`s_r` and its
    shares. That is the variance by the factors alone or, where that is less, of the difference from one of the runs.

    Args:
        parts: Parts of a step, calibrated. [s], shape (n,)
        calibration: What was fitted to one's own runs.
        place: Coordinates of the steps.

    Returns:
        The spread [1], shape (n,).
    """
    spreads = {factor: getattr(calibration, factor).spread for factor in FACTORS}
    shares = shares_of(parts)
    variance = sum((share * spreads[factor]) ** 2 for factor, share in shares.items()) + LOCAL**2
    for run in calibration.like:
        apart = sum(((share - run.shares[factor]) * spreads[factor]) ** 2 for factor, share in shares.items())
        variance = np.minimum(variance, apart + 2 * LOCAL**2 * (1 - likeness(place, run.place)))
    return np.asarray(np.sqrt(calibration.unexplained**2 + variance), dtype=float)


def shares_of(parts: Mapping[str, Floats]) -> dict[str, Floats]:
    """Share of a step that each factor multiplies [1], shape (n,)."""
    step = _sum(parts, parts)
    return {factor: _sum(parts, names) / step for factor, names in FACTORS.items()}


def _value(calibration: Calibration, part: str) -> float:
    factor: Any = getattr(calibration, _FACTOR_OF[part]) if part in _FACTOR_OF else None
    return 1.0 if factor is None else float(factor.value)


def _sum(parts: Mapping[str, Floats], names: Iterable[str]) -> Floats:
    return np.asarray(sum(parts[name] for name in names if name in parts), dtype=float)
