"""Work of a transformer layer: floating-point operations and bytes, from its shape.

Symbols: ``m, n, k`` of a matrix product; ``s`` sequence length [tokens].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Bytes, Count, Flop


def matrix_product_flop(m: Count, n: Count, k: Count) -> Flop:
    r"""Floating-point operations of one matrix product, :math:`2 m n k`.

    Args:
        m: Rows of the result. [1]
        n: Columns of the result. [1]
        k: Depth of the sum. [1]

    Returns:
        Operations. [FLOP]

    >>> matrix_product_flop(2, 3, 4)
    48
    """
    return 2 * m * n * k


def attended_tokens(sequence: Count, window: Count, *, causal: bool = True) -> Array:
    r"""Mean number of keys a query attends to.

    Causal: :math:`(s + 1) / 2`; with a sliding window :math:`w < s`: :math:`w - w (w - 1) / (2 s)`.

    Args:
        sequence: Sequence length. [tokens]
        window: Sliding window, 0 for none. [tokens]
        causal: Whether a query sees only what is before it.

    Returns:
        Keys a query. [tokens]

    >>> float(attended_tokens(3, 0))
    2.0
    >>> float(attended_tokens(4, 2))
    1.75
    """
    s = np.asarray(sequence, dtype=float)
    w = np.where(np.asarray(window) > 0, np.minimum(window, s), s)
    if not causal:
        return w[()]
    seen: Array = (w - w * (w - 1) / (2 * s))[()]
    return seen


def attention_flop(tokens: Count, keys: Array, heads: Count, key_size: Count, value_size: Count) -> Flop:
    r"""Forward operations of the attention core, :math:`2 T k_a h (d_k + d_v)`; only what is computed counts.

    Args:
        tokens: Queries. [tokens]
        keys: Mean keys a query attends to. [tokens]
        heads: Query heads. [1]
        key_size: Size of a query and key head. [1]
        value_size: Size of a value head. [1]

    Returns:
        Operations of the forward pass; the backward pass has 2.5 times as many in a flash kernel (Dao 2023,
        https://arxiv.org/abs/2307.08691, section 3.1: five products for two). [FLOP]

    >>> attention_flop(10, 5.0, 2, 64, 64)
    25600.0
    """
    return 2 * tokens * keys * heads * (key_size + value_size)


def elementwise_bytes(hidden: Count, wide: Count, projected: Count, *, norms: Count, fused: bool) -> Bytes:
    r"""Bytes that the memory-bound kernels of one layer move for one token in the forward pass.

    Norms read and write the width, residual additions read two and write one; the activation reads and writes
    ``wide``; rotary reads and writes ``projected``. Two bytes a value. A stack without fused kernels also writes
    what a fused one keeps in registers: half as much again.

    Args:
        hidden: Width, divided by the ranks that share it under sequence parallelism. [1]
        wide: Values that the activation reads and writes. [1]
        projected: Values of query and key. [1]
        norms: Norms in the layer. [1]
        fused: Whether the stack fuses element-wise kernels.

    Returns:
        Bytes. [B]

    >>> elementwise_bytes(4, 0, 0, norms=2, fused=True)
    80.0
    """
    moved = 2.0 * (hidden * (2 * norms + 6) + wide + 2 * projected)
    return moved if fused else 1.5 * moved


def optimizer_bytes(master: Bytes, moments: Bytes, gradient: Bytes, weight: Bytes) -> Bytes:
    r"""Bytes that gradient norm, clipping and a fused AdamW step move for one parameter.

    .. math:: 2 (w_m + s) + 2 g + w

    States are read and written, the gradient is read for its norm and for the step, the weight is written; a weight
    without a master is a state itself.

    Args:
        master: Master weight, :math:`w_m`; 0 for none. [B]
        moments: What is remembered of past gradients, :math:`s`. [B]
        gradient: Gradient that the step takes, :math:`g`. [B]
        weight: Weight that the products use, :math:`w`. [B]

    Returns:
        Bytes. [B]

    >>> optimizer_bytes(4, 8, 4, 2), optimizer_bytes(0, 4, 2, 2)
    (34, 16)
    """
    return 2 * (master + moments) + 2 * gradient + (weight if master else 2 * weight)


def routing_skew(ranks: Count) -> Array:
    r"""Time of the slowest rank's experts over that of balanced routing, :math:`1.04 + 0.073 \log_2 p`.

    Source: tables moe_perf of aiconfigurator-core 0.12.0 (PyPI, Apache-2.0): expert loads by a power law of exponent
    1.01 against equal ones, from 4,096 tokens, medians over 205,000 pairs: 1.04, 1.11, 1.19, 1.26 for 1, 2, 4, 8 ranks,
    1.38 beyond.

    Args:
        ranks: Expert-parallel ranks, :math:`p`. [1]

    Returns:
        At least 1. [1]

    >>> round(float(routing_skew(8)), 2)
    1.26
    """
    skew: Array = 1.04 + 0.073 * np.log2(np.asarray(ranks, dtype=float))
    return skew
