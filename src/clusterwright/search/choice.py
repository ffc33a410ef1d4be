"""The honest choice: the front of time and money within the constraints, and one point of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.search.evaluate import TIE
from clusterwright.search.pareto import front, knee

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.search.table import Table
    from clusterwright.workload import Constraints


def choose(table: Table, constraints: Constraints, objective: str) -> tuple[list[int], int | None]:
    """The front among the rows that break nothing, and the row chosen.

    Args:
        table: Every cluster.
        constraints: Of the workload.
        objective: ``time``, ``cost`` or ``balanced``.

    Returns:
        Rows of the front from the fastest to the cheapest, and the choice; none where no row is left.
    """
    allowed = feasible(table, constraints)
    if not len(allowed):
        return [], None
    time, cost = table.time_s[allowed], table.cost_usd[allowed]
    ends = front(time, cost, table.tie[allowed])
    points = [int(i) for i in allowed[ends]]
    if objective == "balanced":
        return points, points[knee(time[ends], cost[ends])]
    return points, best(table, allowed, objective)


def feasible(table: Table, constraints: Constraints) -> NDArray[np.int64]:
    """Rows that break no constraint."""
    ok = np.ones(len(table.rows), dtype=bool)
    for broken in table.broken(constraints).values():
        ok &= ~broken
    return np.flatnonzero(ok)


def best(table: Table, among: NDArray[np.int64], objective: str) -> int:
    """The row that is best by an objective: of the points of the front within `TIE` of the best the fewest nodes.

    What lies on no front is beaten in time and money by another, so that no tie makes it the choice.
    """
    points = among[front(table.time_s[among], table.cost_usd[among], table.tie[among])]
    value = (table.time_s if objective == "time" else table.cost_usd)[points]
    near = points[value <= value.min() * (1 + TIE)]
    return int(near[np.argmin(table.tie[near])])
