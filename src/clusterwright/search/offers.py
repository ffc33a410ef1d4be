"""Which offers may be used, as kinds of node with quotes; what is left out is counted by its reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterwright.errors import unknown
from clusterwright.estimators.cost import Quote
from clusterwright.hardware import FabricKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clusterwright.catalog import Catalogue
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.market import Offer
    from clusterwright.workload import Constraints, ExistingCluster


@dataclass(frozen=True)
class Kind:
    """A kind of node, and the quotes for it."""

    node: Node
    accelerator: Accelerator
    quotes: tuple[Quote, ...]
    there: int | None = None
    """Nodes that there are; none: as many as are ordered."""

    @property
    def max_nodes(self) -> int | None:
        """Most nodes that can be joined; none: no limit is known."""
        return self.there if self.node.scales_out else 1

    @property
    def alike(self) -> tuple[object, ...]:
        """Kinds of equal value give equal estimates."""
        node = self.node
        return (self.accelerator.name, node.accelerators, node.scale_up_domain, node.network_bytes_per_s, node.fabric)


@dataclass(frozen=True)
class Market:
    """What may be used."""

    kinds: tuple[Kind, ...]
    left_out: dict[str, int]
    """Offers left out, by reason."""
    unknown_network: int
    """Offers whose node or scale-out network is unknown: of use for a single node only."""
    alone: dict[str, int] = field(default_factory=dict)
    """Offers that only this one constraint leaves out."""


def market(constraints: Constraints, catalogue: Catalogue) -> Market:
    """The offers that a workload's constraints allow.

    Raises:
        InputError: an accelerator, provider or region that the catalogue does not know.
    """
    offers = tuple(catalogue.offers)
    _refuse_unknown(constraints, offers, catalogue)
    left_out: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    kept = []
    for offer in offers:
        why = _refusals(offer, constraints)
        left_out.update(why[:1])
        if len(why) == 1:
            alone.update(why)
        if not why:
            kept.append(offer)
    groups: dict[str, list[Offer]] = defaultdict(list)
    nodes: dict[str, Node] = {}
    unknown_network = 0
    for offer in kept:
        node = catalogue.node_of(offer)
        unknown_network += not node.scales_out and node.fabric is FabricKind.UNKNOWN
        nodes[node.name] = node
        groups[node.name].append(offer)
    kinds = tuple(
        Kind(
            nodes[name],
            catalogue.accelerator(nodes[name].accelerator),
            tuple(Quote.of(o, nodes[name].accelerators) for o in found),
        )
        for name, found in sorted(groups.items())
    )
    return Market(kinds, dict(left_out), unknown_network, dict(alone))


def own_cluster(cluster: ExistingCluster, catalogue: Catalogue) -> Market:
    """A cluster that is already there, as the only kind with one quote."""
    node = catalogue.node(cluster.node)
    if cluster.nic_gbps is not None:
        node = node.model_copy(
            update={"nic_bits_per_s": cluster.nic_gbps * 1e9, "nics": node.nics or node.accelerators}
        )
        if node.fabric in {FabricKind.NONE, FabricKind.UNKNOWN}:
            node = node.model_copy(update={"fabric": FabricKind.ROCE})
    a_node = cluster.usd_per_hour / cluster.nodes
    quote = Quote(
        provider="own", term="own", instance=node.name, usd_per_node_hour=a_node,
        usd_per_accelerator_hour=a_node / node.accelerators, paid_nodes=cluster.nodes, largest_order=cluster.nodes,
        source="[cluster] of the workload",
    )  # fmt: skip
    return Market((Kind(node, catalogue.accelerator(node.accelerator), (quote,), cluster.nodes),), {}, 0)


def _refusals(offer: Offer, constraints: Constraints) -> tuple[str, ...]:
    """The constraints that leave an offer out; none when it may be used."""
    providers, regions = constraints.providers, constraints.regions
    tests = {
        "accelerators": constraints.accelerators is not None and offer.accelerator not in constraints.accelerators,
        "terms": offer.term not in constraints.terms,
        "providers": providers is not None and _plain(offer.provider) not in {_plain(p) for p in providers},
        "regions": regions is not None and not any(_within(offer.region, r) for r in regions),
    }
    return tuple(key for key, left_out in tests.items() if left_out)


def _refuse_unknown(constraints: Constraints, offers: Sequence[Offer], catalogue: Catalogue) -> None:
    for name in constraints.accelerators or ():
        catalogue.accelerator(name)
    providers = {o.provider for o in offers}
    for name in constraints.providers or ():
        if _plain(name) not in {_plain(p) for p in providers}:
            raise unknown("[constraints] provider", name, {_plain(p) for p in providers})
    regions = {part for o in offers for part in _regions(o.region)}
    for name in constraints.regions or ():
        if not any(_within(region, name) for region in regions):
            raise unknown("[constraints] region", name, regions)


def _plain(name: str) -> str:
    return name.strip().lower().replace(" ", "-").replace("_", "-")


def _regions(text: str) -> Iterable[str]:
    return [part.strip() for part in text.replace(",", "/").split("/") if part.strip()]


def _within(region: str, wanted: str) -> bool:
    return any(_plain(part).startswith(_plain(wanted)) for part in _regions(region))
