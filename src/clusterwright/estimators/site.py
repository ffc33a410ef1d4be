"""Power, space and energy that a cluster asks of its site."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clusterwright.facility import Power, RackPlan
from clusterwright.laws import power as laws

if TYPE_CHECKING:
    from clusterwright.facility import FacilityFigures

RACK_POWERS_W = (10e3, 20e3, 40e3, 130e3)
"""What racks are built for: an old hall, a usual one, one for air-cooled accelerators, one with liquid cooling."""
JOULES_A_KWH = 3.6e6


def estimate_site(
    nodes: int,
    node_power_w: float,
    it_power_w: float,
    time_s: float,
    figures: FacilityFigures,
    *,
    together: int = 1,
    limit_w: float | None = None,
) -> Power:
    """Power, cooling, energy, and racks by power.

    Where no usual rack carries the nodes that stand together, they come in one of their own, which is counted last.

    Args:
        nodes: [1].
        node_power_w: Largest draw of one node [W].
        it_power_w: Of nodes and switches together [W].
        time_s: That the run takes [s].
        figures: Power usage effectiveness and the price of energy.
        together: Nodes that one scale-up domain joins, and that stand in one rack therefore [1].
        limit_w: That the site grants the computers [W]; none: not known.
    """
    whole = float(laws.site_power(it_power_w, figures.pue))
    energy = float(laws.energy(whole, time_s))
    racks = tuple(plan_racks(nodes, node_power_w, rack, together) for rack in RACK_POWERS_W)
    if together > 1 and all(rack.racks is None for rack in racks):
        racks = (*racks, plan_racks(nodes, node_power_w, together * node_power_w, together))
    return Power(
        it_power_w=it_power_w,
        pue=figures.pue,
        site_power_w=whole,
        cooling_power_w=float(laws.cooling_power(it_power_w, figures.pue)),
        energy_j=energy,
        energy_usd=energy / JOULES_A_KWH * figures.usd_per_kwh,
        racks=racks,
        limit_w=limit_w,
        within_limit=within_limit(it_power_w, limit_w),
        within_limit_with_cooling=within_limit(whole, limit_w),
    )


def plan_racks(nodes: int, node_power_w: float, rack_power_w: float, together: int = 1) -> RackPlan:
    """How many nodes stand in a rack, and how many racks that makes; those of one domain are not parted."""
    domains = math.ceil(nodes / together)
    count = float(laws.racks_needed(domains, together * node_power_w, rack_power_w))
    return RackPlan(
        rack_power_w=rack_power_w,
        nodes_a_rack=together * int(laws.nodes_per_rack(together * node_power_w, rack_power_w)),
        racks=int(count) if math.isfinite(count) else None,
    )


def within_limit(power_w: float, limit_w: float | None) -> bool:
    """Whether the site's power is enough; a site without a known limit always is."""
    return limit_w is None or power_w <= limit_w
