"""Fit the named factors to one's own runs, held towards the shipped ones."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import tomlkit

from clusterwright.errors import InfeasibleError
from clusterwright.estimators.calibrated import FADING, LOCAL, calibrated, likeness, shares_of, spread_of
from clusterwright.estimators.observed import score
from clusterwright.estimators.training import INTERVAL_80
from clusterwright.measurement import Calibration, Factor, Like, TrainingRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from clusterwright.estimators.observed import Known, Scored

    Floats = NDArray[np.float64]

NOISE = 0.01
"""Spread of the logarithm of one run's step time when it is repeated."""
ODD = 3.0
"""A run that is further off than so many spreads from what the others say of it counts as much less sure."""
PRIORS = {
    "compute": 0.1,
    "attention": 0.15,
    "memory_bound": 0.2,
    "recompute": 0.2,
    "head": 0.2,
    "launch": 0.35,
    "communication": 0.35,
    "data_parallel": 0.5,
    "pipeline": 0.35,
    "overhead": 0.5,
    "stragglers": 0.7,
}
"""Spread of the logarithm of each factor before any run is seen: how far stacks differ from the shipped one."""
SLOWEST = math.log(10.0)
"""Of a factor's logarithm: further from one it is no calibration but another thing."""
ROUNDS = 6
"""Times that the fit is made linear again."""


@dataclass(frozen=True)
class Fit:
    """A calibration, the errors before it, after it and of each run left out, and what it does to the interval."""

    calibration: Calibration
    before: float
    after: float
    left_out: float | None
    """Median error of each run when the factors are fitted to the others; none for a single run."""
    interval_before: float
    """Median half width of the 80% interval, as a share of the estimate."""
    interval_after: float
    interval_left_out: float | None
    """The same of each run when it is left out."""


@dataclass(frozen=True)
class _Steps:
    """Measured step times [s], and the parts of the estimated ones, of the same runs."""

    measured: Floats
    parts: dict[str, Floats]

    place: dict[str, Floats]
    """Coordinates of the runs."""

    @staticmethod
    def of(scored: Sequence[Scored]) -> _Steps:
        names = dict.fromkeys(name for item in scored for name in item.parts)
        parts = {name: np.array([item.parts.get(name, 0.0) for item in scored]) for name in names}
        places = [item.place for item in scored]
        place = {name: np.array([each[name] for each in places]) for name in FADING}
        return _Steps(np.array([item.run.number("step_time_s") for item in scored]), parts, place)

    def only(self, chosen: NDArray[np.bool_]) -> _Steps:
        parts, place = ({name: v[chosen] for name, v in each.items()} for each in (self.parts, self.place))
        return _Steps(self.measured[chosen], parts, place)

    def errors(self, calibration: Calibration) -> Floats:
        """Logarithm of estimated over measured."""
        step = sum(calibrated(self.parts, calibration, self.place).values())
        return np.asarray(np.log(step / self.measured), dtype=float)

    def at(self, i: int) -> dict[str, float]:
        """Coordinates of one run."""
        return {name: float(values[i]) for name, values in self.place.items()}


def calibrate(runs: Sequence[TrainingRun], known: Known) -> Fit:
    r"""Fit a factor for each kind of part of a step to measured step times, and what they leave of runs that are alike.

    .. math:: \ln m_r = \ln t_r(f) + g(x_r) + \epsilon

    with :math:`\ln f_i` normal around 0 with the spread `PRIORS`, :math:`g` a Gaussian process over the coordinates of
    a run with the spread `LOCAL` and the likeness of two runs as its correlation, and :math:`\epsilon` the `NOISE`.
    The posterior's mean is found by making the factors linear, solving, and doing it again. With few runs the priors
    hold; a run that the others contradict counts as less sure, so that it does not turn the estimate over.

    Args:
        runs: Runs of one stack on one cluster, each with a step time.
        known: Accelerators and models.

    Returns:
        The factors with their spread, the errors and the interval before and after.

    Raises:
        InfeasibleError: no run can be scored.

    Sources:
        Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), section 2.7.
    """
    scored = _scored(runs, known)
    if not scored:
        msg = "no run with a step time that can be scored: nothing to calibrate from"
        raise InfeasibleError(msg)
    steps = _Steps.of(scored)
    left_out, spreads = _leave_one_out(steps) if len(scored) > 1 else (None, None)
    before = _median_error(scored)
    fitted = _fit(steps).model_copy(update={"error_before": before})
    again = _scored(runs, known, fitted)
    after = _median_error(again)
    return Fit(
        fitted.model_copy(update={"error_after": after}),
        before,
        after,
        None if left_out is None else float(np.median(np.abs(np.expm1(left_out)))),
        _half_width(_spreads(scored)),
        _half_width(_spreads(again)),
        None if spreads is None else _half_width(np.minimum(spreads, _spreads(scored))),
    )


def _scored(runs: Iterable[TrainingRun], known: Known, calibration: Calibration | None = None) -> list[Scored]:
    scored, _ = score((run for run in runs if run.number("step_time_s")), known, calibration)
    return scored


