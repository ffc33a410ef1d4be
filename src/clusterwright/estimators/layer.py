"""One layer of a model on one accelerator: time forward and backward.

Arrays ``tp``, ``ep``, ``tokens`` have one shape (k,): the distinct combinations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators.efficiency import BLOCKS
from clusterwright.laws import roofline, work
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, StateSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.efficiency import Curve, Flash, LawFactors, Product, Stack
    from clusterwright.hardware import Accelerator

    Floats = NDArray[Any]

ATTENTION_BACKWARD = 2.5
"""Products of a flash kernel's backward pass over those of its forward pass (five to two)."""
EPILOGUE = 0.25
"""Share of a gradient's read and write that its product does not hide: products that add to an fp32 buffer take 5%
longer than others on an A100 and on a B200, where that traffic alone would take 15% and 28% (205 shapes of SimuMax)."""
CAST_BYTES = {"fp8": 2.0, "mxfp8": 4.0, "nvfp4": 4.0}
"""Bytes of the narrow copies of a value. One scale a tensor: the norm or activation before writes the copy and its
transpose itself. One scale a block: both copies are made from a bf16 value, each with its own scales."""
EXPERT_CAST_BYTES = CAST_BYTES | {"fp8": 6.0}
"""The same of grouped products: no norm comes right before them, so that one scale a tensor takes a pass that looks for
the largest value, and one that reads again and writes copy and transpose."""
MOVED_A_COPY, MOVED_TWICE = 4, 6
"""Values moved for each value of a token's copy: sorting the copies by expert reads and writes them, and so does
putting the results back into the tokens' order (Megatron-Core, moe_utils.py: permute and unpermute). Where the copies
themselves are sent, they are written before and read after it too."""
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
    frozen: bool = False
    """Whether the weights are not trained (adapters beside them are)."""
    year: float = 2026.0
    natural: bool = False
    """Whether tokens fall on experts as they will, so that one rank has more than its share."""
    once: bool = True
    """Whether a token's copies are made where their experts are."""
    graphed: bool = False
    """Whether mixtures run as one CUDA graph, their grouped products holding casts and activation."""
    compiled: bool = False
    """Whether a compiler makes the kernels."""

    @property
    def factor(self) -> float:
        """What this stack makes of the device's time, at this number format [1]."""
        narrow = self.products()[2] < 2.0  # noqa: PLR2004 - bytes of bf16
        if self.stack.compiled_factor is not None and (self.compiled or narrow):
            return self.stack.compiled_factor
        return self.stack.factor * self.stack.aged(self.stack.gain, self.year)

    @property
    def novelty(self) -> float:
        """What the novelty of a format with a scale a block makes of its products' time [1]."""
        return self.stack.aged(self.stack.gain_blocks, self.year) if self.precision in BLOCKS else 1.0

    @property
    def wide_peak(self) -> float:
        """Dense peak of bf16 (fp16 where there is no bf16) [FLOP/s]."""
        peaks = self.accelerator.peak_flop_per_s
        return peaks.get("bf16", peaks.get("fp16", 0.0)) or max(peaks.values())

    def products(self) -> tuple[float, Product, float]:
        """Peak [FLOP/s], curve and bytes a value of the weight products."""
        peaks, curve = self.accelerator.peak_flop_per_s, self.curve
        if self.precision in ("fp8", "mxfp8") and "fp8" in peaks:
            return peaks["fp8"], curve.fp8, 1.0
        if self.precision == "nvfp4" and "fp4" in peaks:
            return peaks["fp4"], curve.fp4, 0.5
        if self.precision == "nvfp4" and "fp8" in peaks:
            return peaks["fp8"], curve.fp8, 1.0
        return self.wide_peak, curve.bf16, 2.0

    @property
    def power_share(self) -> float:
        """Share of the sustained speed that a lower power limit leaves [1]."""
        return float(min(self.accelerator.power_w / self.curve.reference_w, 1.0) ** self.law.power_exponent)

    @property
    def wide_share(self) -> float:
        """Share of the bf16 peak that large products sustain through a step, at this power limit [1]."""
        return self.curve.bf16.share * self.curve.bf16.sustained * self.power_share

    @property
    def group_share(self) -> float:
        """Speed of a group of products over that of one large product [1]."""
        return 1.0 if self.graphed else self.law.group_share

    @property
    def has_flash(self) -> bool:
        """Whether attention is one kernel: FlashAttention needs an Ampere or later."""
        return self.stack.flash and not self.accelerator.architecture.startswith("volta")

    @property
    def flash(self) -> Flash:
        """The flash kernels of this stack."""
        return self.curve.attention if self.stack.flash_generation > 2 else self.curve.attention_2  # noqa: PLR2004 - FlashAttention-2

    @property
    def attention_backward(self) -> float:
        """Backward over forward time of the attention core [1]."""
        return ATTENTION_BACKWARD / self.flash.backward if self.has_flash else 2.0

    @property
    def bandwidth(self) -> float:
        """Sustained memory bandwidth [B/s]."""
        return self.accelerator.memory_bytes_per_s * self.curve.memory


