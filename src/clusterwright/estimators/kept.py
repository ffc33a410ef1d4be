"""What a layer keeps of one token for its backward pass, module by module, on one rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from clusterwright.laws import memory
from clusterwright.layout import RecomputeModule
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, StateSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.job import Job
    from clusterwright.estimators.keeping import Keeping

    Floats = NDArray[Any]

EIGHT_BIT = ("fp8", "mxfp8", "nvfp4")
MODULES = get_args(RecomputeModule)
"""Modules that selective recompute can drop, by Megatron-Core's names."""


@dataclass(frozen=True)
class Kept:
    """Bytes a token of the mean layer, each of shape (k,): one for every distinct (tp, ep)."""

    stream: Floats
    """The layer's input alone: what full recompute keeps."""
    whole: Floats
    left: Floats
    """What selective recompute keeps."""
    module: Floats
    """The largest module of any layer: its gradients, while they are there, are as large."""
    layer: Floats
    """The largest layer."""
    lost: Floats
    """The most that selective recompute drops of a layer."""


def kept(job: Job, keep: Keeping, tp: Floats, ep: Floats) -> Kept:
    """What layers keep of one token, over the distinct (tp, ep)."""
    total = np.zeros((3, len(tp)))
    module, layer, lost = (np.zeros(len(tp)) for _ in range(3))
    for block in job.model.kinds:
        parts = pieces(job, keep, block, tp, ep)
        stream, whole = parts.pop("stream"), np.asarray(sum(parts.values()))
        left = np.clip(_left(job, keep, block, parts, stream, tp), np.minimum(stream, whole), whole)
        total += block.count * np.array([stream, whole, left])
        module = np.maximum(module, np.max(list(parts.values()), axis=0))
        layer, lost = np.maximum(layer, whole), np.maximum(lost, whole - left)
    mean = total / job.model.layers
    return Kept(mean[0], mean[1], mean[2], module, layer, lost)


def sequence_parallel(keep: Keeping, ep: Floats) -> Floats:
    """Whether norms and residuals are divided too: Megatron-Core asks for it where experts are parallel."""
    return np.asarray((ep > 1) | keep.sequence_parallel)


def pieces(job: Job, keep: Keeping, block: Block, tp: Floats, ep: Floats) -> dict[str, Floats]:
    """Bytes a token by module; ``stream``, the layer's input, is part of ``layernorm`` too."""
    small = keep.fp8_inputs and job.precision in EIGHT_BIT
    hidden = job.model.hidden / np.where(sequence_parallel(keep, ep), tp, 1.0)
    found = {
        "stream": 2.0 * hidden,
        "layernorm": (block.norms * (keep.norm - small) + _masks(keep, block)) * hidden,
    }
    if block.mixer is not None:
        found |= _mixer(job, keep, block.mixer, (tp, ep), small=small)
    if block.feed is not None:
        found |= _feed(keep, block.feed, job.model.hidden, tp, ep, small=small)
    return found


def _masks(keep: Keeping, block: Block) -> float:
    plain = isinstance(block.feed, FeedForward) and not block.feed.gated and isinstance(block.mixer, Attention)
    return max(keep.dropout, keep.plain_dropout) if plain else keep.dropout


def _mixer(
    job: Job,
    keep: Keeping,
    mixer: Attention | LatentAttention | StateSpace,
    axes: tuple[Floats, Floats],
    *,
    small: bool,
) -> dict[str, Floats]:
    tp, ep = axes
    if isinstance(mixer, StateSpace):
        inner = mixer.heads * mixer.head_size
        projected = 2 * inner + 2 * mixer.groups * mixer.state + mixer.heads
        return {"attention": 2.0 * (projected + 2 * inner) / tp}
    heads = mixer.heads / tp
    found = {"core_attn": np.asarray(memory.score_bytes(1, job.sequence_length, heads, keep.scores))}
    if isinstance(mixer, LatentAttention):
        low = (mixer.q_rank + mixer.kv_rank) * 4.0 + 2.0 * mixer.rope_size
        found["mla_up_proj"] = 2.0 * heads * (2 * mixer.head_size + mixer.value_size)
        found["attention"] = (2.0 + small) * heads * mixer.value_size + low / np.where(
            sequence_parallel(keep, ep), tp, 1
        )
        return found
    query, key = heads * mixer.head_size, np.maximum(mixer.kv_heads / tp, 1) * mixer.head_size
    found["attention"] = 2.0 * (query + 2 * key) + (2.0 + small) * query
    return found


def _feed(
    keep: Keeping, feed: FeedForward | Experts, hidden: int, tp: Floats, ep: Floats, *, small: bool
) -> dict[str, Floats]:
    tensors = keep.gate if feed.gated else keep.plain
    each = 2.0 * tensors - small
    if isinstance(feed, FeedForward):
        return {"mlp": each * feed.ffn / tp}
    width = feed.ffn / np.where(ep > 1, 1.0, tp)
    tokens = feed.top_k / np.where(ep > 1, tp, 1.0)
    found = {
        "moe_act": tokens * (2.0 - small) * width,
        "moe": tokens * ((each - 2.0 + small) * width + 2.0 * hidden),
    }
    if feed.shared_ffn:
        found["shared_experts"] = each * feed.shared_ffn / tp
    return found


def _left(job: Job, keep: Keeping, block: Block, parts: dict[str, Floats], stream: Floats, tp: Floats) -> Floats:
    """What selective recompute keeps of a layer."""
    whole = np.asarray(sum(parts.values()))
    dropped = job.saving.recomputed
    if dropped is not None:
        inside = {"moe": ("moe", "moe_act", "shared_experts"), "layernorm": ()}
        names = {part for name in dropped for part in inside.get(name, (name,))}
        lost = sum((parts[name] for name in names if name in parts), 0.0 * whole)
        norms = ("layernorm" in dropped) * block.norms * (keep.norm - 2.0) * stream / 2.0
        return np.asarray(whole - lost - norms)
    if keep.selective == "every second layer":
        return (whole + stream) / 2
    if keep.selective == "every second product":
        return 2 * stream + _second_products(block, tp)
    return whole - parts.get("core_attn", 0.0 * whole)


def _second_products(block: Block, tp: Floats) -> Floats:
    """Results of attention and of every second product: query, value, gate."""
    kept = 0.0 * tp
    if isinstance(block.mixer, (Attention, LatentAttention)):
        value = getattr(block.mixer, "value_size", block.mixer.head_size)
        kept = kept + 2.0 * (2 * block.mixer.heads * block.mixer.head_size + block.mixer.kv_heads * value) / tp
    if isinstance(block.feed, FeedForward):
        kept = kept + 2.0 * block.feed.ffn / tp
    if isinstance(block.feed, Experts):
        kept = kept + 2.0 * (block.feed.top_k * block.feed.ffn + block.feed.shared_ffn) / tp
    return kept
