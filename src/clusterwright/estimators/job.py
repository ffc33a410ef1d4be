"""What is estimated, and the device time that its parts share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators.keeping import Saving

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.efficiency import Stack
    from clusterwright.estimators.grid import Layouts
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.model import Model

    Floats = NDArray[Any]


@dataclass(frozen=True)
class Job:
    """What is trained, on what, with which software: everything but the layout."""

    model: Model
    accelerator: Accelerator
    node: Node
    sequence_length: int
    precision: str = "bf16"
    framework: str = "any"
    year: float = 2026.0
    method: str = "full"
    lora_rank: int = 16
    sample_length: int | None = None
    """Mean tokens of the samples that are packed into a sequence, where there are several."""
    routing: str = "balanced"
    """How tokens fall on experts: ``balanced``, or ``natural`` as they do without being forced."""
    saving: Saving = field(default_factory=Saving)
    """What it does about memory beyond its layout and its software stack."""
    nic_bytes_per_s: float | None = None
    """Scale-out bandwidth of one accelerator, where it is not the node's [B/s]."""
    oversubscription: float = 1.0

    @property
    def attended_length(self) -> int:
        """Tokens that see one another [tokens]."""
        return min(self.sample_length or self.sequence_length, self.sequence_length)


@dataclass(frozen=True)
class Device:
    """Device time of one micro-batch on the slowest stage [s], each of shape (n,)."""

    products: Floats
    """Weight products of a layer, forward."""
    backward: Floats
    """Weight products of a layer, backward."""
    weight: Floats
    """Of them, the gradients of weights."""
    attention: Floats
    elementwise: Floats
    feed: Floats
    """Of the weight products forward, those of the feed-forward part."""
    head: Floats
    forward: Floats
    """Forward pass of the stage's layers, for recompute."""
    layers: Floats
    """Layers of the slowest stage."""
    busy: Floats
    """Forward and backward of a layer as the stack runs it, without recompute."""
    launch: Floats
    """Time to launch all kernels of the stage."""
    again: Floats
    """What a layer computes again."""


DISPATCH_ONCE_SINCE = 2025.25
"""When stacks began to send a token once to each domain (DeepEP, released in February 2025) [year]."""
DISPATCH_ONCE_IN_A_RACK_SINCE = 2025.8
"""The same in domains larger than a node: HybridEP, with Megatron-Core 0.15 [year]."""
NODE = 8
"""Accelerators of the largest domain that DeepEP knows."""


def dispatches_once(job: Job, stack: Stack) -> bool:
    """Whether a token goes once to each domain, and its copies are made there."""
    since = DISPATCH_ONCE_IN_A_RACK_SINCE if domain_of(job) > NODE else DISPATCH_ONCE_SINCE
    return stack.sequence_parallel and job.year >= since


def domain_of(job: Job) -> int:
    """Accelerators of one scale-up domain."""
    return max(job.node.scale_up_domain, 1)


def data_ranks(lay: Layouts) -> Floats:
    """Ranks over which gradients of dense weights are reduced: data and context parallelism together."""
    return np.asarray(lay.dp * lay.cp, dtype=float)


def expert_ranks(lay: Layouts) -> Floats:
    """Ranks over which gradients of experts are reduced: expert parallelism borrows from the data-parallel ranks."""
    return np.asarray(np.maximum(data_ranks(lay) * np.where(lay.ep > 1, lay.tp / lay.ep, 1), 1.0), dtype=float)


def padded(job: Job, lay: Layouts) -> Floats:
    """Where embedding and head take a layer's place each."""
    count, slots = job.model.layers, lay.pp * lay.vpp
    return np.asarray((lay.pp > 1) & (count % slots != 0) & ((count + 2) % slots == 0))


def layers_a_stage(job: Job, lay: Layouts) -> Floats:
    """Layers of the fullest stage."""
    return np.ceil(job.model.layers / lay.pp)


def parameters_a_rank(job: Job, lay: Layouts) -> tuple[Floats, Floats, Floats]:
    """Parameters of a rank of the fullest stage before data-parallel sharding: dense layers, experts, embedding."""
    model = job.model
    ends = model.embedding_parameters + model.head_parameters
    dense = model.parameters - ends - model.expert_parameters
    stage = layers_a_stage(job, lay) / model.layers
    split = np.where(lay.ep > 1, lay.ep, lay.tp)
    outer = np.where(lay.pp > 1, max(model.embedding_parameters, model.head_parameters), ends)
    return dense * stage / lay.tp, model.expert_parameters * stage / split, outer / lay.tp