@dataclass(frozen=True)
class LayerTime:
    """Device time of one layer for one micro-batch [s]; arrays of shape (k,)."""

    products: Floats
    """Weight products, forward."""
    backward: Floats
    """Weight products, backward."""
    weight: Floats
    """Of them, the gradients of weights, which nothing waits for but the optimizer."""
    attention: Floats
    elementwise: Floats
    feed: Floats
    """Of the weight products forward, those of the feed-forward part."""

    @property
    def forward(self) -> Floats:
        """Forward pass [s]."""
        return self.products + self.attention + self.elementwise


def product(
    machine: Machine,
    m: Any,  # noqa: ANN401 - array or number
    n: Any,  # noqa: ANN401 - array or number
    k: Any,  # noqa: ANN401 - array or number
    *,
    wide: bool = False,
    result_bytes: float = 2.0,
    epilogue: float = 0.0,
    groups: Any = None,  # noqa: ANN401 - array or number
) -> Floats:
    """Time of one product, or of a group of products in one launch; ``wide`` keeps it in bf16 [s]."""
    peak, curve, size = (machine.wide_peak, machine.curve.bf16, 2.0) if wide else machine.products()
    start = machine.curve.start if groups is None else machine.curve.start + machine.law.group_start * groups
    time = roofline.matrix_product_time(
        m,
        n,
        k,
        peak=peak,
        share=curve.share * curve.sustained * machine.power_share * (1.0 if groups is None else machine.group_share),
        half_depth=curve.half_depth,
        waves=curve.waves,
        multiprocessors=machine.accelerator.multiprocessors,
        bandwidth=machine.bandwidth,
        element_bytes=size,
        result_bytes=result_bytes,
        epilogue=epilogue,
        start=start,
        groups=1.0 if groups is None else groups,
    )
    return np.asarray(time, dtype=float)


def linear(
    machine: Machine,
    tokens: Floats,
    n: Any,  # noqa: ANN401 - array or number
    k: Any,  # noqa: ANN401 - array or number
    *,
    wide: bool = False,
    groups: Any = None,  # noqa: ANN401 - array or number
) -> tuple[Floats, Floats, Floats]:
    """Time of a weight of n columns and k rows: forward, backward, and of that its own gradient [s].

    The gradient of the weight is added to a buffer: it reads and writes every value of it. Frozen weights have none.
    """
    ahead = product(machine, tokens, n, k, wide=wide, groups=groups)
    back = product(machine, tokens, k, n, wide=wide, groups=groups)
    weight = np.zeros_like(back)
    if not machine.frozen:
        added = 2.0 * machine.stack.gradient
        weight = product(machine, n, k, tokens, wide=wide, result_bytes=added, epilogue=EPILOGUE, groups=groups)
        back = back + weight
    fused = groups is not None and machine.graphed
    if not wide and not fused and machine.products()[2] < 2.0:  # noqa: PLR2004 - bytes of bf16
        every = tokens * (1.0 if groups is None else groups)
        moved = (CAST_BYTES if groups is None else EXPERT_CAST_BYTES)[machine.precision]
        ahead = ahead + moved * every * k / machine.bandwidth
        back = back + moved * every * n / machine.bandwidth
    if wide:
        return ahead, back, weight
    return ahead * machine.novelty, back * machine.novelty, weight * machine.novelty


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


def width(mixer: Attention | LatentAttention | StateSpace, tp: Floats) -> Floats:
    """Width of query, key and value on one rank."""
    if isinstance(mixer, StateSpace):
        return 3 * mixer.heads * mixer.head_size / tp + 2 * mixer.groups * mixer.state / tp
    if isinstance(mixer, LatentAttention):
        return mixer.heads * (2 * mixer.head_size + mixer.value_size) / tp
    return np.asarray(mixer.heads * mixer.head_size / tp + 2 * np.maximum(mixer.kv_heads / tp, 1) * mixer.head_size)


