"""Memory that a rank of the fullest stage holds at its peak, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators.communication import FULL_SHARDS
from clusterwright.estimators.grid import RECOMPUTES, SHARDINGS, Layouts
from clusterwright.estimators.job import Job, data_ranks, domain_of, expert_ranks, layers_a_stage, parameters_a_rank
from clusterwright.laws import memory, pipeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.efficiency import Stack

    Floats = NDArray[Any]

ZERO1 = tuple(SHARDINGS.index(name) for name in ("zero1", "zero2", "distopt"))
ZERO2 = (SHARDINGS.index("zero2"),)
BUFFERS = 0.6e9
"""Communication buffers and workspaces of the libraries that the allocator counts [B]."""


def hold(job: Job, stack: Stack, lay: Layouts, kept: dict[str, Floats]) -> dict[str, Floats]:
    """Bytes by part; arrays of the layouts' shape."""
    dense, experts, ends = parameters_a_rank(job, lay)
    ranks = data_ranks(lay)
    full = np.isin(lay.sharding, FULL_SHARDS)
    hybrid = lay.sharding == SHARDINGS.index("hsdp")
    within = np.minimum(ranks, np.maximum(domain_of(job) / lay.tp, 1.0))
    found: dict[str, Floats] = {}
    if job.method == "full":
        found["weights, gradients and optimizer"] = _states(
            stack, lay, dense + ends, np.where(hybrid, within, ranks), full
        )
        found["weights, gradients and optimizer"] += _states(
            stack, lay, experts, np.where(hybrid, within, expert_ranks(lay)), full
        )
    else:
        size = 0.55 if job.method == "qlora" else 2.0
        found["weights, gradients and optimizer"] = size * (dense + ends + experts) / np.where(
            full, ranks, 1.0
        ) + _adapters(job, lay, stack)
    one_layer = (dense + experts) / np.maximum(layers_a_stage(job, lay), 1)
    a_few = 2.0 * (2 * one_layer + ends) + stack.gradient * one_layer
    found["gathered layers"] = np.where(full, np.where(lay.pp > 1, 4.0 * (dense + ends + experts), a_few), 0.0)
    found["activations"] = _activations(job, stack, lay, kept)
    found["logits and loss"] = np.where(
        lay.pp > 1, np.maximum(kept["logits"] - found["activations"] * (1 - 1 / lay.pp), 0.0), kept["logits"]
    )
    found["buffers"] = BUFFERS + 0.0 * ranks
    return {name: np.asarray(value, dtype=float) for name, value in found.items()}


def _states(stack: Stack, lay: Layouts, parameters: Floats, shards: Floats, full: Floats) -> Floats:
    weight = np.where(full, 0.0, 2.0)
    return np.asarray(
        memory.state_bytes(
            parameters,
            weight=weight,
            gradient=stack.gradient,
            optimizer=stack.optimizer,
            weight_shards=1.0,
            gradient_shards=np.where(full | np.isin(lay.sharding, ZERO2), shards, 1.0),
            optimizer_shards=np.where(full | np.isin(lay.sharding, ZERO1), shards, 1.0),
        ),
        dtype=float,
    )


def _adapters(job: Job, lay: Layouts, stack: Stack) -> Floats:
    """Low-rank adapters on every projection: weight, gradient and optimizer states."""
    count = 14.0 * job.lora_rank * job.model.hidden * job.model.layers
    return (2.0 + stack.gradient + stack.optimizer) * count / (lay.pp * lay.tp)


def _activations(job: Job, stack: Stack, lay: Layouts, kept: dict[str, Floats]) -> Floats:
    micro_batches = np.maximum(lay.global_batch // (lay.dp * lay.micro_batch), 1)
    held = pipeline.in_flight(micro_batches, lay.pp, lay.vpp) * layers_a_stage(job, lay)
    tokens = lay.micro_batch * job.sequence_length / lay.cp
    entry = 2.0 * tokens * job.model.hidden / np.where(stack.sequence_parallel, lay.tp, 1)
    full = lay.recompute == RECOMPUTES.index("full")
    selective = lay.recompute == RECOMPUTES.index("selective")
    kept = {name: stack.kept * value for name, value in kept.items()}
    a_layer = np.where(full, entry, np.where(selective, stack.selective * (kept["kept"] - kept["core"]), kept["kept"]))
    return held * a_layer + np.where(full, kept["largest"], np.where(selective, kept["core"], 0.0)) + entry
