"""Memory that a rank holds at its peak, part by part: of the fullest stage, in the fuller of two moments.

One is the backward pass of a micro-batch, with all activations in flight; the other is the optimizer's step.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators.adapters import adapter_parameters, frozen_bytes
from clusterwright.estimators.communication import FULL_SHARDS
from clusterwright.estimators.grid import RECOMPUTES, SCHEDULES, SHARDINGS, Layouts, distinct
from clusterwright.estimators.job import Job, data_ranks, domain_of, expert_ranks, padded
from clusterwright.estimators.keeping import Keeping, Saving, shipped
from clusterwright.estimators.kept import kept, sequence_parallel
from clusterwright.laws import memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[Any]

SHARDS_WEIGHTS = np.array([i in FULL_SHARDS for i in range(len(SHARDINGS))])
SHARDS_GRADIENTS = SHARDS_WEIGHTS | np.array([name == "zero2" for name in SHARDINGS])
SHARDS_OPTIMIZER = SHARDS_GRADIENTS | np.array([name in ("zero1", "distopt") for name in SHARDINGS])
"""What each kind of sharding shares, by its number."""
HYBRID = SHARDINGS.index("hsdp")
HEAD_WIDTH = 4.0
"""Gathered input of the output head and its gradient, a value of the width [B]."""
CONTEXT_BYTES = 1.3e9
"""What a process takes of a device beyond the allocator: context and loaded kernels [B].

As measured in https://huggingface.co/docs/transformers/v4.49.0/model_memory_anatomy.
"""
PASSING = ("activations", "layer at work", "logits and loss")
"""Parts that grow with the length of a sequence."""
COMMUNICATOR_BYTES = 0.7e9
"""Buffers of one NCCL communicator: channels of 4 MiB either way, by protocol [B]."""

LAWS = {
    "weights": "laws.memory.state_bytes: weights that products read, or the shard of them",
    "gradients": "laws.memory.state_bytes: gradients, as the stack accumulates them",
    "optimizer": "laws.memory.state_bytes: master weights and moments over the ranks that share them",
    "gathered layers": "fully sharded weights of the layer at work, the next and the ends; or of a whole stage",
    "activations": "what layers keep of a token, times tokens, layers and laws.memory.micro_batches_held",
    "layer at work": "what recompute brings back of a layer, and the gradients of one module",
    "logits and loss": "bytes of a logit, as the stack computes the loss",
    "buffers": "stand-ins for gradients, reducer's buckets and workspaces of the stack",
    "optimizer step": "what the optimizer's step needs beside its states",
}
"""Part of the memory, and the law that gives it."""


@dataclass(frozen=True)
class _Stage:
    """One pipeline stage: arrays of the layouts' shape."""

    number: Floats
    layers: Floats
    dense: Floats
    experts: Floats
    embedding: Floats
    head: Floats
    held: Floats
    """Micro-batches in flight."""

    @property
    def parameters(self) -> Floats:
        """All parameters of the rank before sharding over data parallelism."""
        return self.dense + self.experts + self.embedding + self.head


@dataclass(frozen=True)
class _Tokens:
    """Bytes of one micro-batch: arrays of the layouts' shape."""

    stream: Floats
    """A layer's input."""
    whole: Floats
    """What the mean layer keeps without recompute, and what selective recompute leaves of it."""
    left: Floats
    layer: Floats
    """The largest layer, and the most that selective recompute brings back of one."""
    lost: Floats
    at_work: Floats
    """Gradients of one module."""
    logits: Floats
    wide: Floats
    """Values of the whole width that tensor parallelism gathers beyond the rank's own part. [1]"""

    def kept(self, lay: Layouts, layers: Floats) -> tuple[Floats, Floats]:
        """What so many layers keep, and what recompute brings back of them at once."""
        full, selective = (lay.recompute == RECOMPUTES.index(name) for name in ("full", "selective"))
        whole = layers * self.whole
        some = np.minimum(layers * self.left + self.lost, whole)
        least = np.minimum(layers * self.stream + self.layer - self.stream, some)
        kept = layers * np.where(full, self.stream, np.where(selective, self.left, self.whole))
        return kept, np.where(full, least, np.where(selective, some, whole)) - kept


