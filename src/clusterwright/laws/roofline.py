"""Time of one kernel on one accelerator: compute, memory and launch bounds.

Symbols: ``m, n, k`` of a matrix product; ``p`` peak [FLOP/s]; ``b`` memory bandwidth [B/s].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Bytes, BytesPerSecond, Count, Flop, FlopPerSecond, Seconds, Share

TILE_ROWS = 128
TILE_COLUMNS = 256


def tile_quantisation(m: Count, n: Count, multiprocessors: Count) -> Share:
    r"""Share of the multiprocessors' time that tiles of the result fill.

    .. math::

        q = \frac{m n}{128 \cdot 256 \; \lceil t / S \rceil \, S}, \quad
        t = \lceil m/128 \rceil \lceil n/256 \rceil

    Half of the last wave's idle time is won back by smaller tiles and split depth (NVIDIA, "Matrix
    Multiplication Background User's Guide", sections on tile and wave quantisation).

    Args:
        m: Rows of the result. [1]
        n: Columns of the result. [1]
        multiprocessors: Streaming multiprocessors of the accelerator, :math:`S`. [1]

    Returns:
        Share between 0 and 1. [1]

    >>> float(tile_quantisation(128, 256 * 132, 132))
    1.0
    """
    tiles = np.ceil(np.asarray(m) / TILE_ROWS) * np.ceil(np.asarray(n) / TILE_COLUMNS)
    waves = np.ceil(tiles / multiprocessors)
    filled = np.asarray(m, dtype=float) * n / (TILE_ROWS * TILE_COLUMNS * waves * multiprocessors)
    return 0.5 * (filled + np.sqrt(filled))


def matrix_product_time(  # noqa: PLR0913 - the quantities of the law
    m: Count,
    n: Count,
    k: Count,
    *,
    peak: FlopPerSecond,
    share: Share,
    half_depth: Array,
    multiprocessors: Count,
    bandwidth: BytesPerSecond,
    element_bytes: Array,
) -> Seconds:
    r"""Time of one matrix product: the slower of compute and memory.

    .. math::

        t = \max\left(\frac{2 m n k}{p \, \eta \, q(m, n) \, k / (k + k_{1/2})},
        \frac{e (m k + k n) + 2 m n}{b}\right)

    Args:
        m: Rows of the result. [1]
        n: Columns of the result. [1]
        k: Depth of the sum. [1]
        peak: Dense peak, :math:`p`. [FLOP/s]
        share: Sustained share of the peak on large products, :math:`\eta`. [1]
        half_depth: Depth at which half of that share is reached. [1]
        multiprocessors: Streaming multiprocessors. [1]
        bandwidth: Memory bandwidth, :math:`b`. [B/s]
        element_bytes: Bytes of an input value, :math:`e`. [B]

    Returns:
        Time without launch. [s]

    >>> t = matrix_product_time(
    ...     8192,
    ...     8192,
    ...     8192,
    ...     peak=989e12,
    ...     share=0.78,
    ...     half_depth=500,
    ...     multiprocessors=132,
    ...     bandwidth=3.35e12,
    ...     element_bytes=2,
    ... )
    >>> 1.0e-3 < float(t) < 2.0e-3
    True
    """
    ramp = np.asarray(k, dtype=float) / (np.asarray(k) + half_depth)
    compute = 2.0 * m * n * k / (peak * share * ramp * tile_quantisation(m, n, multiprocessors))
    memory = (
        element_bytes * (np.asarray(m, dtype=float) * k + np.asarray(k, dtype=float) * n) + 2.0 * m * n
    ) / bandwidth
    return np.maximum(compute, memory)


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


def attention_time(operations: Flop, *, peak: FlopPerSecond, share: Share) -> Seconds:
    """Time of a fused attention kernel: operations over the sustained share of the peak.

    Args:
        operations: Floating-point operations. [FLOP]
        peak: Dense bf16 peak. [FLOP/s]
        share: Sustained share of it. [1]

    Returns:
        Time. [s]

    >>> attention_time(989e12, peak=989e12, share=0.5)
    2.0
    """
    return operations / (peak * share)


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
