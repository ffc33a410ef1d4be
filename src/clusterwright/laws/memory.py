"""Bytes that training holds on one accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Bytes, Count


def state_bytes(
    parameters: Count,
    *,
    weight: Array,
    gradient: Array,
    optimizer: Array,
    weight_shards: Count,
    gradient_shards: Count,
    optimizer_shards: Count,
) -> Bytes:
    r"""Bytes of weights, gradients and optimizer states on one rank, each over its own number of shards.

    .. math:: N \left(\frac{w}{s_w} + \frac{g}{s_g} + \frac{o}{s_o}\right)

    Source: Rajbhandari et al. 2020 (ZeRO), https://arxiv.org/abs/1910.02054, figure 1.

    Args:
        parameters: Parameters of the rank before sharding over data parallelism. [1]
        weight: Bytes of a weight. [B]
        gradient: Bytes of a gradient. [B]
        optimizer: Bytes of master weight and moments, a parameter. [B]
        weight_shards: Ranks that share the weights. [1]
        gradient_shards: Ranks that share the gradients. [1]
        optimizer_shards: Ranks that share the optimizer states. [1]

    Returns:
        Bytes. [B]

    >>> float(
    ...     state_bytes(
    ...         7.5e9, weight=2, gradient=2, optimizer=12, weight_shards=1, gradient_shards=1, optimizer_shards=64
    ...     )
    ... ) / 1e9
    31.40625
    """
    n = np.asarray(parameters, dtype=float)
    return n * (
        weight / np.asarray(weight_shards)
        + gradient / np.asarray(gradient_shards)
        + optimizer / np.asarray(optimizer_shards)
    )


def activation_bytes_per_token(hidden: Array, projected: Array, attended: Array, wide: Array) -> Bytes:
    r"""Bytes one layer keeps of one token for its backward pass, in bf16 with fused attention.

    Inputs of the two norms and of the two first products (:math:`4 h`), query, key and value, attention output,
    and what the feed-forward part keeps; two bytes a value (Korthikanti et al. 2022, section 4.1, without dropout
    and with flash attention).

    Args:
        hidden: Width, divided by ranks under sequence parallelism. [1]
        projected: Query, key and value widths, divided by tensor parallelism. [1]
        attended: Attention output width, divided by tensor parallelism. [1]
        wide: Values the feed-forward part keeps, divided by tensor parallelism. [1]

    Returns:
        Bytes. [B]

    >>> activation_bytes_per_token(1, 3, 1, 8)
    32.0
    """
    return 2.0 * (4 * hidden + projected + attended + wide)
