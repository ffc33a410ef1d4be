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
    limit_w: float | None = None,
) -> Power:
    """Power, cooling, energy, and racks by power.

    Args:
        nodes: [1].
        node_power_w: Largest draw of one node [W].
        it_power_w: Of nodes and switches together [W].
        time_s: That the run takes [s].
        figures: Power usage effectiveness and the price of energy.
        limit_w: That the site grants the computers [W]; none: not known.
    """
    whole = float(laws.site_power(it_power_w, figures.pue))
    energy = float(laws.energy(whole, time_s))
    return Power(
        it_power_w=it_power_w,
        pue=figures.pue,
        site_power_w=whole,
        cooling_power_w=float(laws.cooling_power(it_power_w, figures.pue)),
        energy_j=energy,
        energy_usd=energy / JOULES_A_KWH * figures.usd_per_kwh,
        racks=tuple(plan_racks(nodes, node_power_w, rack) for rack in RACK_POWERS_W),
        limit_w=limit_w,
        within_limit=within_limit(it_power_w, limit_w),
        within_limit_with_cooling=within_limit(whole, limit_w),
    )


def plan_racks(nodes: int, node_power_w: float, rack_power_w: float) -> RackPlan:
    """How many nodes stand in a rack, and how many racks that makes."""
    count = float(laws.racks_needed(nodes, node_power_w, rack_power_w))
    return RackPlan(
        rack_power_w=rack_power_w,
        nodes_a_rack=int(laws.nodes_per_rack(node_power_w, rack_power_w)),
        racks=int(count) if math.isfinite(count) else None,
    )


def within_limit(power_w: float, limit_w: float | None) -> bool:
    """Whether the site's power is enough; a site without a known limit always is."""
    return limit_w is None or power_w <= limit_w
