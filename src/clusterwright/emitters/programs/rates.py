"""What a plan does not choose and a run needs all the same: the learning rate, its rise, the optimizer's settings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Unsupported

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.workload import Training

PUBLISHED = ((8e9, "3e-4"), (70e9, "1.5e-4"), (405e9, "8e-5"))
"""Parameters and peak learning rate of Llama 3 (arXiv 2407.21783, table 3)."""


MAX_WARMUP_STEPS, STEPS_PER_WARMUP_STEP = 8000, 150
"""8000 of 1200000 steps (arXiv 2407.21783, section 3.4.1)."""


def warmup_steps(training: Training) -> int:
    """Steps of the learning rate's rise: the share of the published run, and no more than it had."""
    return min(MAX_WARMUP_STEPS, math.ceil(training.steps / STEPS_PER_WARMUP_STEP))


def peak_rate(job: Job) -> tuple[str, str]:
    """The peak learning rate, and why it is that: yours, or that of the published run nearest in size."""
    given = job.get("lr")
    if given is not None:
        return str(given), given.why
    size = job.model.parameters
    parameters, rate = min(PUBLISHED, key=lambda row: abs(math.log(size / row[0])))
    return rate, (
        f"not of the plan: the published run nearest in size, {parameters / 1e9:.0f}B (arXiv 2407.21783 table 3); yours with --set lr"
    )


def left_to_you(job: Job, training: Training, defaults: str) -> tuple[Unsupported, ...]:
    """What the plan does not choose, and whose values stand in the files for it; ``defaults`` says whose the rest are."""
    found = [
        Unsupported(
            "learning rate's rise",
            f"the plan chooses none; {warmup_steps(training)} steps, the share of Llama 3 (arXiv 2407.21783 section 3.4.1)",
        ),
        Unsupported("optimizer settings", f"the plan chooses AdamW and nothing of it: {defaults}"),
    ]
    asked = (
        ("optimizer", "" if training.optimizer == "adamw" else training.optimizer),
        ("offload", ", ".join(training.offload)),
        ("recompute_modules", ", ".join(training.recompute_modules or ())),
    )
    why_not = "the plan's memory counts on it and no file here says it: set it in your program"
    found.extend(Unsupported(f"{key} = {value}", why_not) for key, value in asked if value)
    rate, why = peak_rate(job)
    if job.get("lr") is None:
        found.insert(0, Unsupported("learning rate", f"the plan chooses none; {rate} stands there, {why}"))
    return tuple(found)
