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
from clusterwright.estimators.observed import score
from clusterwright.measurement import Calibration, Factor, TrainingRun

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.observed import Known

NOISE = 0.03
"""Spread of the logarithm of one run's step time when it is repeated elsewhere."""
PRIORS = {"compute": 0.15, "communication": 0.4, "overhead": 1.0}
"""Spread of the logarithm of each factor before any run is seen: how far stacks differ from the shipped one."""
SLOWEST = 10.0
"""A factor further from one than this is no calibration but another thing."""


@dataclass(frozen=True)
class Fit:
    """A calibration, and the errors before it, after it, and of each run left out of it."""

    calibration: Calibration
    before: float
    after: float
    left_out: float | None
    """Median error of each run when the factors are fitted to the others; none for a single run."""


def calibrate(runs: list[TrainingRun], known: Known) -> Fit:
    """Fit compute, communication and overhead factors to measured step times.

    The sum of squared log errors over `NOISE`, and of squared log factors over `PRIORS`, is least. With few runs the
    priors hold; the spread of a factor is that of the posterior, widened by what the fit leaves unexplained.

    Args:
        runs: Runs of one stack on one cluster, each with a step time.
        known: Accelerators and models.

    Returns:
        The factors with their spread, and the errors before and after.

    Raises:
        InfeasibleError: no run can be scored.
    """
    usable = [run for run in runs if run.number("step_time_s") and _errors([run], Calibration(), known).size]
    if not usable:
        msg = "no run with a step time that can be scored: nothing to calibrate from"
        raise InfeasibleError(msg)
    found = _fit(usable, known)
    before = float(np.median(np.abs(np.expm1(_errors(usable, Calibration(), known)))))
    after = float(np.median(np.abs(np.expm1(_errors(usable, found, known)))))
    left_out = _leave_one_out(usable, known) if len(usable) > 1 else None
    calibration = found.model_copy(update={"error_before": before, "error_after": after})
    return Fit(calibration, before, after, left_out)


def _leave_one_out(runs: list[TrainingRun], known: Known) -> float:
    errors = []
    for i, run in enumerate(runs):
        found = _fit(runs[:i] + runs[i + 1 :], known)
        errors.append(abs(math.expm1(float(_errors([run], found, known)[0]))))
    return statistics.median(errors)


def _errors(runs: list[TrainingRun], calibration: Calibration, known: Known) -> NDArray[np.float64]:
    """Log of estimated over measured step time."""
    scored, _ = score(runs, known, calibration)
    return np.array([math.log(s.step_s / measured) for s in scored if (measured := s.run.number("step_time_s"))])


def _of(logs: NDArray[np.float64], spreads: NDArray[np.float64], runs: int) -> Calibration:
    factors = {
        name: Factor(value=float(np.exp(log)), spread=float(spread))
        for name, log, spread in zip(PRIORS, logs, spreads, strict=True)
    }
    return Calibration(**factors, runs=runs)


def _fit(runs: list[TrainingRun], known: Known) -> Calibration:
    widths = np.array(list(PRIORS.values()))
    nothing = np.zeros(len(widths))

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        errors = _errors(runs, _of(logs, nothing, len(runs)), known)
        return np.concatenate([errors / NOISE, logs / widths])

    bound = math.log(SLOWEST)
    found = least_squares(residuals, nothing, bounds=(-bound, bound), diff_step=[1e-3] * len(widths))
    unexplained = max(1.0, float(np.sqrt(np.mean(found.fun[: len(runs)] ** 2))))
    jacobian = np.asarray(found.jac, dtype=float)
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    spreads = np.sqrt(np.diag(covariance)) * unexplained
    return _of(found.x, spreads, len(runs))


def to_toml(fit: Fit) -> str:
    """The text of a calibration file, as ``--calibration`` reads it."""
    document = tomlkit.document()
    document.add(
        tomlkit.comment("Factors on the shipped efficiencies, fitted to your own runs by `clusterwright calibrate`.")
    )
    calibration = fit.calibration
    document["runs"] = calibration.runs
    document["error_before"] = round(fit.before, 5)
    document["error_after"] = round(fit.after, 5)
    for name in PRIORS:
        factor: Factor = getattr(calibration, name)
        table = tomlkit.table()
        table["value"] = round(factor.value, 5)
        table["spread"] = round(factor.spread, 5)
        document[name] = table
    return tomlkit.dumps(document)
