"""Bytes that training holds on one accelerator.

Symbols: ``h`` width of the network, ``f`` of the feed-forward part; ``p`` pipeline stages, ``k`` the number of a stage,
``v`` model chunks a stage, ``m`` micro-batches a step; ``t`` ranks of tensor parallelism.
"""

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


def score_bytes(tokens: Count, sequence: Count, heads: Array, matrices: Array) -> Bytes:
    r"""Bytes of the attention scores that unfused attention keeps, :math:`2 c\, T s a`.

    Without dropout the softmax's result is kept (:math:`c = 1`); with it, its input, its mask (one byte) and its result
    too: :math:`5 a s / h` of Korthikanti et al. 2022, https://arxiv.org/abs/2205.05198, equation 1 (:math:`c = 2.5`).

    Args:
        tokens: Tokens of the micro-batch. [1]
        sequence: Keys that each of them meets. [tokens]
        heads: Attention heads of the rank. [1]
        matrices: Score matrices kept, of two bytes a value. [1]

    Returns:
        Bytes. [B]

    >>> float(score_bytes(2048, 2048, 32, 1)) / 2**20
    256.0
    """
    kept: Array = (
        2.0 * np.asarray(matrices) * np.asarray(tokens, dtype=float) * np.asarray(sequence) * np.asarray(heads)
    )
    return kept


def micro_batches_held(micro_batches: Count, stages: Count, virtual: Count, stage: Count) -> Array:
    r"""Micro-batches whose activations stage ``k`` holds at once under 1F1B.

    .. math:: \min(m, p - k), \qquad
              \text{interleaved: } \frac{1}{v} \min(m v,\; 2 (p - k - 1) + (v - 1) p + 1)

    Source: Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, section 2.2; warm-up of the interleaved schedule as
    in Megatron-LM, ``get_pp_rank_microbatches`` of megatron/core/pipeline_parallel/schedules.py.

    Args:
        micro_batches: Micro-batches of a rank in one step. [1]
        stages: Pipeline stages. [1]
        virtual: Model chunks a stage holds. [1]
        stage: Number of the stage, from 0. [1]

    Returns:
        Micro-batches, each of all the stage's layers. [1]

    >>> float(micro_batches_held(16, 4, 1, 0)), float(micro_batches_held(16, 4, 1, 3))
    (4.0, 1.0)
    >>> float(micro_batches_held(16, 4, 2, 0)), float(micro_batches_held(16, 4, 2, 3))
    (5.5, 2.5)
    """
    m, p, v = (np.asarray(x, dtype=float) for x in (micro_batches, stages, virtual))
    k = np.asarray(stage, dtype=float)
    chunks = 2 * (p - k - 1) + (v - 1) * p + 1
    held: Array = np.where((v > 1) & (p > 1), np.minimum(m * v, chunks) / v, np.minimum(m, p - k))
    return held


def layers_before(stage: Count, stages: Count, layers: Count, head: Array) -> Array:
    r"""Layers on the stages before stage ``k`` where stages are cut by work and the output head is worth some layers.

    A stage takes layers until it has passed its share of the work:
    :math:`\min(L, \lfloor k (L + c) / p \rfloor + 1)`, none before the first and all before the end.

    Source: nanotron, ``build_model`` of src/nanotron/models/base.py.

    Args:
        stage: Number of the stage, from 0. [1]
        stages: Pipeline stages. [1]
        layers: Layers of the model. [1]
        head: Work of the output head over that of a layer, :math:`c`. [1]

    Returns:
        Layers. [1]

    >>> [float(layers_before(k, 2, 16, 4.0)) for k in (0, 1, 2)]
    [0.0, 11.0, 16.0]
    """
    k, p, count = (np.asarray(x, dtype=float) for x in (stage, stages, layers))
    inside = np.minimum(count, np.floor(k * (count + head) / p) + 1)
    before: Array = np.where(k <= 0, 0.0, np.where(k >= p, count, inside))
    return before


def low_rank_parameters(rank: Count, widths: Array) -> Count:
    r"""Parameters of low-rank adapters, :math:`r \sum (d_{in} + d_{out})`.

    Source: Hu et al. 2021 (LoRA), https://arxiv.org/abs/2106.09685, section 4.

    Args:
        rank: Rank of the adapters. [1]
        widths: Input and output widths of the products that they stand beside, summed. [1]

    Returns:
        Parameters. [1]

    >>> float(low_rank_parameters(8, 4096 + 4096))
    65536.0
    """
    count: Array = np.asarray(rank, dtype=float) * np.asarray(widths, dtype=float)
    return count


def quantised_bytes(bits: Array, group: Count, scale: Array) -> Bytes:
    r"""Bytes of a quantised weight with one scale a group, :math:`b / 8 + s / g`.

    NF4 with double quantisation: 4 bits, and 8 bits for every 64 weights (Dettmers et al. 2023, QLoRA,
    https://arxiv.org/abs/2305.14314, section 3); GPTQ: 4 or 8 bits, and a scale of 2 bytes for every 128.

    Args:
        bits: Bits of a weight. [bit]
        group: Weights that share a scale. [1]
        scale: Bytes of a scale. [B]

    Returns:
        Bytes a weight. [B]

    >>> float(quantised_bytes(4, 64, 1.0))
    0.515625
    """
    size: Array = np.asarray(bits, dtype=float) / 8 + np.asarray(scale) / np.asarray(group)
    return size


def outgrown_share(longest: Count, mean_length: Count) -> Array:
    r"""Memory that outgrown blocks hold where sequences differ in length, over that of the longest sequence.

    .. math:: \int_0^M \frac{x}{\mu}\, \frac{dx}{M} = \frac{M}{2 \mu}

    A caching allocator keeps the blocks of the longest sequence so far; a longer one fits into none of them and takes
    new ones. With lengths spread exponentially around the mean :math:`\mu` and cut at :math:`M`, a record of length
    :math:`x` comes before the first sequence of full length at the rate of the hazard, :math:`dx / \mu`. Nothing is
    given back until memory runs short (PyTorch's notes on CUDA semantics, "Memory management",
    https://docs.pytorch.org/docs/stable/notes/cuda.html).

    Args:
        longest: Length that sequences are cut at, :math:`M`. [tokens]
        mean_length: Of the sequences before they are cut, :math:`\mu`. [tokens]

    Returns:
        Share. [1]

    >>> float(outgrown_share(2048, 2048))
    0.5
    """
    share: Array = np.asarray(longest, dtype=float) / (2 * np.asarray(mean_length, dtype=float))
    return share
