r"""Time of collectives over two tiers: the scale-up domain, and the scale-out network between domains.

Symbols: ``n`` message [B]; ``p`` ranks; ``g`` ranks of the group in one domain; ``d = p / g`` domains;
``b_u`` scale-up and ``b_o`` scale-out bandwidth of one rank, one direction [B/s]; ``a`` start-up latency [s].

A ring over both tiers is pipelined, so the slower tier sets the pace; the ``g`` ranks of a domain each drive their
own NIC. Bus bandwidth follows the definition of nccl-tests (doc/PERFORMANCE.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Bytes, BytesPerSecond, Count, Seconds

HALF_FILL = 1e7
"""Message at which half of a ring's pipeline fill time is paid [B]; from NCCL sweeps on A100 and H100."""


def start_up(message: Bytes, *, latency: Seconds, fill: Seconds) -> Seconds:
    r"""Time that does not shrink with bandwidth, :math:`a + f n / (n + n_{1/2})`.

    Args:
        message: Bytes. [B]
        latency: Latency of a tiny message. [s]
        fill: Time to fill the ring's pipeline with a long one. [s]

    Returns:
        Time. [s]

    >>> start_up(0.0, latency=2e-5, fill=6e-5)
    2e-05
    """
    return latency + fill * message / (message + HALF_FILL)


def ring_latency(ranks: Count, local: Count, *, inside: Seconds, outside: Seconds) -> Seconds:
    r"""Time in which one message passes once around a ring, :math:`(d - 1) a_o + (p - d) a_u`.

    Source: the tuning model of NCCL, https://github.com/NVIDIA/nccl, src/graph/tuning.cc: a ring's latency is the
    number of hops inside and between nodes times their hardware latency; a gather passes once, a reduction twice.

    Args:
        ranks: Ranks of the group, :math:`p`. [1]
        local: Ranks of the group in one scale-up domain. [1]
        inside: Latency of a hop in the domain, :math:`a_u`. [s]
        outside: Latency of a hop between domains, :math:`a_o`. [s]

    Returns:
        Time. [s]

    >>> ring_latency(16, 8, inside=2e-6, outside=14e-6)
    4.2e-05
    """
    domains = ranks / local
    return (domains - 1) * outside + (ranks - domains) * inside


def tree_latency(ranks: Count, local: Count, *, inside: Seconds, outside: Seconds) -> Seconds:
    r"""Time of an all-reduce's latency up and down a tree of domains, :math:`2 (\log_2 d \, a_o + (g - 1) a_u)`.

    Source and arguments as `ring_latency`.

    Args:
        ranks: Ranks of the group, :math:`p`. [1]
        local: Ranks of the group in one scale-up domain, :math:`g`. [1]
        inside: Latency of a hop in the domain. [s]
        outside: Latency of a hop between domains. [s]

    Returns:
        Time. [s]

    >>> float(tree_latency(32, 8, inside=2e-6, outside=14e-6))
    8.4e-05
    """
    return 2 * (np.log2(np.maximum(ranks / local, 1.0)) * outside + (local - 1) * inside)


def all_gather_ring(
    message: Bytes, ranks: Count, local: Count, *, up: BytesPerSecond, out: BytesPerSecond, start: Seconds
) -> Seconds:
    r"""Time of an all-gather or a reduce-scatter; ``message`` is the whole gathered buffer.

    .. math:: t = s + \max\left(\frac{p - 1}{p} \frac{n}{b_u}, \frac{d - 1}{d} \frac{n}{g\,b_o}\right)

    Args:
        message: Gathered buffer on each rank, :math:`n`. [B]
        ranks: Ranks of the group, :math:`p`. [1]
        local: Ranks of the group in one scale-up domain, :math:`g`. [1]
        up: Scale-up bandwidth of a rank. [B/s]
        out: Scale-out bandwidth of a rank. [B/s]
        start: Start-up time, :math:`s`. [s]

    Returns:
        Time; 0 for one rank. [s]

    >>> float(all_gather_ring(1e9, 1, 1, up=4e11, out=5e10, start=1e-5))
    0.0
    >>> round(float(all_gather_ring(8e9, 8, 8, up=4e11, out=5e10, start=0.0)), 4)
    0.0175
    """
    p, g = np.asarray(ranks, dtype=float), np.asarray(local, dtype=float)
    inside = np.where(g > 1, (p - 1) / p * message / up, 0.0)
    domains = np.maximum(p / g, 1.0)
    outside = (domains - 1) / domains * message / (g * out)
    return np.where(p > 1, start + np.maximum(inside, outside), 0.0)


