"""Money of a run.

Symbols: ``n`` nodes, ``c`` price of a node for an hour, ``t`` time, ``t_0`` the least time that must be paid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.units import HOUR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.units import Count, Seconds, Usd


def rent(nodes: Count, usd_per_node_hour: Usd, time: Seconds, commitment: Seconds = 0.0) -> NDArray[np.float64]:
    r"""What renting costs: every node for the whole time, and never for less than what must be paid.

    .. math:: C = n \, c \, \max(t, t_0) / 3600

    Args:
        nodes: Nodes that are paid, spares included. [1], any shape
        usd_per_node_hour: Price of one node (not of one accelerator) for one hour. [USD]
        time: How long they are kept. [s]
        commitment: The least time that must be paid. [s]

    Returns:
        The sum [USD], of the broadcast shape.

    >>> float(rent(12, 31.92, 10 * 86400.0))
    91929.6
    >>> float(rent(12, 31.92, 10 * 86400.0, commitment=20 * 86400.0))  # a commitment costs its whole term
    183859.2
    """
    paid = np.maximum(np.asarray(time, dtype=np.float64), commitment) / HOUR
    return np.asarray(np.asarray(nodes, dtype=np.float64) * usd_per_node_hour * paid)
