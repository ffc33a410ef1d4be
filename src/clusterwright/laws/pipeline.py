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


def zero_bubble(
    micro_batches: Count, stages: Count, virtual: Count, slot: Seconds, weight_gradient: Seconds
) -> Seconds:
    r"""Time of all micro-batches through a pipeline whose weight gradients wait for the bubble (ZB-H1).

    .. math:: T = m t + \frac{(p - 1)(t - w) - (\min(m, p) - 1)\, w}{v}

    With one piece a rank and :math:`m \ge p` the bubble is :math:`(p - 1)(T_F + T_B - T_W)` (:math:`T_B` without the
    weight gradient): table 2 of Qi et al. 2024, https://arxiv.org/abs/2401.10241. Pieces divide it as they divide that
    of 1F1B, and fewer micro-batches have fewer weight gradients to fill it with. At most a third of the slot fills
    bubbles: a weight gradient longer than the other two passes does not fit in between them.

    Args:
        micro_batches: Micro-batches of a rank in one step, :math:`m`. [1]
        stages: Pipeline stages, :math:`p`. [1]
        virtual: Model chunks a rank holds, :math:`v`. [1]
        slot: Forward and backward of one micro-batch on the slowest stage, :math:`t = T_F + T_B + T_W`. [s]
        weight_gradient: Of it, the gradients of weights, :math:`w = T_W`. [s]

    Returns:
        Time. [s]

    >>> float(zero_bubble(8, 4, 1, 3.0, 1.0)), float(one_forward_one_backward(8, 4, 1, 3.0))
    (27.0, 33.0)
    >>> float(zero_bubble(8, 4, 1, 3.0, 0.0))
    33.0
    """
    m, p = np.asarray(micro_batches, dtype=float), np.asarray(stages, dtype=float)
    filled = np.minimum(weight_gradient, np.asarray(slot) / 3.0)
    found: Array = m * slot + ((p - 1.0) * (slot - filled) - (np.minimum(m, p) - 1.0) * filled) / virtual
    return found


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
