"""The front of time against money, and its knee. Arrays in, indices out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]


def front(time: Floats, money: Floats, tie: Floats | None = None) -> Integers:
    """Indices of the points that no other point beats in both, from the fastest to the cheapest.

    Args:
        time: [s], shape (n,).
        money: [USD], shape (n,).
        tie: Rank among equals, the least wins. shape (n,)

    Returns:
        Indices, time ascending and money strictly descending.

    >>> front(np.array([1.0, 2.0, 3.0, 2.5]), np.array([9.0, 5.0, 4.0, 7.0])).tolist()
    [0, 1, 2]
    """
    order = np.lexsort((np.zeros_like(time) if tie is None else tie, money, time))
    best = np.minimum.accumulate(money[order])
    before = np.concatenate(([np.inf], best[:-1]))
    return np.asarray(order[money[order] < before], dtype=np.int64)


def knee(time: Floats, money: Floats) -> int:
    """Position on a front where one gives most of the other: furthest below the line between its ends.

    Both axes are taken as logarithms, so that neither unit nor size matters.

    Args:
        time: Of a front, ascending. [s], shape (n,)
        money: Of a front, descending. [USD], shape (n,)

    >>> knee(np.array([1.0, 2.0, 8.0]), np.array([9.0, 2.0, 1.0]))
    1
    """
    if len(time) < 3 or money.min() <= 0:  # noqa: PLR2004 - two points have no knee
        return int(np.argmin(time * np.maximum(money, 1e-9))) if len(time) else 0
    x, y = np.log(time), np.log(money)
    x, y = (x - x[0]) / max(x[-1] - x[0], 1e-12), (y - y[-1]) / max(y[0] - y[-1], 1e-12)
    return int(np.argmin(x + y))
