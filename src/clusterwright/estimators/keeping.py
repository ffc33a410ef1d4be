"""What software stacks keep in memory: the shipped table, as values, and how a job's own choices change it."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from clusterwright.noun import Noun

if TYPE_CHECKING:
    from clusterwright.workload import Training

FUSED_LOGIT = 4.0
"""Bytes of a logit where loss and softmax are one kernel: itself and its gradient, in bf16."""
CHUNKS = 8
"""Parts of a chunked loss, as torchtune cuts it."""


@dataclass(frozen=True)
class Saving:
    """What a job does about memory, beyond its layout; empty: as its software stack does."""

    optimizer: str = ""
    """Name in the table of optimizers."""
    in_backward: bool | None = None
    """Whether the optimizer steps as soon as a gradient is there, so that gradients are never all there."""
    offload_optimizer: float | None = None
    """Share of the optimizer's states that host memory holds [1]."""
    offload_parameters: bool = False
    """Whether sharded weights, gradients and optimizer states live in host memory."""
    offload_activations: bool = False
    """Whether host memory holds what the backward pass needs."""
    offload_share: float = 1.0
    """Share of the layers of which it does so [1]."""
    recomputed: tuple[str, ...] | None = None
    """Modules that selective recompute drops; none: the stack's way."""
    loss: str = ""
    """``fused`` or ``chunked`` where the loss never holds all logits in fp32, ``whole`` where it does."""
    quantised: str = ""
    """Format of frozen weights: ``nf4``, ``int4`` or ``int8``."""
    fused_attention: bool | None = None
    """Whether attention keeps no scores."""
    compiled: bool | None = None
    """Whether a compiler makes the kernels: it fuses norms and activations, keeping only inputs and results."""
    sequence_parallel: bool | None = None
    """Whether tensor parallelism divides norms and residuals too."""
    mean_length: float | None = None
    """Of sequences that differ in length and are cut at the job's [tokens]; none: all are as long as that."""
    rank: Literal["fullest", "first", "last"] = "fullest"
    """Whose memory: of the fullest pipeline stage, or of the first or last."""

    @classmethod
    def asked(cls, training: Training) -> Saving:
        """What a workload asks for."""
        return cls(
            optimizer="" if training.optimizer == "adamw" else training.optimizer,
            offload_optimizer=1.0 if "optimizer" in training.offload else None,
            offload_activations="activations" in training.offload,
            recomputed=training.recompute_modules,
        )


class OptimizerStates(Noun):
    """Bytes of one optimizer, a parameter."""

    master: float | None = None
    """Master weight; none: as the stack keeps it."""
    moments: float
    """What it remembers of past gradients."""
    gradient: float | None = None
    """Gradient that comes with it; none: as the stack keeps it."""
    main_gradient: float | None = None
    """Copy of the gradient that a step takes; none: as the stack does."""
    step: float | None = None
    """Temporary values of a step; none: as the stack has them."""


