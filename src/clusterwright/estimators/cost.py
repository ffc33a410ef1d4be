"""What a candidate costs, over arrays of candidates, and the same sum as a tree that explains itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators import ownership
from clusterwright.laws import money
from clusterwright.term import Kind, Term
from clusterwright.units import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from numpy.typing import NDArray

    from clusterwright.estimators.ownership import Owned
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.market import Offer
    from clusterwright.units import Count, Seconds, Watts

    Floats = NDArray[np.float64]


SAME_TERM = 0.01
"""Share by which a horizon may exceed a commitment without another one: three years are 1,095 or 1,096 days. [1]"""


@dataclass(frozen=True)
class Beside:
    """What a job pays besides its nodes: storage for as long as it runs, and data that leaves."""

    storage_bytes: float = 0.0
    """That are paid; more than are used. [B]"""
    usd_per_byte_month: float = 0.0
    egress_bytes: float = 0.0
    """That leave the provider in the end. [B]"""
    usd_per_gb_egress: float = 0.0
    storage_source: str = ""
    egress_source: str = ""


@dataclass(frozen=True)
class Quote:
    """What a node costs for an hour: an offer, a cluster that is there (whose price may be nothing), or what is bought.

    What is committed to is paid round the clock. Only where both ``kept_s`` and ``utilisation`` are known does a job
    bear its share of that, and the other jobs theirs.
    """

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
    owned: Owned | None = None
    """What is bought; its price depends on the number of nodes."""
    kept_s: float | None = None
    """How long what is committed to is kept. [s]"""
    utilisation: float | None = None
    """Share of that time that is useful work, of any job. [1]"""
    node_mtbi_s: float = math.inf
    """Mean time of one node until the provider takes it away. [s]"""
    reclaim_source: str = ""
    beside: Beside = Beside()
    more_sources: tuple[str, ...] = ()
    """Of what is paid besides the node, and of what is assumed of it."""

    @classmethod
    def of(cls, offer: Offer, accelerators: int) -> Quote:
        """The quote of an offer for a node of that many accelerators (an instance may be a part of one)."""
        return cls(
            provider=offer.provider, term=offer.term, instance=offer.instance,
            usd_per_node_hour=offer.per_accelerator.per_node(accelerators).usd,
            usd_per_accelerator_hour=offer.per_accelerator.usd, commitment_s=offer.commitment_s, region=offer.region,
            seen=offer.seen, source=offer.source, largest_order=offer.largest_order,
        )  # fmt: skip

    @property
    def seller(self) -> str:
        """Who sells it, and on which term; what is bought is said once."""
        return ", ".join(dict.fromkeys((self.provider, self.term)))

    @property
    def used_s(self) -> float | None:
        """How long what is committed to serves jobs [s]; none: the one job bears all of it."""
        if not self.commitment_s or self.kept_s is None or self.utilisation is None:
            return None
        return min(self.kept_s, self.paid_s)

    @property
    def paid_s(self) -> float:
        """Time that is paid whatever is used [s]: the commitment, as often as it must be renewed while it is kept."""
        if not self.commitment_s or self.kept_s is None or self.utilisation is None:
            return self.commitment_s
        return self.commitment_s * max(1, math.ceil(self.kept_s / self.commitment_s - SAME_TERM))

    def usd_per_hour(self, nodes: Count) -> Floats:
        """Price of some nodes for an hour [USD], of the shape of ``nodes``."""
        if self.owned is not None:
            return self.owned.usd_per_hour(nodes)
        return money.rent(nodes, self.usd_per_node_hour, HOUR)

    def per_accelerator_hour(self, nodes: int, accelerators: int) -> float:
        """Price of one accelerator for an hour [USD] when so many nodes with so many accelerators in all are paid."""
        return self.usd_per_accelerator_hour if self.owned is None else float(self.usd_per_hour(nodes)) / accelerators


def committed_cost(nodes: Count, quote: Quote, time: Seconds) -> Floats:
    """What must be paid in whole for nodes (spares included) that are kept for a time [USD].

    Args:
        nodes: [1], any shape.
        quote: Price of a node.
        time: [s], any shape.
    """
    paid = nodes if quote.paid_nodes is None else np.full_like(np.asarray(nodes), quote.paid_nodes)
    return money.rent(1.0, quote.usd_per_hour(paid), time, quote.paid_s)


def rent_cost(nodes: Count, quote: Quote, time: Seconds) -> Floats:
    """What a job pays for nodes (spares included) for a time, with its storage and data transfer [USD].

    A commitment costs its whole term; the job's share of it where the rest serves others.

    Args:
        nodes: [1], any shape.
        quote: Price of a node.
        time: [s], any shape.
    """
    whole, beside = committed_cost(nodes, quote, time), quote.beside
    if quote.used_s is not None and quote.utilisation is not None:
        whole = whole * money.commitment_share(time, quote.used_s, quote.utilisation)
    stored = money.storage_rent(beside.storage_bytes, 1e9 * beside.usd_per_byte_month, time)
    return np.asarray(whole + stored + beside.egress_bytes / 1e9 * beside.usd_per_gb_egress)


def explain_rent(nodes: int, spares: int, quote: Quote, time_s: float) -> Term:
    """What one candidate pays as its parts: nodes, storage, data transfer, each with its factors and sources."""
    paid = nodes + spares
    parts = (_explain_nodes(nodes, spares, quote, time_s), *_explain_beside(quote.beside, time_s))
    return Term(
        name="cost", value=float(rent_cost(paid, quote, time_s)), unit="USD", source="nodes, storage, data transfer",
        parts=parts,
    )  # fmt: skip


def _explain_nodes(nodes: int, spares: int, quote: Quote, time_s: float) -> Term:
    paid = nodes + spares if quote.paid_nodes is None else quote.paid_nodes
    counted = f"{nodes} of the job and {spares} spares" if quote.paid_nodes is None else "the whole cluster"
    seen = f", seen {quote.seen.isoformat()}: {quote.source}" if quote.seen else ""
    whole = float(committed_cost(nodes + spares, quote, time_s))
    hours = Term(
        name="hours paid", value=max(time_s, quote.paid_s) / HOUR, unit="h",
        source="training time, or what is committed to where that is longer",
    )  # fmt: skip
    factors: tuple[Term, ...] = (
        Term(name="nodes paid", value=float(paid), unit="1", source=counted),
        Term(
            name="price of a node", value=quote.usd_per_node_hour, unit="USD/h", kind=Kind.MEASURED,
            source=f"{quote.provider} {quote.instance}, {quote.term}{seen}",
        ),
        hours,
    )  # fmt: skip
    if quote.owned is not None:
        price = Term(
            name="price of the cluster", value=float(quote.usd_per_hour(paid)), unit="USD/h",
            source=f"{paid} nodes: {counted}", parts=(ownership.explain(quote.owned, paid),),
        )  # fmt: skip
        factors = (price, hours)
    if quote.used_s is None or quote.utilisation is None:
        return Term(name="nodes", value=whole, unit="USD", source="money.rent", parts=factors)
    share = float(money.commitment_share(time_s, quote.used_s, quote.utilisation))
    commitment = Term(name="whole commitment", value=whole, unit="USD", source="money.rent", parts=factors)
    part = Term(
        name="share of the job", value=share, unit="1", source="money.commitment_share",
        parts=(
            Term(name="training time", value=time_s, unit="s", source="of the job"),
            Term(name="kept", value=quote.used_s, unit="s", source="[constraints] horizon"),
            Term(name="utilisation", value=quote.utilisation, unit="1", source="[constraints] utilisation"),
        ),
    )  # fmt: skip
    return Term(name="nodes", value=whole * share, unit="USD", source="share of a commitment", parts=(commitment, part))


def _explain_beside(beside: Beside, time_s: float) -> tuple[Term, ...]:
    per_gb = 1e9 * beside.usd_per_byte_month
    stored = Term(
        name="storage", value=float(money.storage_rent(beside.storage_bytes, per_gb, time_s)), unit="USD",
        source="money.storage_rent",
        parts=(
            Term(name="bytes paid", value=beside.storage_bytes, unit="B", source="checkpoints and data, with room"),
            Term(name="price", value=per_gb, unit="USD/GB/month", kind=Kind.MEASURED, source=beside.storage_source),
        ),
    )  # fmt: skip
    left = Term(
        name="egress", value=beside.egress_bytes / 1e9 * beside.usd_per_gb_egress, unit="USD", source="bytes x price",
        parts=(
            Term(name="bytes that leave", value=beside.egress_bytes, unit="B", source="[storage] egress"),
            Term(
                name="price", value=beside.usd_per_gb_egress, unit="USD/GB", kind=Kind.MEASURED,
                source=beside.egress_source,
            ),
        ),
    )  # fmt: skip
    return tuple(t for t, paid in ((stored, beside.storage_bytes), (left, beside.egress_bytes)) if paid)


def node_power(node: Node, accelerator: Accelerator, ratio: float) -> float:
    """Largest draw of a node [W]: nameplate, or that of its accelerators times the usual ratio where it is unknown.

    Args:
        node: With or without ``power_w``.
        accelerator: Of the node.
        ratio: Usual draw of a node over that of its accelerators, see `usual_power_ratio`. [1]
    """
    return node.power_w if node.power_w is not None else ratio * node.accelerators * accelerator.power_w


def usual_power_ratio(pairs: Iterable[tuple[Node, Accelerator]]) -> float:
    """Draw of a node over that of its accelerators [1]: median of the accelerators whose node's draw is known.

    Each accelerator counts once, however many providers offer its node.
    """
    ratios = {a.name: n.power_w / (n.accelerators * a.power_w) for n, a in pairs if n.power_w is not None}
    return float(np.median(list(ratios.values()))) if ratios else 1.0


def run_power(nodes: Count, node_w: Watts, fabric_w: Watts) -> Floats:
    """Draw of all nodes (spares included) and of the fabric [W]."""
    return np.asarray(np.asarray(nodes, dtype=np.float64) * node_w + fabric_w)
