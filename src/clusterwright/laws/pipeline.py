"""Time of a pipelined step: slots, bubble and the slowest stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Count, Seconds


def one_forward_one_backward(micro_batches: Count, stages: Count, virtual: Count, slot: Seconds) -> Seconds:
    r"""Time of all micro-batches through a 1F1B pipeline, interleaved when ``virtual`` > 1.

    .. math:: T = \left(m + \frac{p - 1}{v}\right) t

    Source: Narayanan et al. 2021, https://arxiv.org/abs/2104.04473, section 2.2.

    Args:
        micro_batches: Micro-batches of a rank in one step, :math:`m`. [1]
        stages: Pipeline stages, :math:`p`. [1]
        virtual: Model chunks a rank holds, :math:`v`. [1]
        slot: Forward and backward of one micro-batch on the slowest stage, :math:`t`. [s]

    Returns:
        Time. [s]

    >>> float(one_forward_one_backward(8, 1, 1, 0.5))
    4.0
    >>> float(one_forward_one_backward(8, 4, 1, 1.0))
    11.0
    """
    return (np.asarray(micro_batches) + (np.asarray(stages) - 1.0) / virtual) * slot


def in_flight(micro_batches: Count, stages: Count, virtual: Count) -> Array:
    r"""Micro-batches whose activations the first stage holds at once.

    :math:`\min(m, p)`, and :math:`1 + (p - 1) / (p v)` times as many when interleaved (Korthikanti et al. 2022,
    https://arxiv.org/abs/2205.05198, section 4.2.3).

    Args:
        micro_batches: Micro-batches of a rank in one step. [1]
        stages: Pipeline stages. [1]
        virtual: Model chunks a rank holds. [1]

    Returns:
        Micro-batches. [1]

    >>> float(in_flight(16, 4, 1)), float(in_flight(16, 4, 2))
    (4.0, 5.5)
    """
    m, p, v = np.asarray(micro_batches, dtype=float), np.asarray(stages, dtype=float), np.asarray(virtual, dtype=float)
    held = np.where(v > 1, p * (1 + (p - 1) / (p * v)), p)
    return np.minimum(np.where(v > 1, np.maximum(m, 1.0), m), held)
