"""Fit the named factors to one's own runs, held towards the shipped ones."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import tomlkit
from scipy.optimize import least_squares

from clusterwright.errors import InfeasibleError
from clusterwright.estimators.calibrated import calibrated
from clusterwright.estimators.observed import score
from clusterwright.measurement import Calibration, Factor, TrainingRun

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from clusterwright.estimators.observed import Known, Scored

    Floats = NDArray[np.float64]

NOISE = 0.01
"""Spread of the logarithm of one run's step time when it is repeated."""
ODD = 1.5
"""Error, in units of `NOISE`, from which on a run pulls with the same force however far off it is (Huber)."""
PRIORS = {
    "compute": 0.15,
    "attention": 0.2,
    "memory_bound": 0.3,
    "recompute": 0.3,
    "head": 0.3,
    "launch": 0.5,
    "communication": 0.5,
    "data_parallel": 0.7,
    "pipeline": 0.5,
    "overhead": 0.7,
    "stragglers": 1.0,
}
"""Spread of the logarithm of each factor before any run is seen: how far stacks differ from the shipped one."""
SLOWEST = 10.0
"""A factor further from one than this is no calibration but another thing."""
INTERVAL_80 = 1.2816
"""Standard deviations on either side that hold 80% of a normal distribution."""


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


@dataclass(frozen=True)
class _Steps:
    """Measured step times [s], and the parts of the estimated ones, of the same runs."""

    measured: Floats
    parts: dict[str, Floats]

    @staticmethod
    def of(scored: Sequence[Scored]) -> _Steps:
        names = dict.fromkeys(name for item in scored for name in item.parts)
        parts = {name: np.array([item.parts.get(name, 0.0) for item in scored]) for name in names}
        return _Steps(np.array([item.run.number("step_time_s") for item in scored]), parts)

    def only(self, chosen: NDArray[np.bool_]) -> _Steps:
        return _Steps(self.measured[chosen], {name: seconds[chosen] for name, seconds in self.parts.items()})

    def errors(self, calibration: Calibration) -> Floats:
        """Logarithm of estimated over measured."""
        step = sum(calibrated(self.parts, calibration).values())
        return np.asarray(np.log(step / self.measured), dtype=float)


def calibrate(runs: Sequence[TrainingRun], known: Known) -> Fit:
    r"""Fit one factor for each kind of part of a step to measured step times.

    .. math:: \min_f \sum_r \rho\!\left(\frac{\ln (t_r(f) / m_r)}{\sigma}\right)
              + \sum_i \rho\!\left(\frac{\ln f_i}{w_i}\right)

    with Huber's :math:`\rho` (one odd run does not turn the estimate over), `NOISE` :math:`\sigma` and `PRIORS`
    :math:`w`. With few runs the priors hold; the spread of a factor is that of the posterior. What the factors leave
    unexplained is taken from the errors of the runs that were left out.

    Args:
        runs: Runs of one stack on one cluster, each with a step time.
        known: Accelerators and models.

    Returns:
        The factors with their spread, the errors and the interval before and after.

    Raises:
        InfeasibleError: no run can be scored.
    """
    scored = _scored(runs, known)
    if not scored:
        msg = "no run with a step time that can be scored: nothing to calibrate from"
        raise InfeasibleError(msg)
    steps = _Steps.of(scored)
    found = _fit(steps)
    left_out = _leave_one_out(steps) if len(scored) > 1 else None
    unexplained = _unexplained(found[1] if left_out is None else left_out)
    before = _median_error(item.step_s / item.run.numbers["step_time_s"] - 1 for item in scored)
    fitted = _of(*found[::2], len(scored)).model_copy(update={"unexplained": unexplained, "error_before": before})
    again = _scored(runs, known, fitted)
    after = _median_error(item.step_s / item.run.numbers["step_time_s"] - 1 for item in again)
    return Fit(
        fitted.model_copy(update={"error_after": after}),
        before,
        after,
        None if left_out is None else _median_error(np.expm1(left_out)),
        _half_width(scored),
        _half_width(again),
    )


def _scored(runs: Iterable[TrainingRun], known: Known, calibration: Calibration | None = None) -> list[Scored]:
    scored, _ = score((run for run in runs if run.number("step_time_s")), known, calibration)
    return scored


def _median_error(errors: Iterable[float]) -> float:
    return float(statistics.median(map(abs, errors)))


def _half_width(scored: Iterable[Scored]) -> float:
    return float(statistics.median((item.high_s / item.low_s) ** 0.5 - 1 for item in scored))


def _unexplained(errors: Floats) -> float:
    """Spread whose 80% interval holds 80% of the errors."""
    return max(NOISE, float(np.quantile(np.abs(errors), 0.8)) / INTERVAL_80)


def _leave_one_out(steps: _Steps) -> Floats:
    """Error of each run, logarithmic, by the factors that are fitted to the others."""
    errors = []
    for i in range(len(steps.measured)):
        left = np.arange(len(steps.measured)) == i
        logs, _, spreads = _fit(steps.only(~left))
        errors.append(float(steps.only(left).errors(_of(logs, spreads, 0))[0]))
    return np.array(errors)


def _of(logs: Floats, spreads: Floats, runs: int) -> Calibration:
    factors = {
        name: Factor(value=float(np.exp(log)), spread=float(spread))
        for name, log, spread in zip(PRIORS, logs, spreads, strict=True)
    }
    return Calibration(**factors, runs=runs)


def _fit(steps: _Steps) -> tuple[Floats, Floats, Floats]:
    """Logarithms of the factors, errors that they leave, and spreads of the logarithms."""
    widths = np.array(list(PRIORS.values()))
    nothing = np.zeros(len(widths))

    def residuals(logs: Floats) -> Floats:
        return np.concatenate([steps.errors(_of(logs, nothing, 0)) / NOISE, logs / widths])

    bound = math.log(SLOWEST)
    steps_of = [1e-3] * len(widths)
    found = least_squares(residuals, nothing, bounds=(-bound, bound), loss="huber", f_scale=ODD, diff_step=steps_of)
    logs = np.asarray(found.x, dtype=float)
    errors = steps.errors(_of(logs, nothing, 0))
    # what the runs say of the factors is as sure as the runs agree, what was known before stays as it was
    runs = len(errors)
    jacobian = np.asarray(found.jac, dtype=float)[:runs] * (NOISE / max(NOISE, _unexplained(errors)))
    covariance = np.linalg.inv(jacobian.T @ jacobian + np.diag(widths**-2.0))
    return logs, errors, np.sqrt(np.diag(covariance))


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
    return tomlkit.dumps(document)