class Keeping(Noun):
    """What one software stack keeps, in bytes a parameter or a value, as its source code says."""

    name: str
    match: tuple[str, ...]
    until: float = 9999.0
    """First year in which it no longer holds."""
    source: str
    weight: float = 2.0
    gradient: float
    """An accumulated gradient."""
    standing: bool
    """Whether gradients have a buffer of their own through the whole step."""
    half_gradient: float = 0.0
    """Gradient of the micro-batch, there beside the accumulated one until the backward pass ends."""
    bucket: float = 0.0
    """Buckets of the data-parallel reducer."""
    master: float
    moments: float
    twin: bool = False
    """Whether sharded bf16 weights stand beside their sharded fp32 masters; else the masters are gathered and cast."""
    in_backward: bool = False
    step: float = 0.0
    """Temporary values of the optimizer's step, each over the ranks that share its states."""
    main_gradient: float = 0.0
    """fp32 copy of the gradients that the optimizer's step takes."""
    precision_aware: tuple[str, ...] = ()
    """Beginnings of the names of models that its recipes train with a precision-aware optimizer."""
    placeholder: float = 0.0
    """Stand-in for the gradient of each weight of a layer whose true one is added in place."""
    gathered: float = 0.0
    """Beyond weight and gradient: buffers that a layer is gathered in and its gradients are reduced in."""
    ends_gathered: bool = True
    """Whether embedding and head stay gathered under full sharding."""
    sequence_parallel: bool = False
    norm: float = 4.0
    """A norm, a value of the width: its input and its result."""
    gate: float = 3.0
    """Tensors that a gated feed-forward part keeps: gate and up, and their product."""
    plain: float = 2.0
    """The same without a gate."""
    dropout: float = 0.0
    """Masks, a value of the width."""
    plain_dropout: float = 0.0
    """The same of layers whose feed-forward part has no gate, which are of GPT's kind."""
    scores: float = 0.0
    """Score matrices that attention keeps, of two bytes a value; 0 with flash attention."""
    fp8_inputs: bool = False
    """Whether fp8 products keep their input in fp8."""
    selective: Literal["scores", "every second product", "every second layer"] = "scores"
    logits: float
    """A logit, at the most."""
    compiled_logits: float = 0.0
    """The same where a compiler fuses the loss; 0: the same."""
    split_logits: float = 0.0
    """The same where tensor parallelism splits the vocabulary; 0: the same."""
    loss_chunks: int = 1
    """Parts that logits and loss are computed in."""
    full_width: float = 0.0
    """Gathered tensors of the whole width under sequence parallelism, once [bytes a value]."""
    layer_width: float = 0.0
    """The same of every layer, where messages outlive their layer [bytes a value]."""
    stages: Literal["even", "work"] = "even"
    """Whether pipeline stages get equal layers or equal work."""
    workspace: float = 0.1e9
    """Fixed buffers that the allocator counts [B]."""
    fragments: float = 0.05
    """Reserved over allocated, less one."""


class Quantised(Noun):
    """A format of frozen weights."""

    bits: float
    group: int
    scale: float


class Table(Noun):
    """Everything that memory takes from software."""

    sources: dict[str, str]
    optimizer: dict[str, OptimizerStates]
    quantised: dict[str, Quantised]
    keeping: tuple[Keeping, ...]

    def of(self, framework: str, year: float, saving: Saving, model: str = "") -> Keeping:
        """The first stack whose words are in the framework's name and whose time has not passed, with ``saving``."""
        name = "megatron" if framework == "any" else framework.lower()
        stack = next(s for s in self.keeping if year < s.until and any(word in name for word in s.match))
        return stack.model_copy(update=self._changes(stack, saving, model.lower()))

    def _changes(self, stack: Keeping, saving: Saving, model: str) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        optimizer = saving.optimizer or ("precision-aware" if model.startswith(stack.precision_aware) else "")
        if optimizer:
            states = self.optimizer[optimizer]
            changes |= {
                name: value for name in OptimizerStates.model_fields if (value := getattr(states, name)) is not None
            }
        if saving.in_backward is not None:
            changes["in_backward"] = saving.in_backward
        if saving.loss == "fused":
            changes["logits"] = min(stack.logits, FUSED_LOGIT)
        elif saving.loss:
            changes["loss_chunks"] = CHUNKS if saving.loss == "chunked" else 1
        if saving.sequence_parallel is not None:
            changes["sequence_parallel"] = saving.sequence_parallel
        if saving.compiled:
            changes |= {"norm": min(stack.norm, 4.0), "gate": min(stack.gate, 3.0)}
            changes["logits"] = min(changes.get("logits", stack.logits), stack.compiled_logits or stack.logits)
        if saving.fused_attention is not None:
            changes["scores"] = 0.0 if saving.fused_attention else max(stack.scores, 1.0)
        return changes


@functools.cache
def shipped() -> Table:
    """The shipped table (package data, read once)."""
    text = resources.files("clusterwright.estimators").joinpath("keeping.toml").read_text(encoding="utf-8")
    return Table.model_validate(tomllib.loads(text))
