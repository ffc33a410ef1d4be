"""Power, space and energy that a cluster asks of its site."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clusterwright.laws import power as laws

RACK_POWERS_W = (10e3, 20e3, 40e3, 130e3)
"""What racks are built for: an old hall, a usual one, one for air-cooled accelerators, one with liquid cooling."""


@dataclass(frozen=True)
class SiteNeed:
    """What the site must give."""

    it_power_w: float
    pue: float
    site_power_w: float
    cooling_power_w: float
    energy_j: float
    """Of the run, cooling included."""
    racks: tuple[tuple[float, int | None], ...]
    """Power of a rack [W], and racks for the nodes; none where not one node fits."""


def estimate_site(nodes: int, node_power_w: float, it_power_w: float, time_s: float, pue: float) -> SiteNeed:
    """Power, cooling, energy, and racks by power.

    Args:
        nodes: [1].
        node_power_w: Largest draw of one node [W].
        it_power_w: Of nodes and switches together [W].
        time_s: That the run takes [s].
        pue: Power usage effectiveness [1].
    """
    counts = [float(laws.racks_needed(nodes, node_power_w, rack)) for rack in RACK_POWERS_W]
    whole = float(laws.site_power(it_power_w, pue))
    return SiteNeed(
        it_power_w=it_power_w,
        pue=pue,
        site_power_w=whole,
        cooling_power_w=float(laws.cooling_power(it_power_w, pue)),
        energy_j=float(laws.energy(whole, time_s)),
        racks=tuple(
            (rack, int(count) if math.isfinite(count) else None)
            for rack, count in zip(RACK_POWERS_W, counts, strict=True)
        ),
    )


def within_limit(need: SiteNeed, limit_w: float | None) -> bool:
    """Whether the site's power is enough; a site without a known limit always is."""
    return limit_w is None or need.site_power_w <= limit_w
