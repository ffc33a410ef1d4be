"""Time of a pipelined step: slots, bubble and the slowest stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clusterwright.units import Array, Count, Seconds


def one_forward_one_backward(
    micro_batches: Count, stages: Count, virtual: Count, slot: Seconds, other: Seconds | None = None
) -> Seconds:
    r"""Time of all micro-batches through a 1F1B pipeline, interleaved when ``virtual`` > 1.

    .. math:: T = m t + \frac{p - 1}{v} t_o

    The slowest stage sets the pace; filling and draining pass through the others once. Source: Narayanan et al. 2021,
    https://arxiv.org/abs/2104.04473, section 2.2, whose stages are alike (:math:`t_o = t`).

    Args:
        micro_batches: Micro-batches of a rank in one step, :math:`m`. [1]
        stages: Pipeline stages, :math:`p`. [1]
        virtual: Model chunks a rank holds, :math:`v`. [1]
        slot: Forward and backward of one micro-batch on the slowest stage, :math:`t`. [s]
        other: The same on another stage in the mean, :math:`t_o`; as the slowest where it is not given. [s]

    Returns:
        Time. [s]

    >>> float(one_forward_one_backward(8, 1, 1, 0.5))
    4.0
    >>> float(one_forward_one_backward(8, 4, 1, 1.0)), float(one_forward_one_backward(8, 4, 1, 1.0, 0.5))
    (11.0, 9.5)
    """
    other = slot if other is None else other
    return np.asarray(micro_batches) * slot + (np.asarray(stages) - 1.0) / virtual * other


def zero_bubble(
    micro_batches: Count,
    stages: Count,
    virtual: Count,
    slot: Seconds,
    weight_gradient: Seconds,
    other: Seconds | None = None,
) -> Seconds:
    r"""Time of all micro-batches through a pipeline whose weight gradients wait for the bubble (ZB-H1).

    .. math:: T = m t + \frac{(p - 1)(t_o - w) - (\min(m, p) - 1)\, w}{v}

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
        other: As ``slot`` on another stage in the mean, :math:`t_o`; as the slowest where it is not given. [s]

    Returns:
        Time. [s]

    >>> float(zero_bubble(8, 4, 1, 3.0, 1.0)), float(one_forward_one_backward(8, 4, 1, 3.0))
    (27.0, 33.0)
    >>> float(zero_bubble(8, 4, 1, 3.0, 0.0))
    33.0
    """
    m, p = np.asarray(micro_batches, dtype=float), np.asarray(stages, dtype=float)
    other = slot if other is None else other
    filled = np.minimum(weight_gradient, np.asarray(other) / 3.0)
    found: Array = m * slot + ((p - 1.0) * (other - filled) - (np.minimum(m, p) - 1.0) * filled) / virtual
    return found


def blocking_messages(micro_batches: Count, stages: Count) -> Array:
    r"""Messages that a stage in the middle waits for in one step, :math:`m \min(4, 2 (p - 1))`.

    It takes an activation in and gives one out, and a gradient likewise; of two stages each does one of the two.

    Args:
        micro_batches: Micro-batches of a rank in one step, :math:`m`. [1]
        stages: Pipeline stages, :math:`p`. [1]

    Returns:
        Messages. [1]

    >>> float(blocking_messages(8, 1)), float(blocking_messages(8, 2)), float(blocking_messages(8, 4))
    (0.0, 16.0, 32.0)
    """
    waits: Array = micro_batches * np.minimum(2.0 * (np.asarray(stages) - 1.0), 4.0)
    return waits


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
