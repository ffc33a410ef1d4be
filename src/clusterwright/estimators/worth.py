"""What hot spares, faster detection, in-memory checkpoints and the like would be worth to a run, in dollars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.estimators.goodput import SaveMode, estimate_goodput
from clusterwright.facility import Improvement

if TYPE_CHECKING:
    from clusterwright.hardware import FailureRates


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
        ("half as many failures (burn-in, lemon nodes out)", rates.model_copy(update={"mtbf_s": rates.mtbf_s * 2.0}),
         mode, write_bytes_per_s),
    )  # fmt: skip
    found = []
    for change, changed, how, rate in tries:
        if how is mode and changed is rates and rate == write_bytes_per_s:
            continue
        then = float(estimate_goodput(accelerators, checkpoint_bytes, rate, changed, mode=how).goodput)
        saves = cost_usd * (1.0 - now / then) if then > 0 else 0.0
        found.append(Improvement(change=change, goodput=then, saves_usd=saves))
    return tuple(found)
