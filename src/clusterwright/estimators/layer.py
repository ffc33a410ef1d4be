"""One layer of a model on one accelerator: time forward and backward, and what it keeps in memory.

Arrays ``tp``, ``cp``, ``ep``, ``batch`` (micro-batch) have one shape (k,): the distinct combinations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.laws import memory, roofline, work
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, StateSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.efficiency import Curve, LawFactors, Stack
    from clusterwright.hardware import Accelerator

    Floats = NDArray[Any]

ATTENTION_BACKWARD = 2.5
"""Products of a flash kernel's backward pass over those of its forward pass (five to two)."""
STATE_CHUNK = 256
"""Chunk of the state-space scan (Dao and Gu 2024, https://arxiv.org/abs/2405.21060) [tokens]."""


@dataclass(frozen=True)
class Machine:
    """One accelerator under one stack, at one number format."""

    accelerator: Accelerator
    curve: Curve
    stack: Stack
    law: LawFactors
    precision: str

    @property
    def wide_peak(self) -> float:
        """Dense peak of bf16 (fp16 where there is no bf16) [FLOP/s]."""
        peaks = self.accelerator.peak_flop_per_s
        return peaks.get("bf16", peaks.get("fp16", 0.0)) or max(peaks.values())

    def products(self) -> tuple[float, float, float]:
        """Peak [FLOP/s], sustained share and bytes a value of the weight products."""
        peaks, curve = self.accelerator.peak_flop_per_s, self.curve
        if self.precision in ("fp8", "mxfp8") and "fp8" in peaks:
            return peaks["fp8"], curve.fp8 * self.power_share, 1.0
        if self.precision == "nvfp4" and "fp4" in peaks:
            return peaks["fp4"], curve.fp4 * self.power_share, 0.5
        if self.precision == "nvfp4" and "fp8" in peaks:
            return peaks["fp8"], curve.fp8 * self.power_share, 1.0
        return self.wide_peak, curve.bf16 * self.power_share, 2.0

    @property
    def power_share(self) -> float:
        """Share of the sustained speed that a lower power limit leaves [1]."""
        return float(min(self.accelerator.power_w / self.curve.reference_w, 1.0) ** self.law.power_exponent)

    @property
    def attention(self) -> tuple[float, float]:
        """Forward and backward share of the flash kernels of this stack [1]."""
        forward, backward = self.curve.attention if self.stack.flash_generation > 2 else self.curve.attention_2  # noqa: PLR2004 - FlashAttention-2
        return forward * self.power_share, backward * self.power_share

    @property
    def attention_backward(self) -> float:
        """Backward over forward time of the attention core [1]."""
        forward, backward = self.attention
        return ATTENTION_BACKWARD * forward / backward if self.stack.flash else 2.0

    @property
    def bandwidth(self) -> float:
        """Sustained memory bandwidth [B/s]."""
        return self.accelerator.memory_bytes_per_s * self.curve.memory


@dataclass(frozen=True)
class LayerTime:
    """Device time of one layer for one micro-batch [s], and bytes kept [B]; arrays of shape (k,)."""

    products: Floats
    attention: Floats
    elementwise: Floats
    kept: Floats
    """Bytes a layer keeps without recompute."""
    core: Floats
    """Of them, what selective recompute drops."""

    @property
    def forward(self) -> Floats:
        """Forward pass [s]."""
        return self.products + self.attention + self.elementwise


def product(machine: Machine, m: Any, n: Any, k: Any, *, wide: bool = False) -> Floats:  # noqa: ANN401 - arrays or numbers
    """Time of a weight product forward; ``wide`` keeps it in bf16 [s]."""
    peak, share, size = (
        (machine.wide_peak, machine.curve.bf16 * machine.power_share, 2.0) if wide else machine.products()
    )
    time = roofline.matrix_product_time(
        m,
        n,
        k,
        peak=peak,
        share=share,
        half_depth=machine.curve.half_depth,
        multiprocessors=machine.accelerator.multiprocessors,
        bandwidth=machine.bandwidth,
        element_bytes=size,
    )
    cast = 0.0 if size == 2.0 else 3.0 * np.asarray(m, dtype=float) * k / machine.bandwidth  # noqa: PLR2004 - bytes of bf16
    return np.asarray(time + cast, dtype=float)


def mixer_products(mixer: Attention | LatentAttention | StateSpace, hidden: int, tp: Floats) -> list[tuple[Any, Any]]:
    """(n, k) of the mixer's weight products on one rank."""
    if isinstance(mixer, Attention):
        query, key = mixer.heads * mixer.head_size / tp, np.maximum(mixer.kv_heads / tp, 1) * mixer.head_size
        return [(query + 2 * key, hidden), (hidden, query)]
    if isinstance(mixer, LatentAttention):
        query, value = mixer.heads * mixer.head_size / tp, mixer.heads * mixer.value_size / tp
        first = [(mixer.q_rank, hidden), (query, mixer.q_rank)] if mixer.q_rank else [(query, hidden)]
        opened = mixer.heads * (mixer.nope_size + mixer.value_size) / tp
        return [*first, (mixer.kv_rank + mixer.rope_size, hidden), (opened, mixer.kv_rank), (hidden, value)]
    inner = mixer.heads * mixer.head_size / tp
    return [(2 * inner + (2 * mixer.groups * mixer.state + mixer.heads) / tp, hidden), (hidden, inner)]