@dataclass(frozen=True)
class _Shards:
    """Over how many ranks each state is shared."""

    full: Floats
    gradients: Floats
    expert_gradients: Floats
    states: Floats
    expert_states: Floats


def hold(job: Job, lay: Layouts) -> dict[str, Floats]:
    """Bytes by part, as the allocator counts them; arrays of the layouts' shape."""
    keep = habits(job)
    tokens = _tokens(job, keep, lay)
    shards = _shards(job, lay)
    fullest: dict[str, Floats] = {}
    for number in _numbers(job, lay):
        stage = _stage(job, keep, lay, number)
        for moment in _moments(job, keep, lay, stage, tokens, shards):
            fullest = _fuller(fullest, moment)
    return {name: np.asarray(value, dtype=float) for name, value in fullest.items()}


def reserved_bytes(job: Job, parts: Mapping[str, Floats]) -> Floats:
    """What the allocator takes from the device to give these parts: fragments, rounding and outgrown blocks on top.

    When the device is full, outgrown blocks are given back.
    """
    more = 1 + habits(job).fragments
    reserved = np.asarray(sum(parts.values())) * more
    if job.saving.mean_length is None:
        return reserved
    share = memory.outgrown_share(job.sequence_length, job.saving.mean_length)
    outgrown = share * more * np.asarray(sum(parts[name] for name in PASSING))
    return np.minimum(reserved + outgrown, np.maximum(reserved, job.accelerator.memory_bytes - CONTEXT_BYTES))


def device_bytes(job: Job, lay: Layouts, parts: Mapping[str, Floats]) -> Floats:
    """What ``nvidia-smi`` shows: reserved memory, context and the buffers of every communicator."""
    groups = sum(np.asarray(axis > 1, dtype=float) for axis in (lay.tp, lay.cp, lay.pp, lay.ep, lay.dp))
    return np.asarray(reserved_bytes(job, parts) + CONTEXT_BYTES + COMMUNICATOR_BYTES * groups)


def kept_bytes(job: Job, lay: Layouts) -> Floats:
    """Bytes that a layer keeps of one micro-batch for its backward pass, shape (n,)."""
    return np.asarray(_tokens(job, habits(job), lay).kept(lay, np.ones(1))[0])


def _numbers(job: Job, lay: Layouts) -> list[Floats]:
    """Stages that may be the fullest: the first, the second where it has more layers than that, and the last."""
    first, last = 0 * lay.pp, lay.pp - 1
    if job.saving.rank != "fullest" or not last.any():
        return [last if job.saving.rank == "last" else first]
    return [first, np.minimum(1, last), last] if padded(job, lay).any() else [first, last]


def habits(job: Job) -> Keeping:
    """What the software stack of a job keeps."""
    return _habits(job.framework, job.year, job.saving, job.model.name)


@functools.lru_cache(maxsize=1024)
def _habits(framework: str, year: float, saving: Saving, model: str) -> Keeping:
    return shipped().of(framework, year, saving, model)


def keeping_of(job: Job) -> str:
    """Name of the stack whose habits of memory hold for a job."""
    return habits(job).name


def _fuller(one: dict[str, Floats], other: dict[str, Floats]) -> dict[str, Floats]:
    if not one:
        return other
    more = np.asarray(sum(other.values())) > np.asarray(sum(one.values()))
    return {name: np.where(more, other[name], one[name]) for name in one}


def _stage(job: Job, keep: Keeping, lay: Layouts, number: Floats) -> _Stage:
    model = job.model
    ends = model.embedding_parameters + model.head_parameters
    layer = (model.parameters - ends - model.expert_parameters) / model.layers
    head = model.head_parameters or model.vocab * model.hidden
    if keep.stages == "work":
        cost = head / (layer + model.expert_parameters / model.layers)
        before = [memory.layers_before(n, lay.pp, model.layers, cost) for n in (number, number + 1)]
        layers = np.asarray(before[1] - before[0])
    else:
        layers = _even_layers(job, lay, number)
    last = number == lay.pp - 1
    layers = layers + np.where(last, model.mtp, 0)
    # What a late stage of a zero-bubble pipeline keeps for its weight gradients makes up for its fewer warm-up passes.
    waits = np.where(lay.schedule == SCHEDULES.index("zero-bubble"), 0, number)
    return _Stage(
        number=number,
        layers=layers,
        dense=layers * layer / lay.tp,
        experts=layers * model.expert_parameters / model.layers / np.where(lay.ep > 1, lay.ep, lay.tp),
        embedding=np.where(number == 0, model.embedding_parameters, 0) / lay.tp,
        head=np.where(last, np.where(lay.pp > 1, head, model.head_parameters), 0) / lay.tp,
        held=np.asarray(memory.micro_batches_held(lay.micro_batches, lay.pp, lay.vpp, waits)),
    )


