"""Which offers may be used, as kinds of node with quotes; what is left out is counted by its reason.

Owning is an offer like the others. A price older than a year is used only where no fresher one of that accelerator is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING

from clusterwright.errors import unknown
from clusterwright.estimators.cost import Beside, Quote, node_power
from clusterwright.estimators.networks import radix_for
from clusterwright.estimators.ownership import Owned, sources
from clusterwright.estimators.storage import CHECKPOINTS_KEPT, token_bytes
from clusterwright.hardware import FabricKind
from clusterwright.plan import Rejected
from clusterwright.search.evaluate import saved_bytes
from clusterwright.search.networks import cabled
from clusterwright.units import DAY, YEAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clusterwright.catalog import Catalogue
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.market import Offer, Server
    from clusterwright.search.candidate import Setting
    from clusterwright.workload import Constraints, ExistingCluster, Workload


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
    stale: tuple[Offer, ...] = ()
    """Offers left out because a fresher price of that accelerator is there."""
    stale_s: float = 0.0
    """Age from which on they are. [s]"""


@dataclass(frozen=True)
class Deal:
    """What makes offers quotes for one job."""

    workload: Workload
    catalogue: Catalogue
    today: date
    setting: Setting

    @property
    def stored_bytes(self) -> float:
        """What the job keeps on storage: its checkpoints and its data set [B]."""
        use, training, model = self.workload.storage, self.setting.training, self.setting.model
        kept = (use.checkpoints_kept or CHECKPOINTS_KEPT) * saved_bytes(model, training)
        return kept + (training.tokens * token_bytes(model.vocab) if use.data is None else use.data)

    @property
    def stale_s(self) -> float:
        """Age from which on a price is not used [s]."""
        return self.workload.constraints.price_age or self.catalogue.renting.stale.value * DAY

    def fresh(self, offers: list[Offer]) -> tuple[list[Offer], tuple[Offer, ...]]:
        """The offers to use, and those that are too old; where all of an accelerator are, the old ones are used."""
        young = [o for o in offers if (self.today - o.seen).days * DAY <= self.stale_s]
        known = {o.accelerator for o in young}
        stale = tuple(o for o in offers if o not in young and o.accelerator in known)
        return [o for o in offers if o not in stale], stale

    def beside(self, provider: str) -> Beside:
        """Storage and data transfer at a provider."""
        renting, egress = self.catalogue.renting, self.catalogue.renting.egress_of(provider).price
        return Beside(
            storage_bytes=self.stored_bytes * renting.storage_capacity.value,
            usd_per_byte_month=renting.storage.value,
            storage_source=renting.storage.cited,
            egress_bytes=self.workload.storage.egress or 0.0, usd_per_gb_egress=egress.value,
            egress_source=egress.cited,
        )  # fmt: skip

    def quote(self, offer: Offer, accelerators: int) -> Quote:
        """The quote of an offer for a node of that many accelerators."""
        limits = self.workload.constraints
        renting = self.catalogue.renting
        beside = [renting.storage, renting.storage_capacity]
        if self.workload.storage.egress:
            beside.append(renting.egress_of(offer.provider).price)
        quote = replace(
            Quote.of(offer, accelerators), beside=self.beside(offer.provider), kept_s=limits.horizon,
            utilisation=limits.utilisation, more_sources=tuple(f.source for f in beside),
        )  # fmt: skip
        if offer.term != "spot":
            return quote
        reclaim = renting.reclaim_of(offer.provider, offer.accelerator)
        return replace(
            quote, node_mtbi_s=reclaim.node_mtbi_s, reclaim_source=reclaim.share.cited,
            more_sources=(*quote.more_sources, reclaim.share.source, renting.worst_reclaim.source),
        )  # fmt: skip

    def owned(self, server: Server, node: Node, *, without: frozenset[str] = frozenset()) -> Quote:
        """Buying that kind of node, with the network, for as long as it is kept."""
        limits, figures, setting = self.workload.constraints, self.catalogue.owning, self.setting
        kept = limits.horizon or figures.life.value * YEAR
        accelerator = self.catalogue.accelerator(node.accelerator)
        bought = Owned(
            node, server, node_power(node, accelerator, setting.power_ratio), figures, setting.parts,
            radix_for(node, setting.parts) if node.scales_out else 2, kept, setting.oversubscription,
            self.stored_bytes, without,
        )  # fmt: skip
        each = float(bought.usd_per_hour(server.nodes)) / server.nodes
        return Quote(
            provider="owned", term="owned", instance=node.name, usd_per_node_hour=each,
            usd_per_accelerator_hour=each / node.accelerators, commitment_s=kept, seen=day_of(server.price.seen),
            source=server.price.source, owned=bought, kept_s=limits.horizon, utilisation=limits.utilisation,
            more_sources=sources(bought),
        )  # fmt: skip


def day_of(seen: str) -> date | None:
    """The first day of what a source says it was seen: a year, a month or a day.

    >>> day_of("2024-08"), day_of("2026"), day_of("undated")
    (datetime.date(2024, 8, 1), datetime.date(2026, 1, 1), None)
    """
    parts = seen.split("-")
    try:
        return date(*(int(p) for p in (*parts, "1", "1")[:3]))
    except ValueError:
        return None


def market(deal: Deal) -> Market:
    """The offers that a workload's constraints allow, and owning where it is asked for.

    Raises:
        InputError: an accelerator, provider or region that the catalogue does not know.
    """
    constraints, catalogue = deal.workload.constraints, deal.catalogue
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
    kept, stale = deal.fresh(kept)
    quotes: dict[str, list[Quote]] = defaultdict(list)
    nodes: dict[str, Node] = {}
    unknown_network = 0
    for offer in kept:
        node = catalogue.node_of(offer)
        unknown_network += not node.scales_out and node.fabric is FabricKind.UNKNOWN
        nodes[node.name] = node
        quotes[node.name].append(deal.quote(offer, node.accelerators))
    for server in catalogue.owning.servers if constraints.own else ():
        node = catalogue.node(server.node)
        if constraints.accelerators is None or node.accelerator in constraints.accelerators:
            for one in cabled(node):
                nodes[one.name] = one
                quotes[one.name].append(deal.owned(server, one))
    kinds = tuple(
        Kind(nodes[name], catalogue.accelerator(nodes[name].accelerator), tuple(found))
        for name, found in sorted(quotes.items())
    )
    return Market(kinds, dict(left_out), unknown_network, dict(alone), stale, deal.stale_s)


def too_old(offered: Market, today: date) -> tuple[Rejected, ...]:
    """The cheapest offer that is too old, of each accelerator whose fresher ones all cost more."""
    fresh: dict[str, float] = {}
    for kind in offered.kinds:
        for quote in kind.quotes:
            name, usd = kind.accelerator.name, quote.usd_per_accelerator_hour
            fresh[name] = min(usd, fresh.get(name, usd))
    found = []
    for name in sorted({o.accelerator for o in offered.stale}):
        cheap = min((o for o in offered.stale if o.accelerator == name), key=lambda o: o.per_accelerator.usd)
        if cheap.per_accelerator.usd >= fresh.get(name, 0.0):
            continue
        days = (today - cheap.seen).days
        why = (
            f"{cheap.provider} {cheap.instance} ({cheap.term}) at ${cheap.per_accelerator.usd:.2f} an "
            f"accelerator-hour was seen {cheap.seen.isoformat()}, {days} days ago: not used, fresher prices are there; "
            f'allow it with [constraints] price_age = "{days + 1} days"'
        )
        count = sum(o.accelerator == name for o in offered.stale)
        found.append(Rejected(binding_constraint="price_age", why=why, count=count))
    return tuple(found)


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
