r"""Interruptions, checkpoints and useful time of a job that any failure stops whole.

Symbols: mean time between interruptions of the whole job :math:`M = 1 / \lambda` (exponential, without memory), useful
work between two checkpoints :math:`\tau`, stall of a save :math:`\delta`, time from a failure to running again
:math:`R`, time after the save until the checkpoint may be used :math:`w` (0 where the save itself waits for it).

Sources: J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; J. T. Daly,
"A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer Systems
22(3), 2006, equations 13, 20 and 37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.units import Count, Seconds, Share

    Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 700.0
_STEPS = 60
"""Newton steps at most; quadratic convergence needs fewer than ten from Daly's start."""


def job_mtbf(accelerators: Count, accelerator_mtbf: Seconds) -> Floats:
    r"""Mean time between interruptions of a job: any accelerator stops it, :math:`M = m / N`.

    Args:
        accelerators: Accelerators of the job, :math:`N` [1], any shape.
        accelerator_mtbf: Accelerator-seconds a failure, :math:`m` [s].

    Returns:
        [s], the broadcast shape.

    >>> float(job_mtbf(16384, 50_677 * 3600.0)) / 3600  # the 3.1 hours of the 16,384-GPU run of Llama 3
    3.093...
    """
    return np.asarray(accelerator_mtbf, dtype=np.float64) / np.asarray(accelerators, dtype=np.float64)


def checkpoint_interval_young_1974(stall: Seconds, mtbf: Seconds) -> Floats:
    r"""First-order optimum of the work between checkpoints, :math:`\tau = \sqrt{2 \delta M}`.

    Args:
        stall: Time that a save stops the job, :math:`\delta` [s], any shape.
        mtbf: Of the job, :math:`M` [s].

    Returns:
        [s], the broadcast shape; good while the stall is far below the MTBF.

    >>> float(checkpoint_interval_young_1974(60.0, 3 * 3600.0))
    1138.4...
    """
    return np.sqrt(2.0 * np.asarray(stall, dtype=np.float64) * np.asarray(mtbf, dtype=np.float64))


def checkpoint_interval_daly_2006(stall: Seconds, mtbf: Seconds) -> Floats:
    r"""Higher-order optimum of the work between checkpoints (equation 37).

    .. math:: \tau = \sqrt{2 \delta M} \left[1 + \frac13 \sqrt{\frac{\delta}{2 M}} + \frac19 \frac{\delta}{2 M}\right]
              - \delta \quad (\delta < 2 M), \qquad \tau = M \quad (\delta \ge 2 M)

    Arguments and returns as :func:`checkpoint_interval_young_1974`.

    >>> float(checkpoint_interval_daly_2006(60.0, 3 * 3600.0))
    1098.7...
    """
    delta, mean = np.asarray(stall, dtype=np.float64), np.asarray(mtbf, dtype=np.float64)
    ratio = delta / (2.0 * mean)
    series = np.sqrt(2.0 * delta * mean) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - delta
    return np.where(ratio < 1.0, series, mean)


def checkpoint_interval_exact(stall: Seconds, mtbf: Seconds) -> Floats:
    r"""The work between checkpoints that maximises :func:`goodput`, without approximation.

    .. math:: 1 - \frac{\tau}{M} = e^{-(\tau + \delta) / M}

    which is :math:`\tau = M \, (1 + W_0(-e^{-1 - \delta / M}))`. Neither :math:`R` nor :math:`w` is in it.

    Arguments and returns as :func:`checkpoint_interval_young_1974`; 0 where a save costs nothing.

    >>> float(checkpoint_interval_exact(60.0, 3 * 3600.0))
    1098.7...
    """
    delta, mean = np.asarray(stall, dtype=np.float64), np.asarray(mtbf, dtype=np.float64)
    x = delta / mean
    # Above the root the function is convex and rising, so that Newton comes down to it without overshooting.
    y = np.minimum(np.sqrt(2.0 * x) + x / 3.0 + 1e-12, 1.0)
    for _ in range(_STEPS):
        value = np.expm1(-(y + x)) + y
        slope = -np.expm1(-(y + x))
        step = np.where(slope > 0, value / np.where(slope > 0, slope, 1.0), 0.0)
        y = np.clip(y - step, 0.0, 1.0)
        if np.all(np.abs(step) <= 1e-14 * np.maximum(y, 1e-300)):
            break
    return np.where(x > 0, y * mean, 0.0)