def _even_layers(job: Job, lay: Layouts, number: Floats) -> Floats:
    """Equal layers; where embedding and head take a layer's place each, the first and last stage have one fewer."""
    count, ends = job.model.layers, padded(job, lay)
    each = np.where(ends, (count + 2) / lay.pp, np.ceil(count / lay.pp))
    last = np.where(ends, each - 1, np.maximum(count - each * (lay.pp - 1), count // lay.pp))
    return np.where(number == lay.pp - 1, last, np.where((number == 0) & ends, each - 1, each))


def _tokens(job: Job, keep: Keeping, lay: Layouts) -> _Tokens:
    (tp, ep), where = distinct(lay.tp, lay.ep)
    one = kept(job, keep, tp.astype(float), ep.astype(float))
    tokens = lay.micro_batch * job.sequence_length / lay.cp
    each = np.where((lay.tp > 1) & (keep.split_logits > 0), keep.split_logits, keep.logits)
    logits = (1 + job.model.mtp) * each / keep.loss_chunks * job.model.vocab / lay.tp
    wide = np.where(sequence_parallel(keep, lay.ep), tokens * job.model.hidden * (1 - 1 / lay.tp), 0.0)
    return _Tokens(
        **{name: tokens * getattr(one, name)[where] for name in ("stream", "whole", "left", "layer", "lost")},
        at_work=tokens * one.module[where] + keep.full_width * wide,
        logits=tokens * logits + HEAD_WIDTH * wide,
        wide=wide,
    )


def _moments(
    job: Job, keep: Keeping, lay: Layouts, stage: _Stage, tokens: _Tokens, shards: _Shards
) -> list[dict[str, Floats]]:
    """The two moments that may be the peak: a backward pass, and the optimizer's step."""
    owned = (stage.parameters - stage.experts) / shards.states + stage.experts / shards.expert_states
    last = stage.number == lay.pp - 1
    states = _states(job, keep, stage, shards)
    one, brought = tokens.kept(lay, stage.layers)
    activations = stage.held * (one + tokens.stream)
    if job.saving.offload_activations:
        share = job.saving.offload_share
        here = share * (2 * tokens.stream + one / np.maximum(stage.layers, 1)) + (1.0 - share) * activations
        activations, brought = np.minimum(here, activations), np.where(here < activations, 0.0, brought)
    now = np.maximum(np.where(last, tokens.logits, 0.0), np.where(stage.layers > 0, tokens.at_work + brought, 0.0))
    halves = np.maximum(keep.half_gradient * stage.parameters - one - now, 0.0) if job.method == "full" else 0.0 * one
    gathered = _gathered(job, keep, lay, stage, shards)
    buffers = _buffers(job, keep, lay, stage, tokens)
    there = np.where(keep.standing | keep.in_backward | (lay.micro_batches > 1), states["gradients"], 0.0)
    backward = {
        **states,
        "gradients": there + halves,
        "gathered layers": gathered,
        "activations": activations,
        "layer at work": np.where(now > tokens.logits * last, now, 0.0),
        "logits and loss": np.where(now > tokens.logits * last, 0.0, now),
        "buffers": buffers,
        "optimizer step": 0.0 * one,
    }
    nothing = 0.0 * one
    step = {
        **states,
        "gathered layers": nothing,
        "activations": nothing,
        "layer at work": nothing,
        "logits and loss": nothing,
        "buffers": buffers,
        "optimizer step": _step(job, keep, owned),
    }
    return [backward, step]


def _shards(job: Job, lay: Layouts) -> _Shards:
    ranks, others = data_ranks(lay), expert_ranks(lay)
    within = np.maximum(domain_of(job) / lay.tp, 1.0)
    ranks, others = (np.where(lay.sharding == HYBRID, np.minimum(n, within), n) for n in (ranks, others))
    full, two, one = (kind[lay.sharding] for kind in (SHARDS_WEIGHTS, SHARDS_GRADIENTS, SHARDS_OPTIMIZER))
    return _Shards(
        full,
        np.where(two, ranks, 1.0),
        np.where(two, others, 1.0),
        np.where(one, ranks, 1.0),
        np.where(one, others, 1.0),
    )


def _states(job: Job, keep: Keeping, stage: _Stage, shards: _Shards) -> dict[str, Floats]:
    """Weights, gradients and optimizer states."""
    adapters = 0.0 * stage.layers
    if job.method != "full":
        adapters = adapter_parameters(job) * stage.layers / job.model.layers
        frozen = _frozen(job, keep, stage)
        weights = frozen / np.where(shards.full, shards.states, 1.0) + keep.weight * adapters
        common, experts = adapters, 0.0 * adapters
    else:
        common, experts = stage.parameters - stage.experts, stage.experts
        whole = keep.weight * stage.parameters
        sharded = (keep.weight if keep.master == 0 or keep.twin else 0.0) * (
            common / shards.states + experts / shards.expert_states
        )
        weights = np.where(shards.full, sharded, whole)
    gradients = keep.gradient * (common / shards.gradients + experts / shards.expert_gradients)
    if keep.in_backward and job.method == "full":
        gradients = keep.gradient * np.maximum(stage.embedding, stage.head) / shards.gradients
    optimizer = (keep.master + keep.moments) * (common / shards.states + experts / shards.expert_states)
    optimizer = optimizer * (1.0 - (job.saving.offload_optimizer or 0.0))
    here = np.where(shards.full, 0.0, 1.0) if job.saving.offload_parameters else 1.0
    return {"weights": weights * here, "gradients": gradients * here, "optimizer": optimizer * here}


def _frozen(job: Job, keep: Keeping, stage: _Stage) -> Floats:
    """Frozen weights: those of the layers may be quantised, embedding and head are not."""
    layers = frozen_bytes(job, keep.weight) * (stage.dense + stage.experts)
    return np.asarray(layers + keep.weight * (stage.embedding + stage.head))


def _gathered(job: Job, keep: Keeping, lay: Layouts, stage: _Stage, shards: _Shards) -> Floats:
    """Under full sharding: the layer at work, the next one and its gradients; a whole stage where it is pipelined."""
    layer = (stage.dense + stage.experts) / np.maximum(stage.layers, 1)
    ends = (stage.embedding + stage.head) * keep.ends_gathered
    trained = 1.0 if job.method == "full" else 0.0
    size = frozen_bytes(job, keep.weight)
    a_few = layer * (2 * size + trained * (keep.weight + keep.gathered)) + keep.weight * ends
    all_of_it = (keep.weight + trained * keep.gradient) * stage.parameters
    return np.where(shards.full, np.where(lay.pp > 1, all_of_it, a_few), 0.0)


def _buffers(job: Job, keep: Keeping, lay: Layouts, stage: _Stage, tokens: _Tokens) -> Floats:
    """Gathered activations, the reducer's buckets, stand-ins for gradients, and workspaces."""
    found = keep.workspace + keep.layer_width * stage.layers * tokens.wide
    if job.method != "full":
        return np.asarray(found)
    layer = stage.dense / np.maximum(stage.layers, 1)
    reduced = np.where((data_ranks(lay) > 1) & ~SHARDS_WEIGHTS[lay.sharding], keep.bucket, 0.0)
    return np.asarray(found + keep.placeholder * (layer + stage.head) + reduced * stage.parameters)


def _step(job: Job, keep: Keeping, owned: Floats) -> Floats:
    """Temporary values of the optimizer's step; none of the whole where it steps gradient by gradient."""
    if job.method != "full" or keep.in_backward or job.saving.offload_parameters:
        return 0.0 * owned
    return (keep.step + keep.main_gradient) * owned
