"""Who sells which node, on which term, at what price, seen when.

A price for a node and a price for one accelerator are different types, so that they can not be mixed up.
"""

from __future__ import annotations

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
