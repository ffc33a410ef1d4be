"""Time of one kernel on one accelerator: compute, memory and launch bounds.

Symbols: ``m, n, k`` of a matrix product; ``p`` peak [FLOP/s]; ``b`` memory bandwidth [B/s].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Bytes, BytesPerSecond, Count, Flop, FlopPerSecond, Seconds, Share

TILE_ROWS = 128
TILE_COLUMNS = 256
RIDGE = 3.5
"""Sharpness of the roofline's ridge: the exponents 3 and 4 fit the measured products of every architecture and format
better than the maximum of both bounds (median error 3.5% instead of 4.1% on Hopper in bf16) and than 2. [1]"""


def tile_quantisation(m: Count, n: Count, multiprocessors: Count, groups: Count = 1) -> Share:
    r"""Share of the multiprocessors' time that tiles of the result fill.

    .. math::

        f = \frac{g m n}{128 \cdot 256 \; \lceil t / S \rceil \, S}, \quad
        t = g \lceil m/128 \rceil \lceil n/256 \rceil

    Source: NVIDIA, "Matrix Multiplication Background User's Guide", sections on tile and wave quantisation.

    Args:
        m: Rows of the result. [1]
        n: Columns of the result. [1]
        multiprocessors: Streaming multiprocessors of the accelerator, :math:`S`. [1]
        groups: Products of that size in one launch, :math:`g`. [1]

    Returns:
        Share between 0 and 1. [1]

    >>> float(tile_quantisation(128, 256 * 132, 132)), float(tile_quantisation(128, 256, 132, groups=132))
    (1.0, 1.0)
    """
    tiles = groups * np.ceil(np.asarray(m) / TILE_ROWS) * np.ceil(np.asarray(n) / TILE_COLUMNS)
    waves = np.ceil(tiles / multiprocessors)
    return groups * np.asarray(m, dtype=float) * n / (TILE_ROWS * TILE_COLUMNS * waves * multiprocessors)


def matrix_product_time(  # noqa: PLR0913 - the quantities of the law
    m: Count,
    n: Count,
    k: Count,
    *,
    peak: FlopPerSecond,
    share: Share,
    half_depth: Array,
    waves: Array,
    multiprocessors: Count,
    bandwidth: BytesPerSecond,
    element_bytes: Array,
    result_bytes: Array = 2.0,
    epilogue: Share = 0.0,
    start: Seconds = 0.0,
    groups: Count = 1,
) -> Seconds:
    r"""Time of one matrix product, or of a group of equal ones in one launch: compute and memory bound.

    .. math::

        t = t_0 + g \left(t_c^x + t_m^x\right)^{1/x} + g \, \epsilon \frac{r m n}{b}, \quad
        t_c = \frac{2 m n (k + k_{1/2})}{p \, \eta \, f(m, n)^w}, \quad
        t_m = \frac{e (m k + k n) + r m n}{b}

    Near the ridge neither hides the other wholly: :math:`x` is `RIDGE`. Kernels of libraries split the last wave's
    work more or less well: :math:`w` is near 0 where they win all of its idle time back and 1 where they win nothing
    (:math:`f`: `tile_quantisation`).

    Args:
        m: Rows of the result. [1]
        n: Columns of the result. [1]
        k: Depth of the sum. [1]
        peak: Dense peak, :math:`p`. [FLOP/s]
        share: Sustained share of the peak on large products, :math:`\eta`. [1]
        half_depth: Depth that filling and draining cost, :math:`k_{1/2}`. [1]
        waves: Weight of the last wave's idle time, :math:`w`. [1]
        multiprocessors: Streaming multiprocessors. [1]
        bandwidth: Memory bandwidth, :math:`b`. [B/s]
        element_bytes: Bytes of an input value, :math:`e`. [B]
        result_bytes: Bytes moved for a value of the result, :math:`r`. [B]
        epilogue: Share of that traffic that comes after the product and nothing hides, :math:`\epsilon`. [1]
        start: Time to start and end the kernel, :math:`t_0`. [s]
        groups: Equal products in one launch, :math:`g`. [1]

    Returns:
        Time. [s]

    >>> t = matrix_product_time(
    ...     8192,
    ...     8192,
    ...     8192,
    ...     peak=989e12,
    ...     share=0.78,
    ...     half_depth=150,
    ...     waves=0.1,
    ...     multiprocessors=132,
    ...     bandwidth=3.35e12,
    ...     element_bytes=2,
    ... )
    >>> 1.0e-3 < float(t) < 2.0e-3
    True
    """
    m, n, k = (np.asarray(v, dtype=float) for v in (m, n, k))
    compute = (
        2.0 * m * n * (k + half_depth) / (peak * share * tile_quantisation(m, n, multiprocessors, groups) ** waves)
    )
    memory = (element_bytes * (m * k + k * n) + result_bytes * m * n) / bandwidth
    after = epilogue * result_bytes * m * n / bandwidth
    time: Array = start + groups * ((compute**RIDGE + memory**RIDGE) ** (1.0 / RIDGE) + after)
    return time


def memory_bound_time(moved: Bytes, bandwidth: BytesPerSecond) -> Seconds:
    """Time of a kernel that the memory bounds: bytes over bandwidth.

    Args:
        moved: Bytes read and written. [B]
        bandwidth: Sustained memory bandwidth. [B/s]

    Returns:
        Time. [s]

    >>> memory_bound_time(3.35e12, 3.35e12)
    1.0
    """
    return moved / bandwidth


def attention_time(
    operations: Flop,
    *,
    peak: FlopPerSecond,
    share: Share,
    length: Count,
    half_length: Array,
    head_size: Count,
    half_head: Array,
    start: Seconds = 0.0,
) -> Seconds:
    r"""Time of a fused attention kernel: its sustained share of the peak falls with short rows and small heads.

    .. math::

        t = t_0 + \frac{o}{p \, \eta} \; \frac{s + s_{1/2}}{s} \;
        \frac{d + d_{1/2}}{d} \, \frac{128}{128 + d_{1/2}}

    Args:
        operations: Floating-point operations, :math:`o`. [FLOP]
        peak: Dense bf16 peak, :math:`p`. [FLOP/s]
        share: Sustained share of it on long rows with heads of 128, :math:`\eta`. [1]
        length: Sequence length, :math:`s`. [tokens]
        half_length: Length at which half of the share is reached, :math:`s_{1/2}`. [tokens]
        head_size: Size of a head, :math:`d`. [1]
        half_head: Size of a head that costs as much as it computes, :math:`d_{1/2}`. [1]
        start: Time to start and end the kernel, :math:`t_0`. [s]

    Returns:
        Time. [s]

    >>> attention_time(989e12, peak=989e12, share=0.5, length=8192, half_length=0, head_size=128, half_head=50)
    2.0
    """
    heads = (head_size + half_head) / head_size * 128.0 / (128.0 + half_head)
    return start + operations / (peak * share) * (length + half_length) / length * heads


def unfused_attention_time(  # noqa: PLR0913 - the quantities of the law
    operations: Flop,
    scores: Bytes,
    *,
    peak: FlopPerSecond,
    share: Share,
    half_depth: Array,
    key_size: Count,
    value_size: Count,
    passes: Array,
    bandwidth: BytesPerSecond,
) -> Seconds:
    r"""Time of attention that writes its score matrix: two products, one shallow and one narrow, and the softmax.

    .. math::

        t = \frac{o}{2 p \, \eta} \left(\frac{d_k + k_{1/2}}{d_k} + \frac{128 \lceil d_v / 128 \rceil}{d_v}\right)
        + \frac{c \, n}{b}

    Args:
        operations: Floating-point operations, :math:`o`. [FLOP]
        scores: Score matrix, :math:`n`. [B]
        peak: Dense peak, :math:`p`. [FLOP/s]
        share: Sustained share of the peak on large products, :math:`\eta`. [1]
        half_depth: Depth that filling and draining a product cost, :math:`k_{1/2}`. [1]
        key_size: Size of a key head, the depth of the first product, :math:`d_k`. [1]
        value_size: Size of a value head, the columns of the second, :math:`d_v`. [1]
        passes: Times that the score matrix is read or written, :math:`c`. [1]
        bandwidth: Memory bandwidth, :math:`b`. [B/s]

    Returns:
        Time. [s]

    >>> sizes = {"key_size": 128, "value_size": 128, "half_depth": 128, "passes": 4, "bandwidth": 2e12}
    >>> unfused_attention_time(312e12, 5e11, peak=312e12, share=0.75, **sizes)
    3.0
    """
    depth = 1.0 + half_depth / key_size
    columns = math.ceil(value_size / TILE_ROWS) * TILE_ROWS / value_size
    products = operations / (peak * share) * (depth + columns) / 2.0
    return products + passes * memory_bound_time(scores, bandwidth)


def host_bound(device: Seconds, host: Seconds) -> Seconds:
    """Time of work that the host must also launch: the longer of both.

    Args:
        device: Time on the accelerator. [s]
        host: Time the host takes to launch its kernels. [s]

    Returns:
        Time. [s]

    >>> float(host_bound(1.0, 2.0))
    2.0
    """
    return np.maximum(device, host)
