"""What a candidate costs, over arrays of candidates, and the same sum as a tree that explains itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.laws import money
from clusterwright.term import Kind, Term
from clusterwright.units import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from numpy.typing import NDArray

    from clusterwright.hardware import Accelerator, Node
    from clusterwright.market import Offer
    from clusterwright.units import Count, Seconds, Watts

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quote:
    """What a node costs for an hour: an offer, or a cluster that is already there (whose price may be nothing)."""

    provider: str
    term: str
    instance: str
    usd_per_node_hour: float
    usd_per_accelerator_hour: float
    commitment_s: float = 0.0
    region: str = ""
    seen: date | None = None
    source: str = ""
    largest_order: int | None = None
    paid_nodes: int | None = None
    """Nodes that are paid whatever is used of them; none: those of the job and its spares."""

    @classmethod
    def of(cls, offer: Offer, accelerators: int) -> Quote:
        """The quote of an offer for a node of that many accelerators (an instance may be a part of one)."""
        return cls(
            provider=offer.provider, term=offer.term, instance=offer.instance,
            usd_per_node_hour=offer.per_accelerator.per_node(accelerators).usd,
            usd_per_accelerator_hour=offer.per_accelerator.usd, commitment_s=offer.commitment_s, region=offer.region,
            seen=offer.seen, source=offer.source, largest_order=offer.largest_order,
        )  # fmt: skip


def rent_cost(nodes: Count, quote: Quote, time: Seconds) -> Floats:
    """Rent of nodes (spares included) for a time [USD]; a commitment costs its whole term.

    Args:
        nodes: [1], any shape.
        quote: Price of a node.
        time: [s], any shape.
    """
    paid = nodes if quote.paid_nodes is None else np.full_like(np.asarray(nodes), quote.paid_nodes)
    return money.rent(paid, quote.usd_per_node_hour, time, quote.commitment_s)


def explain_rent(nodes: int, spares: int, quote: Quote, time_s: float) -> Term:
    """The rent of one candidate as its factors, with provider, term, source and date of the price."""
    seen = f", seen {quote.seen.isoformat()}: {quote.source}" if quote.seen else ""
    whole = quote.paid_nodes
    counted = f"{nodes} of the job and {spares} spares" if whole is None else "the whole cluster"
    parts = (
        Term(name="nodes paid", value=float(nodes + spares if whole is None else whole), unit="1", source=counted),
        Term(
            name="price of a node", value=quote.usd_per_node_hour, unit="USD/h", kind=Kind.MEASURED,
            source=f"{quote.provider} {quote.instance}, {quote.term}{seen}",
        ),
        Term(
            name="hours paid", value=max(time_s, quote.commitment_s) / HOUR, unit="h",
            source="training time, or the offer's commitment where that is longer",
        ),
    )  # fmt: skip
    total = float(rent_cost(nodes + spares, quote, time_s))
    return Term(name="cost", value=total, unit="USD", source="money.rent", parts=parts)


def node_power(node: Node, accelerator: Accelerator, ratio: float) -> float:
    """Largest draw of a node [W]: nameplate, or that of its accelerators times the usual ratio where it is unknown.

    Args:
        node: With or without ``power_w``.
        accelerator: Of the node.
        ratio: Usual draw of a node over that of its accelerators, see `usual_power_ratio`. [1]
    """
    return node.power_w if node.power_w is not None else ratio * node.accelerators * accelerator.power_w


def usual_power_ratio(pairs: Iterable[tuple[Node, Accelerator]]) -> float:
    """Median draw of a node over that of its accelerators, among the nodes whose draw is known [1]."""
    ratios = [n.power_w / (n.accelerators * a.power_w) for n, a in pairs if n.power_w is not None]
    return float(np.median(ratios)) if ratios else 1.0


def run_power(nodes: Count, node_w: Watts, fabric_w: Watts) -> Floats:
    """Draw of all nodes (spares included) and of the fabric [W]."""
    return np.asarray(np.asarray(nodes, dtype=np.float64) * node_w + fabric_w)
