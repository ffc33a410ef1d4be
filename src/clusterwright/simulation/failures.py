"""Failures, checkpoints and spares played event by event, seeded: the check on the laws of reliability.

It knows none of their formulas: it draws times between failures and counts the checkpoints that were usable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

REPLICAS = 400
FAILURES = 500
SEED = 20_240_731
_NORMAL_99 = 2.5758
"""Two-sided 99% quantile of the normal distribution."""


@dataclass(frozen=True)
class Simulated:
    """A mean over independent replicas, and how far it may be off."""

    mean: float
    standard_error: float
    replicas: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 99% interval of the mean."""
        return self.mean - _NORMAL_99 * self.standard_error, self.mean + _NORMAL_99 * self.standard_error

    def agrees(self, value: float) -> bool:
        """Whether a value lies in the 99% interval."""
        low, high = self.interval
        return low <= value <= high


def simulate_goodput(  # noqa: PLR0913 - the parts of the system, then of the experiment
    interval_s: float,
    stall_s: float,
    restart_s: float,
    lag_s: float,
    mtbf_s: float,
    *,
    shape: float = 1.0,
    replicas: int = REPLICAS,
    failures: int = FAILURES,
    seed: int = SEED,
) -> Simulated:
    """Share of the time that is useful work kept, over many histories of failures.

    After each failure the job needs ``restart_s`` without another failure, then works ``interval_s``, saves for
    ``stall_s``, and so on; a checkpoint counts from ``lag_s`` after its save. The next failure goes back to the last
    one that counts.

    Args:
        interval_s: Useful work between saves [s].
        stall_s: A save stops the job [s].
        restart_s: From failure to running [s].
        lag_s: After the save, until it may be used [s].
        mtbf_s: Mean time between failures of the job [s].
        shape: Of the Weibull distribution of times between failures [1]; 1 is without memory, below 1 they cluster.
        replicas: Independent histories [1].
        failures: Of each history [1].
        seed: Of the random numbers.

    >>> simulate_goodput(1100.0, 60.0, 600.0, 0.0, 10_800.0).agrees(0.8497)
    True
    """
    random = np.random.default_rng(seed)
    uptime = random.weibull(shape, size=(replicas, failures)) * mtbf_s / math.gamma(1.0 + 1.0 / shape)
    running = np.maximum(uptime - restart_s, 0.0)
    usable = np.floor(np.maximum(running - lag_s, 0.0) / (interval_s + stall_s))
    shares: NDArray[np.float64] = (usable * interval_s).sum(axis=1) / uptime.sum(axis=1)
    # A ratio of two sums over the same history is biased by about 1 / failures; the pooled ratio is far less so.
    pooled = float((usable * interval_s).sum() / uptime.sum())
    # Where hardly a checkpoint was reached the spread says nothing: one more would change the share by this.
    resolution = float(interval_s / uptime.sum())
    return Simulated(pooled, max(float(shares.std(ddof=1) / math.sqrt(replicas)), resolution), replicas)


def simulate_shortage(
    spares: int,
    failures_per_s: float,
    repair_s: float,
    *,
    exponential: bool = False,
    replicas: int = REPLICAS,
    failures: int = FAILURES,
    seed: int = SEED,
) -> Simulated:
    """Share of failures that find every spare node down already, so that the job waits for a repair.

    Args:
        spares: Spare nodes [1].
        failures_per_s: Failures that take a node out [1/s].
        repair_s: Mean time until such a node is back [s].
        exponential: Repair times without memory instead of all equal.
        replicas: Independent histories [1].
        failures: Of each history [1].
        seed: Of the random numbers.
    """
    random = np.random.default_rng(seed)
    at = np.cumsum(random.exponential(1.0 / failures_per_s, size=(replicas, failures)), axis=1)
    length = random.exponential(repair_s, size=at.shape) if exponential else np.full(at.shape, repair_s)
    back = at + length
    short = np.zeros(replicas)
    # The start is empty: leave out the failures of the first ten repair times.
    settled = at > 10.0 * repair_s
    for replica in range(replicas):
        down = np.arange(failures) - np.searchsorted(np.sort(back[replica]), at[replica], side="right")
        seen = settled[replica]
        short[replica] = float(np.mean(down[seen] >= spares)) if seen.any() else math.nan
    short = short[~np.isnan(short)]
    if short.size < 2:  # noqa: PLR2004 - an error needs two
        msg = "no history is longer than ten repair times; ask for more failures"
        raise ValueError(msg)
    return Simulated(float(short.mean()), float(short.std(ddof=1) / math.sqrt(short.size)), int(short.size))