def all_reduce_ring(  # noqa: D417 - same arguments
    message: Bytes, ranks: Count, local: Count, *, up: BytesPerSecond, out: BytesPerSecond, start: Seconds
) -> Seconds:
    """Time of an all-reduce: a reduce-scatter and an all-gather, one start-up.

    Args:
        message: Buffer on each rank. [B]
        ranks: Ranks of the group. [1]

    Returns:
        Time; 0 for one rank. [s]

    >>> round(float(all_reduce_ring(8e9, 8, 8, up=4e11, out=5e10, start=0.0)), 4)
    0.035
    """
    once = all_gather_ring(message, ranks, local, up=up, out=out, start=0.0)
    return np.where(np.asarray(ranks) > 1, start + 2 * once, 0.0)


def all_to_all_pairwise(
    message: Bytes, ranks: Count, local: Count, *, up: BytesPerSecond, out: BytesPerSecond, start: Seconds
) -> Seconds:
    r"""Time of an all-to-all in which each rank sends ``message`` in equal parts to all ranks.

    .. math:: t = s + \frac{g - 1}{p} \frac{n}{b_u} + \frac{p - g}{p} \frac{n}{b_o}

    Args:
        message: Bytes a rank sends, its own part included. [B]
        ranks: Ranks of the group. [1]
        local: Ranks of the group in one scale-up domain. [1]
        up: Scale-up bandwidth of a rank. [B/s]
        out: Scale-out bandwidth of a rank. [B/s]
        start: Start-up time. [s]

    Returns:
        Time; 0 for one rank. [s]

    >>> float(all_to_all_pairwise(1e9, 1, 1, up=4e11, out=5e10, start=1e-5))
    0.0
    """
    p, g = np.asarray(ranks, dtype=float), np.asarray(local, dtype=float)
    return np.where(p > 1, start + (g - 1) / p * message / up + (p - g) / p * message / out, 0.0)


def domains_reached(domains: Count, copies: Count) -> Array:
    r"""Expected number of other domains that at least one of a token's copies goes to, with balanced routing.

    .. math:: (d - 1) \left(1 - \left(1 - \frac{1}{d}\right)^{k}\right)

    A dispatcher that sends a token once to each domain (DeepEP, https://github.com/deepseek-ai/DeepEP) crosses the
    network this often instead of :math:`k (d - 1) / d` times.

    Args:
        domains: Domains of the group, :math:`d`. [1]
        copies: Experts a token goes to, :math:`k`. [1]

    Returns:
        Domains. [1]

    >>> float(domains_reached(1, 8)), float(domains_reached(2, 1))
    (0.0, 0.5)
    """
    d = np.asarray(domains, dtype=float)
    reached: Array = (d - 1) * (1 - (1 - 1 / d) ** np.asarray(copies))
    return reached


def send(message: Bytes, *, bandwidth: BytesPerSecond, latency: Seconds) -> Seconds:
    """Time of one point-to-point message.

    Args:
        message: Bytes. [B]
        bandwidth: Of the link. [B/s]
        latency: Start-up. [s]

    Returns:
        Time. [s]

    >>> send(1e9, bandwidth=1e9, latency=0.0)
    1.0
    """
    return latency + message / bandwidth


def local_ranks(ranks: Count, stride: Count, domain: Count) -> Array:
    """Ranks of a group that share one scale-up domain, where members are ``stride`` ranks apart.

    Args:
        ranks: Ranks of the group. [1]
        stride: Distance of neighbours in rank order. [1]
        domain: Accelerators of a scale-up domain. [1]

    Returns:
        At least 1. [1]

    >>> int(local_ranks(8, 8, 8)), int(local_ranks(4, 2, 8))
    (1, 4)
    """
    shared: Array = np.clip(np.asarray(domain) // np.asarray(stride), 1, ranks)
    return shared