def widths(mixer: Attention | LatentAttention | StateSpace, tp: Floats) -> tuple[Floats, Floats]:
    """Query, key and value width, and output width, on one rank."""
    if isinstance(mixer, StateSpace):
        inner = mixer.heads * mixer.head_size / tp
        return 3 * inner + 2 * mixer.groups * mixer.state / tp, inner
    if isinstance(mixer, LatentAttention):
        out = mixer.heads * mixer.value_size / tp
        return (2 * mixer.heads * mixer.head_size) / tp + out, out
    out = mixer.heads * mixer.head_size / tp
    return out + 2 * np.maximum(mixer.kv_heads / tp, 1) * mixer.head_size, out


def core_time(
    machine: Machine, mixer: Attention | LatentAttention | StateSpace, tokens: Floats, tp: Floats, sequence: int
) -> Floats:
    """Forward time of the attention (or state-space) core [s]."""
    if isinstance(mixer, StateSpace):
        operations = work.attention_flop(
            tokens, STATE_CHUNK / 2.0 + mixer.state, mixer.heads / tp, mixer.head_size, mixer.head_size
        )
        return np.asarray(
            roofline.attention_time(operations, peak=machine.wide_peak, share=machine.attention[0]), dtype=float
        )
    value = mixer.value_size if isinstance(mixer, LatentAttention) else mixer.head_size
    keys = work.attended_tokens(sequence, mixer.window, causal=machine.stack.flash)
    operations = work.attention_flop(tokens, keys, mixer.heads / tp, mixer.head_size, value)
    if machine.stack.flash:
        short = mixer.head_size / (mixer.head_size + 24.0) / (128 / 152.0)
        share = machine.attention[0] * np.minimum(short, 1.05) * sequence / (sequence + 600.0)
        return np.asarray(roofline.attention_time(operations, peak=machine.wide_peak, share=share), dtype=float)
    scores = 2.0 * tokens * sequence * mixer.heads / tp
    products = roofline.attention_time(operations, peak=machine.wide_peak, share=0.5 * machine.curve.bf16)
    return np.asarray(
        products + roofline.memory_bound_time(machine.law.softmax_passes * scores, machine.bandwidth), dtype=float
    )


def feed_products(
    machine: Machine, feed: FeedForward | Experts, hidden: int, tokens: Floats, tp: Floats, ep: Floats
) -> tuple[Floats, Floats]:
    """Forward time of the feed-forward products [s], and the values they keep a token on one rank."""
    up = 2 if feed.gated else 1
    if isinstance(feed, FeedForward):
        wide = feed.ffn / tp
        time = product(machine, tokens, up * wide, hidden) + product(machine, tokens, hidden, wide)
        return time, (up + 1) * wide
    split = np.where(ep > 1, 1.0, tp)
    local, wide = feed.experts / ep, feed.ffn / split
    rows = np.maximum(tokens * feed.top_k / local * np.where(ep > 1, 1.0, 1.0), 1.0)
    routed = product(machine, rows, local * up * wide, hidden) + product(machine, rows, local * hidden, wide)
    kept = feed.top_k * ((up + 1) * wide + 2 * hidden)
    if feed.shared_ffn:
        shared = feed.shared_ffn / tp
        routed = routed + product(machine, tokens, up * shared, hidden) + product(machine, tokens, hidden, shared)
        kept = kept + (up + 1) * shared
    return routed + product(machine, tokens, feed.experts, hidden, wide=True), kept


def layer(
    machine: Machine, block: Block, hidden: int, sequence: int, axes: tuple[Floats, Floats, Floats, Floats]
) -> LayerTime:
    """Time and memory of one layer of ``block``; axes are (tp, cp, ep, batch), each of shape (k,)."""
    tp, cp, ep, batch = axes
    tokens = batch * sequence / cp
    shared = hidden / tp if machine.stack.sequence_parallel else hidden + 0.0 * tp
    products, attention, values = np.zeros_like(tokens), np.zeros_like(tokens), np.zeros_like(tokens)
    projected, attended, core = np.zeros_like(tokens), np.zeros_like(tokens), np.zeros_like(tokens)
    if block.mixer is not None:
        products = products + sum(product(machine, tokens, n, k) for n, k in mixer_products(block.mixer, hidden, tp))
        attention = core_time(machine, block.mixer, tokens, tp, sequence)
        projected, attended = widths(block.mixer, tp)
        if not machine.stack.flash and not isinstance(block.mixer, StateSpace):
            core = 5.0 * tokens * sequence * block.mixer.heads / tp
    if block.feed is not None:
        time, values = feed_products(machine, block.feed, hidden, tokens, tp, ep)
        products = products + time
    moved = (
        machine.law.elementwise
        * tokens
        * work.elementwise_bytes(shared, values, projected, norms=block.norms, fused=machine.stack.fused)
    )
    kept = tokens * memory.activation_bytes_per_token(shared, projected, attended, values)
    elementwise = np.asarray(roofline.memory_bound_time(moved, machine.bandwidth), dtype=float)
    return LayerTime(products, attention, elementwise, kept + core, core)
