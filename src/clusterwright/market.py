"""Who sells which node, on which term, at what price, seen when; and what owning it takes.

A price for a node and a price for one accelerator are different types, so that they can not be mixed up.
"""

from __future__ import annotations

import math
from datetime import date
from typing import Literal

from pydantic import Field

from clusterwright.noun import Noun

Term = Literal["on-demand", "spot", "reserved", "capacity-block"]


class PricePerAcceleratorHour(Noun):
    """US dollars for one accelerator for one hour."""

    usd: float = Field(gt=0)

    def per_node(self, accelerators: int) -> PricePerNodeHour:
        """The same price for a whole node.

        >>> PricePerAcceleratorHour(usd=3.99).per_node(8).usd
        31.92
        """
        return PricePerNodeHour(usd=self.usd * accelerators)


class PricePerNodeHour(Noun):
    """US dollars for one node for one hour."""

    usd: float = Field(gt=0)

    def per_accelerator(self, accelerators: int) -> PricePerAcceleratorHour:
        """The same price for one accelerator of the node.

        >>> PricePerNodeHour(usd=55.04).per_accelerator(8).usd
        6.88
        """
        return PricePerAcceleratorHour(usd=self.usd / accelerators)


class Offer(Noun):
    """A node for rent."""

    provider: str
    node: str | None
    """Catalogue name of the node; none where it is unknown."""
    instance: str
    accelerator: str
    accelerators: int = Field(gt=0)
    """Accelerators of the instance."""
    term: Term
    price: PricePerNodeHour
    commitment_s: float = 0.0
    """The least time that must be paid [s]; 0: none."""
    region: str = ""
    seen: date
    largest_order: int | None = None
    """Nodes that can really be had at once; none: unknown."""
    source: str = ""

    @property
    def per_accelerator(self) -> PricePerAcceleratorHour:
        """Price of one accelerator for one hour."""
        return self.price.per_accelerator(self.accelerators)


class Figure(Noun):
    """A figure with its unit, its span, where and when it was read; or, where no source has it, what is assumed."""

    value: float = Field(ge=0)
    unit: str
    low: float | None = Field(default=None, ge=0)
    high: float | None = Field(default=None, ge=0)
    source: str = Field(min_length=1)
    seen: str
    assumed: bool = False
    """No source gives just this figure; the note says how it was set."""
    note: str = ""

    @property
    def span(self) -> tuple[float, float]:
        """Low and high; the value itself where no span is known."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)

    @property
    def cited(self) -> str:
        """Whether it is assumed and how, its span, when and where it was read."""
        low, high = self.span
        span = f", {low:g} to {high:g}" if low < high else ""
        return f"{f'assumed: {self.note}; ' if self.assumed else ''}seen {self.seen}{span}: {self.source}"


class Server(Noun):
    """What a kind of node costs to buy."""

    node: str
    """Catalogue name of the node."""
    nodes: int = Field(gt=0)
    """Nodes that are sold together."""
    price: Figure
    """Of all of them [USD]."""


class Owning(Noun):
    """What owning a cluster takes besides its networks. Rates are of a year, money is USD."""

    servers: tuple[Server, ...]
    life: Figure
    """How long a cluster is kept where nothing is said [years]."""
    residual: Figure
    """Share of the nodes' price that is left at ``residual_age`` [1]."""
    residual_age: Figure
    """[years]"""
    installation: Figure
    """Racks, insurance, freight over the price of the hardware [1]."""
    finance: Figure
    """Cost of capital [1/year]."""
    support: Figure
    """Of the price of the hardware [1/year]."""
    staff_accelerators: Figure
    """Accelerators that one person keeps running [1]."""
    staff_usd: Figure
    """Of one person [USD/year]."""
    draw: Figure
    """Average draw of a node over its largest [1]."""
    pue: Figure
    """Power usage effectiveness [1]."""
    usd_per_kwh: Figure
    """Of electricity [USD/kWh]."""
    colocation: Figure
    """Of the largest draw [USD/kW/month]."""
    storage: Figure
    """Bought [USD/B]."""
    storage_capacity: Figure
    """Storage to buy over what is used [1]."""

    def server_of(self, node: str) -> Server | None:
        """What that kind of node costs to buy; none where it is not known."""
        return next((s for s in self.servers if s.node == node), None)


class Reclaim(Noun):
    """How often a provider takes spot nodes back."""

    provider: str
    """``*``: any."""
    accelerator: str
    """``*``: any."""
    share: Figure
    """Of the nodes, within a month [1/month]."""

    @property
    def node_mtbi_s(self) -> float:
        """Mean time of one node until it is taken away [s], as if that were as likely at any time."""
        return mean_time(self.share.value)


class Egress(Noun):
    """What data that leaves a provider costs."""

    provider: str
    """``*``: any."""
    price: Figure
    """[USD/GB]"""


class Renting(Noun):
    """What renting costs besides the nodes, and how often spot nodes are taken away."""

    stale: Figure
    """Age of a price from which on it is not used [days]."""
    storage: Figure
    """Rented [USD/B], a month."""
    storage_capacity: Figure
    """Storage to rent over what is used [1]."""
    reclaims: tuple[Reclaim, ...]
    """The first that fits is meant."""
    worst_reclaim: Figure
    """Mean time of one node until it is taken away, the worst that was published [h]."""
    egress: tuple[Egress, ...]
    """The first that fits is meant."""

    def reclaim_of(self, provider: str, accelerator: str) -> Reclaim:
        """How often that provider takes spot nodes of that accelerator back."""
        return next(r for r in self.reclaims if r.provider in {provider, "*"} and r.accelerator in {accelerator, "*"})

    def egress_of(self, provider: str) -> Egress:
        """What that provider asks for data that leaves it."""
        return next(e for e in self.egress if e.provider in {provider, "*"})


MONTH_S = 30.4375 * 86400.0
"""Mean month [s]."""


def mean_time(share_a_month: float) -> float:
    """Mean time until something happens that happens to this share of things within a month [s].

    >>> round(mean_time(0.2) / 3600.0)  # one in five a month
    3274
    """
    if share_a_month <= 0:
        return math.inf
    return -MONTH_S / math.log1p(-min(share_a_month, 1 - 1e-12))