def core_time(
    machine: Machine, mixer: Attention | LatentAttention | StateSpace, tokens: Floats, tp: Floats, sequence: int
) -> Floats:
    """Forward time of the attention (or state-space) core [s]."""
    flash = machine.flash
    if isinstance(mixer, StateSpace):
        keys: Any = STATE_CHUNK / 2.0 + mixer.state
        value = mixer.head_size
    else:
        keys = work.attended_tokens(sequence, mixer.window, causal=machine.has_flash)
        value = mixer.value_size if isinstance(mixer, LatentAttention) else mixer.head_size
    operations = work.attention_flop(tokens, keys, mixer.heads / tp, mixer.head_size, value)
    if machine.has_flash or isinstance(mixer, StateSpace):
        return np.asarray(
            roofline.attention_time(
                operations,
                peak=machine.wide_peak,
                share=flash.share * flash.sustained * machine.power_share,
                length=sequence,
                half_length=flash.half_length,
                head_size=mixer.head_size,
                half_head=flash.half_head,
                start=machine.curve.start,
            ),
            dtype=float,
        )
    scores = 2.0 * tokens * sequence * mixer.heads / tp
    return np.asarray(
        roofline.unfused_attention_time(
            operations,
            scores,
            peak=machine.wide_peak,
            share=machine.wide_share,
            half_depth=machine.curve.bf16.half_depth,
            key_size=mixer.head_size,
            value_size=value,
            passes=machine.law.softmax_passes,
            bandwidth=machine.bandwidth,
        ),
        dtype=float,
    )


def feed_products(
    machine: Machine, feed: FeedForward | Experts, hidden: int, tokens: Floats, tp: Floats, ep: Floats
) -> tuple[tuple[Floats, Floats, Floats], Floats]:
    """Times of the feed-forward products, as of `linear` [s], and the values that their activation moves a token."""
    up = 2 if feed.gated else 1
    if isinstance(feed, FeedForward):
        wide = feed.ffn / tp
        return _add(linear(machine, tokens, up * wide, hidden), linear(machine, tokens, hidden, wide)), (up + 1) * wide
    split = np.where(ep > 1, 1.0, tp)
    whole = np.where(
        ep > 1, tp, 1.0
    )  # with expert parallelism the tensor-parallel ranks share the tokens, not the experts
    local, ffn = np.maximum(feed.experts / ep, 1.0), feed.ffn / split
    rows = np.maximum(tokens * feed.top_k / whole / local, 1.0)
    times = _add(
        linear(machine, rows, up * ffn, hidden, groups=local), linear(machine, rows, hidden, ffn, groups=local)
    )
    if machine.natural:
        skew = work.routing_skew(ep)
        times = (times[0] * skew, times[1] * skew, times[2] * skew)
    activated = 0.0 if machine.graphed else (up + 1) * ffn
    moved = np.where(machine.once | (ep <= 1), MOVED_A_COPY, MOVED_TWICE)
    values = feed.top_k * (activated + moved * hidden) / whole
    if feed.shared_ffn:
        shared = feed.shared_ffn / tp
        times = _add(times, linear(machine, tokens, up * shared, hidden), linear(machine, tokens, hidden, shared))
        values = values + (up + 1) * shared
    return _add(times, linear(machine, tokens, feed.experts, hidden, wide=True)), values


def _add(*times: tuple[Floats, Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    ahead, back, weight = (np.asarray(sum(part), dtype=float) for part in zip(*times, strict=True))
    return ahead, back, weight


def layer(machine: Machine, block: Block, hidden: int, attended: int, axes: tuple[Floats, Floats, Floats]) -> LayerTime:
    """Time of one layer of ``block``, of whose tokens so many see one another.

    Axes are (tp, ep, tokens of a micro-batch on the rank), each of shape (k,).
    """
    tp, ep, tokens = axes
    shared = hidden / tp if machine.stack.sequence_parallel else hidden + 0.0 * tp
    times = (np.zeros_like(tokens), np.zeros_like(tokens), np.zeros_like(tokens))
    attention, values = np.zeros_like(tokens), np.zeros_like(tokens)
    projected, feed = np.zeros_like(tokens), np.zeros_like(tokens)
    if block.mixer is not None:
        times = _add(*(linear(machine, tokens, n, k) for n, k in mixer_products(block.mixer, hidden, tp)))
        attention = core_time(machine, block.mixer, tokens, tp, attended)
        projected = width(block.mixer, tp)
    if block.feed is not None:
        fed, values = feed_products(machine, block.feed, hidden, tokens, tp, ep)
        times, feed = _add(times, fed), fed[0]
    moved = (
        machine.law.elementwise
        * tokens
        * work.elementwise_bytes(shared, values, projected, norms=block.norms, fused=machine.stack.fused)
    )
    elementwise = np.asarray(roofline.memory_bound_time(moved, machine.bandwidth), dtype=float)
    return LayerTime(*times, attention, elementwise, feed)
