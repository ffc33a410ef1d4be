r"""Power, racks and energy of a site.

Symbols: power of the computers :math:`P`, power usage effectiveness :math:`\mathrm{PUE}` (power of the whole site over
that of its computers; ISO/IEC 30134-2), power that one rack may draw :math:`C`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.units import Count, Seconds, Share, Watts

    Floats = NDArray[np.float64]


def site_power(it_power: Watts, pue: Share) -> Floats:
    r"""Power that the site draws, cooling and losses included: :math:`P \cdot \mathrm{PUE}`.

    Args:
        it_power: Of nodes, switches and storage, :math:`P` [W], any shape.
        pue: Power usage effectiveness [1], at least 1.

    Returns:
        [W], the broadcast shape.

    Source: ISO/IEC 30134-2:2016, 5.1. The industry's weighted mean is 1.54 (Uptime Institute, 2025).

    >>> float(site_power(1.0e6, 1.54))
    1540000.0
    """
    return np.asarray(it_power, dtype=np.float64) * np.asarray(pue, dtype=np.float64)


def cooling_power(it_power: Watts, pue: Share) -> Floats:
    r"""What the site draws beside its computers: :math:`P (\mathrm{PUE} - 1)` [W].

    Arguments and source as :func:`site_power`.

    >>> round(float(cooling_power(1.0e6, 1.54)))
    540000
    """
    return site_power(it_power, pue) - np.asarray(it_power, dtype=np.float64)


def nodes_per_rack(node_power: Watts, rack_power: Watts) -> NDArray[np.int64]:
    r"""Whole nodes that the power of one rack carries: :math:`\lfloor C / p \rfloor`.

    Args:
        node_power: Largest draw of one node, :math:`p` [W], any shape.
        rack_power: That one rack may draw, :math:`C` [W].

    Returns:
        [1], the broadcast shape; 0 where not even one fits.

    >>> nodes_per_rack(10_200.0, np.array([10e3, 20e3, 40e3, 130e3]))  # a DGX H100
    array([ 0,  1,  3, 12])
    """
    return np.floor(np.asarray(rack_power, dtype=np.float64) / np.asarray(node_power, dtype=np.float64)).astype(
        np.int64
    )


def racks_needed(nodes: Count, node_power: Watts, rack_power: Watts) -> Floats:
    r"""Racks for the nodes, by power: :math:`\lceil N / \lfloor C / p \rfloor \rceil`.

    Args:
        nodes: :math:`N` [1], any shape.
        node_power: Largest draw of one node, :math:`p` [W].
        rack_power: That one rack may draw, :math:`C` [W].

    Returns:
        [1], the broadcast shape; infinite where a rack does not carry one node.

    >>> racks_needed(127, 10_200.0, np.array([10e3, 20e3, 40e3, 130e3]))
    array([ inf, 127.,  43.,  11.])
    """
    each = nodes_per_rack(node_power, rack_power)
    return np.where(each > 0, np.ceil(np.asarray(nodes) / np.maximum(each, 1)), np.inf)


def energy(power: Watts, time: Seconds) -> Floats:
    r"""Energy of a constant draw, :math:`E = P t`.

    Args:
        power: [W], any shape.
        time: [s].

    Returns:
        [J], the broadcast shape; 3.6e6 J are one kWh.

    >>> float(energy(1540e3, 30 * 86400.0)) / 3.6e6  # a month of a megawatt of computers, in kWh
    1108800.0
    """
    return np.asarray(power, dtype=np.float64) * np.asarray(time, dtype=np.float64)
