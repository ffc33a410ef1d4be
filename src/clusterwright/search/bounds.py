"""What cannot fit in memory, told from a part of a layout: it is refused before the other axes are crossed.

Every bound is below what the estimate says, so that no layout is lost that fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.grid import SHARDINGS, Layouts
from clusterwright.estimators.job import data_ranks, expert_ranks, parameters_a_rank
from clusterwright.estimators.keeping import Saving, shipped
from clusterwright.estimators.training import USABLE_MEMORY
from clusterwright.laws import pipeline
from clusterwright.search.propose import AXES, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from clusterwright.estimators.job import Job

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

QUANTISED = 0.5
"""The least that a frozen parameter takes: four bits. [B]"""
WIDTH = 2.0
"""A value of a layer's input. [B]"""
SHARDED = {
    "weight": ("zero3", "fsdp", "hsdp"),
    "gradient": ("zero2", "zero3", "fsdp", "hsdp"),
    "optimizer": SHARDINGS[1:],
}
"""What is shared out over the data-parallel ranks, by sharding."""
STATES = "weights and gradients alone exceed the memory"
INPUTS = "weights, gradients and the inputs of the layers alone exceed the memory"


def memory_bounds(job: Job, batch: int) -> list[Rule]:
    """Rules that refuse what is far from fitting.

    Args:
        job: Model, node and software.
        batch: Global batch. [1]
    """
    limit = USABLE_MEMORY * job.accelerator.memory_bytes
    keep = shipped().of(job.framework, job.year, job.saving, job.model.name)
    sizes = {"weight": keep.weight, "gradient": keep.gradient * keep.standing, "optimizer": keep.master + keep.moments}
    if job.method != "full":
        sizes = {"weight": QUANTISED, "gradient": 0.0, "optimizer": 0.0}
    elif job.saving != Saving():
        sizes = {"weight": keep.weight, "gradient": 0.0, "optimizer": 0.0}
    width = 0.0 if job.saving.offload_activations else WIDTH

    def states(*axes: Integers) -> Flags:
        return np.asarray(_states(job, sizes, *axes) > limit)

    def inputs(*axes: Integers) -> Flags:
        tp, cp, pp, vpp, _, dp, _, micro_batch = axes
        held = pipeline.in_flight(np.maximum(batch // (dp * micro_batch), 1), pp, vpp) * -(-job.model.layers // pp)
        values = held * micro_batch * job.sequence_length / cp * job.model.hidden / tp
        return np.asarray(_states(job, sizes, *axes[:-1]) + width * values > limit)

    return [Rule(STATES, AXES[:-1], states), Rule(INPUTS, AXES, inputs)]


def _states(job: Job, sizes: Mapping[str, float], *axes: Integers) -> Floats:
    """Weights, gradients and optimizer states of the layers on a rank of the fullest stage [B]."""
    tp, cp, pp, vpp, ep, dp, sharding = axes
    one = np.ones_like(tp)
    lay = Layouts(tp, cp, pp, vpp, ep, dp, one, one, sharding, one)
    dense, experts, _ = parameters_a_rank(job, lay)
    total = np.zeros(len(tp))
    for what, size in sizes.items():
        shared = np.isin(sharding, [SHARDINGS.index(name) for name in SHARDED[what]])
        total += size * dense / np.where(shared, data_ranks(lay), 1.0)
        total += size * experts / np.where(shared, expert_ranks(lay), 1.0)
    return total
