"""A peak learning rate where the user gives none: that of the published run nearest in size, and said so."""

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


def peak_rate(job: Job) -> tuple[str, Unsupported | None]:
    """The peak learning rate, with a note when it is not the user's own."""
    given = job.get("lr")
    if given is not None:
        return str(given), None
    size = job.model.parameters
    parameters, rate = min(PUBLISHED, key=lambda row: abs(math.log(size / row[0])))
    why = f"the plan chooses none; {rate} is that of the published run nearest in size ({parameters / 1e9:.0f}B, arXiv 2407.21783 table 3); give yours with --set lr"
    return rate, Unsupported("learning rate", why)