def goodput(interval: Seconds, stall: Seconds, restart: Seconds, lag: Seconds, mtbf: Seconds) -> Floats:
    r"""Share of the time that is useful work kept.

    .. math:: G = \frac{\tau}{M} \, \frac{e^{-(R + w) / M}}{e^{(\tau + \delta) / M} - 1}

    Daly's complete model (equation 13) per unit of work, failures during restart and save included. A save that is
    written behind the computation is usable :math:`w` after it: a failure then goes back one more checkpoint, which
    costs :math:`w` of work again, so :math:`w` adds to :math:`R`. Valid for :math:`w \le \tau + \delta` (one write in
    flight).

    Args:
        interval: Useful work between saves, :math:`\tau` [s], any shape.
        stall: :math:`\delta` [s].
        restart: From the failure to running again, :math:`R` [s].
        lag: :math:`w` [s].
        mtbf: Of the job, :math:`M` [s].

    Returns:
        [1], the broadcast shape.

    >>> round(float(goodput(1098.7, 60.0, 600.0, 0.0, 3 * 3600.0)), 4)
    0.8497
    """
    tau, delta, gone, late, mean = (np.asarray(a, dtype=np.float64) for a in (interval, stall, restart, lag, mtbf))
    useful = np.where(tau > 0, tau, np.nan) / mean
    # Beyond the largest exponent of a float nothing useful is left anyway.
    cycle = np.minimum((tau + delta) / mean, _LARGEST_EXPONENT)
    share: Floats = useful * np.exp(-(gone + late) / mean) / np.expm1(cycle)
    no_stall_limit = np.exp(-(gone + late) / mean)
    return np.where(tau > 0, share, np.where(delta > 0, 0.0, no_stall_limit))


def spares_needed(mean_down: Count, confidence: Share) -> NDArray[np.int64]:
    r"""Spare nodes so that, with the confidence given, no more are down at once.

    The number under repair is Poisson with mean :math:`a` = failures a second times repair time (an M/G/infinity queue:
    the repair time enters by its mean alone): the least :math:`s` with :math:`P(X \le s) \ge c`.

    Args:
        mean_down: Mean number of nodes down, :math:`a` [1], any shape.
        confidence: :math:`c` [1], below 1.

    Returns:
        [1], the broadcast shape.

    Source: B. A. Sevastyanov, "An ergodic theorem for Markov processes and its application to telephone systems with
    refusals", 1957 (insensitivity).

    >>> spares_needed(np.array([0.0, 0.1, 5.0]), 0.99)
    array([ 0,  1, 11])
    """
    from scipy.special import pdtr, pdtrik  # noqa: PLC0415 - the other laws need no scipy

    mean = np.asarray(mean_down, dtype=np.float64)
    guess = np.ceil(np.nan_to_num(pdtrik(confidence, np.maximum(mean, 1e-300)), nan=0.0, neginf=0.0))
    spares = np.clip(guess, 0.0, 2.0**53)
    # The inverse is rounded: take one off where one fewer suffices as well.
    spares = np.where((spares > 0) & (pdtr(spares - 1.0, mean) >= confidence), spares - 1.0, spares)
    return np.asarray(spares, dtype=np.int64)


def any_bad(nodes: Count, share: Share) -> Floats:
    r"""Probability that a job has at least one bad node, :math:`1 - (1 - q)^n`.

    Args:
        nodes: Nodes of the job, :math:`n`. [1]
        share: Share of nodes that are bad, :math:`q`. [1]

    Returns:
        Probability. [1]

    >>> round(float(any_bad(32, 0.02)), 2)
    0.48
    """
    return np.asarray(1.0 - (1.0 - share) ** np.asarray(nodes, dtype=float))


def availability(mtbf: Seconds, repair: Seconds) -> Floats:
    r"""Share of the time that a job runs which waits for a repair after each interruption: :math:`M / (M + r)`.

    Args:
        mtbf: Running time between interruptions of the job, :math:`M` [s], any shape.
        repair: Mean wait after one, :math:`r` [s]; where only a share of them needs a repair, that share of it.

    Returns:
        [1], the broadcast shape.

    Source: R. E. Barlow and F. Proschan, "Mathematical Theory of Reliability", 1965, chapter 3 (renewal argument).

    >>> float(availability(9 * 3600.0, 3600.0))
    0.9
    """
    mean = np.asarray(mtbf, dtype=np.float64)
    return mean / (mean + np.asarray(repair, dtype=np.float64))


def synchronous_share(speeds: Floats) -> Floats:
    r"""Share of the paid speed that a synchronous job gets: the slowest sets the pace, :math:`\min(v) / \bar v`.

    Args:
        speeds: Speed of each accelerator, the last axis over accelerators [any unit].

    Returns:
        [1], without the last axis.

    >>> round(float(synchronous_share(np.array([1.0] * 383 + [0.95]))), 3)  # one GPU in 384, 5% slow
    0.95
    """
    return np.asarray(np.min(speeds, axis=-1) / np.mean(speeds, axis=-1), dtype=np.float64)
