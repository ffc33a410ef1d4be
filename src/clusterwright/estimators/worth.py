"""What stragglers, mixed kinds and failures cost a run in dollars, and what hot spares and the like would be worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.errors import InputError
from clusterwright.estimators.goodput import SaveMode, estimate_goodput
from clusterwright.facility import Elsewhere, Improvement, MixedKind, Mixture, SparesWorth, Straggler
from clusterwright.laws.reliability import availability, synchronous_share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.hardware import Accelerator, FailureRates

USUAL_STRAGGLER = 0.94
"""Speed of one slow accelerator that was measured, over that of the others: 140 of 149 TFLOP/s, on 384 A100. [1]

Source: https://github.com/bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles.md, 28 April 2022.
"""


def what_would_help(
    accelerators: int,
    checkpoint_bytes: float,
    write_bytes_per_s: float,
    rates: FailureRates,
    *,
    cost_usd: float,
    mode: SaveMode | str = SaveMode.ASYNC,
) -> tuple[Improvement, ...]:
    """What each change alone would save of a sum that is paid by time, at its own best checkpoint interval.

    The useful work is the same, so that the time, and with it the cost, falls as the goodput rises:
    ``cost * (1 - goodput now / goodput then)``.

    Args:
        accelerators: Of the job [1].
        checkpoint_bytes: Of one checkpoint [B].
        write_bytes_per_s: Of the storage [B/s].
        rates: How often things fail, and how long it takes to go on.
        cost_usd: Paid for the run, or for a day of it, as it is now [USD].
        mode: How the job saves now.
    """
    mode = SaveMode(mode)
    now = float(estimate_goodput(accelerators, checkpoint_bytes, write_bytes_per_s, rates, mode=mode).goodput)
    tries = (
        ("asynchronous saves", rates, SaveMode.ASYNC, write_bytes_per_s),
        ("in-memory checkpoints", rates, SaveMode.MEMORY, write_bytes_per_s),
        ("storage twice as fast", rates, mode, 2.0 * write_bytes_per_s),
        ("detection at once", rates.model_copy(update={"detection_s": 0.0}), mode, write_bytes_per_s),
        ("restart in half the time (hot spares)", rates.model_copy(update={"restart_s": rates.restart_s / 2.0}), mode,
         write_bytes_per_s),
        ("half as many failures (burn-in, lemon nodes out)",
         rates.model_copy(update={"mtbf_s": rates.mtbf_s * 2.0 / (1.0 + rates.reclaim_share)}), mode,
         write_bytes_per_s),
        *(("no node taken away (not spot, at the same price)",
           rates.model_copy(update={"mtbf_s": rates.mtbf_s / (1.0 - rates.reclaim_share)}), mode, write_bytes_per_s)
          for _ in range(0 < rates.reclaim_share < 1)),
    )  # fmt: skip
    found = []
    for change, changed, how, rate in tries:
        if how is mode and changed is rates and rate == write_bytes_per_s:
            continue
        then = float(estimate_goodput(accelerators, checkpoint_bytes, rate, changed, mode=how).goodput)
        saves = cost_usd * (1.0 - now / then) if then > 0 else 0.0
        found.append(Improvement(change=change, goodput=then, saves_usd=saves))
    return tuple(found)


def worth_of_spares(
    nodes: int, spares: int, goodput: float, mtbf_s: float, rates: FailureRates, *, cost_usd: float
) -> SparesWorth:
    """What spare nodes save: without them the job, and all that is paid, waits for each repair.

    Args:
        nodes: Of the job [1].
        spares: Beside them [1].
        goodput: With the spares [1].
        mtbf_s: Of the job [s].
        rates: Share of interruptions that take a node out, and how long until it is back.
        cost_usd: Paid for the run, or for a day of it, spares included [USD].
    """
    up = float(availability(mtbf_s, rates.hardware_share * rates.repair_s))
    own = cost_usd * spares / (nodes + spares)
    return SparesWorth(
        spares=spares, cost_usd=own, goodput_without=goodput * up, saves_usd=(cost_usd - own) * (1.0 / up - 1.0) - own
    )


def goodput_elsewhere(
    accelerators: int,
    checkpoint_bytes: float,
    write_bytes_per_s: float,
    rates: FailureRates,
    others: Iterable[tuple[str, float]],
    *,
    mode: SaveMode | str = SaveMode.ASYNC,
) -> tuple[Elsewhere, ...]:
    """The same job where accelerators fail as often as on other clusters; nodes are taken away as often as here.

    Args:
        accelerators: Of the job [1].
        checkpoint_bytes: Of one checkpoint [B].
        write_bytes_per_s: Of the storage [B/s].
        rates: As here.
        others: Names of clusters, with accelerator-seconds of each a failure [s].
        mode: How the job saves.
    """
    found = []
    for name, mtbf_s in others:
        there = rates.model_copy(update={"mtbf_s": 1.0 / (1.0 / mtbf_s + rates.reclaim_share / rates.mtbf_s)})
        useful = estimate_goodput(accelerators, checkpoint_bytes, write_bytes_per_s, there, mode=mode).goodput
        found.append(Elsewhere(cluster=name, mtbf_s=mtbf_s, goodput=float(useful)))
    return tuple(found)


def cost_of_straggler(
    accelerators: int, slowest: float = USUAL_STRAGGLER, *, cost_usd: float | None = None
) -> Straggler:
    """What one slow accelerator costs, at most: a step waits for it wherever it computes.

    Args:
        accelerators: Of the job [1].
        slowest: Speed of the slow one over that of the others [1].
        cost_usd: Paid for the run, or for a day of it [USD].

    >>> cost_of_straggler(384, 0.95, cost_usd=1000.0).lost_usd
    50.0...
    """
    if not 0 < slowest <= 1:
        msg = f"slowest: {slowest} is not above 0 and at most 1"
        raise InputError(msg)
    speeds = np.ones(accelerators)
    speeds[0] = slowest
    share = float(synchronous_share(speeds))
    return Straggler(
        slowest=slowest, synchronous_share=share, lost_usd=None if cost_usd is None else cost_usd * (1.0 - slowest)
    )


def cost_of_mixture(
    counts: Iterable[tuple[Accelerator, int]], *, precision: str = "bf16", usd_per_accelerator_hour: float | None = None
) -> Mixture:
    """What a synchronous job loses that runs on several kinds of accelerator at once: the slowest sets the pace.

    Frameworks deal every accelerator the same share of the batch, so that each does as much in a step as the slowest.

    Args:
        counts: Each kind, and accelerators of it [1].
        precision: Of the matrix products.
        usd_per_accelerator_hour: Mean price [USD].

    Raises:
        InputError: a kind does not know the precision.
    """
    kinds = tuple(_kind(one, count, precision) for one, count in counts)
    speeds = np.repeat([kind.flop_per_s for kind in kinds], [kind.count for kind in kinds])
    share = float(synchronous_share(speeds))
    best = max(kinds, key=lambda kind: kind.count * kind.flop_per_s)
    day = None if usd_per_accelerator_hour is None else 24.0 * len(speeds) * usd_per_accelerator_hour
    return Mixture(
        kinds=kinds,
        synchronous_share=share,
        flop_per_s=share * float(speeds.sum()),
        best_alone=best.accelerator,
        best_alone_flop_per_s=best.count * best.flop_per_s,
        lost_usd_per_day=None if day is None else day * (1.0 - share),
    )


def _kind(accelerator: Accelerator, count: int, precision: str) -> MixedKind:
    """A kind with its speed."""
    peak = accelerator.peak_flop_per_s.get(precision)
    if peak is None:
        msg = f"{accelerator.name} has no {precision}; it has {', '.join(accelerator.peak_flop_per_s)}"
        raise InputError(msg)
    share = accelerator.achievable.get(precision)
    speed = peak * (share or 1.0)
    return MixedKind(accelerator=accelerator.name, count=count, flop_per_s=speed, measured=share is not None)