def _median_error(scored: Iterable[Scored]) -> float:
    return statistics.median(abs(item.step_s / item.run.numbers["step_time_s"] - 1) for item in scored)


def _spreads(scored: Iterable[Scored]) -> Floats:
    return np.array([math.log(item.high_s / item.low_s) / (2 * INTERVAL_80) for item in scored])


def _half_width(spreads: Floats) -> float:
    return math.expm1(INTERVAL_80 * float(np.median(spreads)))


def _leave_one_out(steps: _Steps) -> tuple[Floats, Floats]:
    """Error of each run, logarithmic, and its spread, by what is fitted to the others."""
    errors, spreads = [], []
    for i in range(len(steps.measured)):
        left = np.arange(len(steps.measured)) == i
        one, found = steps.only(left), _fit(steps.only(~left))
        errors.append(float(one.errors(found)[0]))
        spreads.append(float(spread_of(calibrated(one.parts, found, one.place), found, one.place)[0]))
    return np.array(errors), np.array(spreads)


def _fit(steps: _Steps) -> Calibration:
    widths = np.array(list(PRIORS.values()))
    runs = len(steps.measured)
    alike = LOCAL**2 * np.array([likeness(steps.place, steps.at(i)) for i in range(runs)])
    logs = np.zeros(len(widths))
    for _ in range(ROUNDS):
        slopes, errors = _linear(steps, logs)
        target = slopes @ logs - errors
        pull, inverse = _posterior((slopes * widths**2) @ slopes.T + alike, target)
        moved = np.clip(widths**2 * (slopes.T @ pull), -SLOWEST, SLOWEST)
        done = float(np.abs(moved - logs).max()) < NOISE / 100
        logs = moved
        if done:
            break
    seen = widths**2 * np.einsum("ri,rs,si->i", slopes, inverse, slopes)
    spreads = widths * np.sqrt(np.maximum(1 - seen, 0.0))
    fitted = _factors(logs, spreads)
    shares = shares_of(calibrated(steps.parts, fitted))
    like = tuple(
        Like(weight=LOCAL**2 * float(pull[i]), place=steps.at(i), shares={k: float(v[i]) for k, v in shares.items()})
        for i in range(runs)
    )
    return fitted.model_copy(update={"runs": runs, "like": like, "unexplained": NOISE})


def _posterior(covariance: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Pull of each run (inverse covariance times target), and the inverse covariance, noise included."""
    noise = np.full(len(target), NOISE)
    for _ in range(ROUNDS):
        inverse = np.asarray(np.linalg.inv(covariance + np.diag(noise**2)), dtype=float)
        pull = inverse @ target
        off = np.abs(pull / np.diag(inverse))  # from what the other runs say
        spread = np.sqrt(np.maximum(1 / np.diag(inverse) - noise**2, 0.0) + NOISE**2)
        odd = np.where(off > ODD * spread, off, NOISE)
        if np.allclose(odd, noise, rtol=0.01):
            break
        noise = odd
    return pull, inverse


def _linear(steps: _Steps, logs: Floats) -> tuple[Floats, Floats]:
    """Slopes of the logarithm of a step time by those of the factors, shape (runs, factors), and the errors."""
    errors = steps.errors(_factors(logs))
    step = 1e-4
    moved = [steps.errors(_factors(logs + step * one)) for one in np.eye(len(logs))]
    return (np.array(moved).T - errors[:, None]) / step, errors


def _factors(logs: Floats, spreads: Floats | None = None) -> Calibration:
    of = np.zeros(len(logs)) if spreads is None else spreads
    factors = {
        name: Factor(value=float(np.exp(log)), spread=float(spread))
        for name, log, spread in zip(PRIORS, logs, of, strict=True)
    }
    return Calibration(**factors)


def to_toml(fit: Fit) -> str:
    """The text of a calibration file, as ``--calibration`` reads it."""
    document = tomlkit.document()
    document.add(tomlkit.comment("Factors on the parts of a step, fitted to your runs by `clusterwright calibrate`."))
    document.add(tomlkit.comment("A spread is the standard deviation of a factor's logarithm."))
    calibration = fit.calibration
    document["runs"] = calibration.runs
    document["error_before"] = round(fit.before, 5)
    document["error_after"] = round(fit.after, 5)
    document["unexplained"] = round(calibration.unexplained, 5)
    for name in PRIORS:
        factor: Factor = getattr(calibration, name)
        table = tomlkit.table()
        table["value"] = round(factor.value, 5)
        table["spread"] = round(factor.spread, 5)
        document[name] = table
    like = tomlkit.aot()
    for run in calibration.like:
        table = tomlkit.table()
        table["weight"] = round(run.weight, 6)
        for key, values in (("place", run.place), ("shares", run.shares)):
            table[key] = tomlkit.inline_table()
            table[key].update({name: round(value, 4) for name, value in values.items()})
        like.append(table)
    document["like"] = like
    return tomlkit.dumps(document)
