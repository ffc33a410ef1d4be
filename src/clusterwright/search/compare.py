"""The door to rent or own: one cluster, every way to have it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from clusterwright.errors import InfeasibleError, InputError, unknown
from clusterwright.estimators import ownership
from clusterwright.noun import Noun
from clusterwright.search import bill
from clusterwright.search.candidate import Software
from clusterwright.search.design import deal_of, design, setting_of, trainable
from clusterwright.search.offers import Kind, market, own_cluster
from clusterwright.search.ways import (
    UTILISATION,
    Base,
    Own,
    Way,
    against,
    goodput_of,
    nodes_of,
    own_of,
    step_of,
    way,
)
from clusterwright.units import DAY, HOUR, YEAR, show_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.catalog import Catalogue
    from clusterwright.estimators.cost import Quote
    from clusterwright.hardware import Node
    from clusterwright.market import Server
    from clusterwright.plan import Candidate, Plan
    from clusterwright.search.design import Known, Wish
    from clusterwright.search.offers import Deal

TERMS = ("on-demand", "spot", "reserved", "capacity-block")
OLD_DAYS = 365
MOST_MOVES = 3


class Comparison(Noun):
    """Every way to have one cluster, against owning it."""

    accelerator: str
    node: str
    nodes: int
    accelerators: int
    """That jobs run on; spares are in the costs."""
    train_time_s: float
    """Of one job on the nodes that are bought."""
    horizon_s: float
    asked_utilisation: float | None
    utilisation: tuple[float, ...]
    own: Own | None
    owned: Way | None
    """Owning as a way like the others."""
    offers: tuple[Way, ...]
    """The cheapest at full utilisation first."""
    break_even_utilisation: dict[str, float | None]
    """By offer."""
    left_out: dict[str, int]
    """Offers that are not compared, by reason."""
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    sources: tuple[str, ...]


def compare(wish: Wish, known: Known, plan: Plan | None = None, without: Iterable[str] = ()) -> Comparison:
    """Hold renting, reserving and owning the cluster of a plan against one another.

    Args:
        wish: The workload and its model.
        known: The catalogue.
        plan: Whose cluster is compared; none: the one that `design` chooses.
        without: Parts of owning that are left out.

    Raises:
        InputError: an unknown part, or a plan of another model.
        InfeasibleError: nothing satisfies the workload.
    """
    out = frozenset(without)
    for part in sorted(out - set(ownership.OPTIONAL)):
        raise unknown("--without", part, ownership.OPTIONAL)
    chosen, node, software = _cluster(wish, known, plan)
    setting = setting_of(wish, trainable(wish.workload), known).under(software)
    deal = deal_of(wish, setting, known)
    kind, quote = _to_own(deal, node, out)
    base = _base(deal, kind, chosen, quote)
    horizon = deal.workload.constraints.horizon or known.catalogue.owning.life.value * YEAR
    owned = way(kind, quote, setting, base, horizon) if quote else None
    own = own_of(quote, owned.nodes) if quote and owned else None
    offered, left_out = _offers(deal, node, chosen)
    ways = _named_apart([way(k, q, setting, base, horizon) for k, q in offered])
    if owned is not None and own is not None:
        ways = [against(one, owned, own, base) for one in ways]
    else:
        what = f"a node of {node.accelerators} {node.accelerator}"
        why = f"what {what} costs to buy is not known: say it in owning.toml of --catalog"
        ways = [one.model_copy(update={"break_even_reason": why}) for one in ways]
    quotes = [q for _, q in offered] + ([quote] if quote else [])
    return Comparison(
        accelerator=node.accelerator, node=kind.node.name, nodes=nodes_of(kind, base.layout),
        accelerators=base.layout.accelerators, train_time_s=base.job_hours / base.year_hours * YEAR, horizon_s=horizon,
        asked_utilisation=deal.workload.constraints.utilisation, utilisation=UTILISATION, own=own, owned=owned,
        offers=tuple(ways), break_even_utilisation={one.offer: one.break_even_utilisation for one in ways},
        left_out=left_out, reasons=_reasons(ways, owned, own, deal.workload.constraints.utilisation),
        warnings=_warnings(deal, ways, quotes, own), assumptions=bill.assumptions(deal, quotes),
        sources=_sources(known.catalogue, quotes, kind.node),
    )  # fmt: skip


def _cluster(wish: Wish, known: Known, plan: Plan | None) -> tuple[Candidate, Node, Software]:
    found = design(wish, replace(known, site=None)) if plan is None else plan
    if found.model.name != wish.model.name:
        raise InputError(f"--plan: is of {found.model.name}, but the workload trains {wish.model.name}")
    if found.chosen is None or found.hardware_node is None:
        raise InfeasibleError("nothing satisfies this workload: no cluster to compare; `clusterwright plan` says why")
    asked = trainable(wish.workload).framework
    framework = str(found.workload.get("training", {}).get("framework", asked))
    return found.chosen, found.hardware_node, Software(framework, found.chosen.layout.precision)


def _to_own(deal: Deal, node: Node, without: frozenset[str]) -> tuple[Kind, Quote | None]:
    """The node that is bought to have that accelerator, and its price; none where that is not known."""
    catalogue = deal.catalogue
    accelerator = catalogue.accelerator(node.accelerator)
    server = server_for(node, catalogue)
    if server is None:
        return Kind(node, accelerator, ()), None
    # The same server with fewer of its NICs on the network has a longer name.
    bought = node if f"{node.name}-".startswith(f"{server.node}-") else catalogue.node(server.node)
    there = deal.workload.cluster
    quote = deal.owned(server, bought, without=without)
    if there is not None:
        quote = replace(quote, paid_nodes=there.nodes)
    return Kind(bought, accelerator, (quote,)), quote


def server_for(node: Node, catalogue: Catalogue) -> Server | None:
    """What that node, or else one of as many of its accelerators, costs to buy."""
    named = [s for s in catalogue.owning.servers if f"{node.name}-".startswith(f"{s.node}-")]
    if named:
        return named[0]
    like = [(s, catalogue.node(s.node)) for s in catalogue.owning.servers]
    return next((s for s, n in like if (n.accelerator, n.accelerators) == (node.accelerator, node.accelerators)), None)


def _base(deal: Deal, kind: Kind, chosen: Candidate, quote: Quote | None) -> Base:
    setting, layout = deal.setting, chosen.layout
    step = step_of(kind, layout, setting)
    goodput = goodput_of(kind, quote, layout, setting)[0] if quote else chosen.estimate.goodput
    return Base(
        layout=layout, step_s=step, job_hours=layout.accelerators * setting.training.steps * step / HOUR,
        year_hours=layout.accelerators * goodput * YEAR / HOUR,
    )  # fmt: skip


def _offers(deal: Deal, node: Node, chosen: Candidate) -> tuple[list[tuple[Kind, Quote]], dict[str, int]]:
    """Every offer of that accelerator that can hold the layout, on any term; the others counted by reason."""
    limits = deal.workload.constraints.model_copy(
        update={"accelerators": (node.accelerator,), "terms": TERMS, "own": False}
    )
    offered = market(replace(deal, workload=deal.workload.model_copy(update={"constraints": limits})))
    left_out: Counter[str] = Counter()
    if offered.stale:
        left_out[f"price older than {offered.stale_s / DAY:,.0f} days"] = len(offered.stale)
    if "providers" in offered.alone or "regions" in offered.alone:
        left_out["another provider or region"] = sum(offered.alone.get(k, 0) for k in ("providers", "regions"))
    found: list[tuple[Kind, Quote]] = []
    for kind in (*offered.kinds, *_there(deal)):
        nodes = nodes_of(kind, chosen.layout)
        if nodes > 1 and not kind.node.scales_out:
            left_out["network of the node is unknown: one node only"] += len(kind.quotes)
        elif chosen.layout.accelerators % kind.node.accelerators:
            count = chosen.layout.accelerators
            left_out[f"{count} accelerators are not whole nodes of {kind.node.accelerators}"] += len(kind.quotes)
        else:
            found += [(kind, quote) for quote in kind.quotes]
    return found, dict(left_out)


def _named_apart(ways: list[Way]) -> list[Way]:
    """The same, where offers of one name have their region, their day, or their number in it."""
    found: list[Way] = []
    for one in sorted(ways, key=lambda one: one.at(1.0)):
        names = {other.offer for other in found}
        more = filter(None, (one.region, f"seen {one.seen}", *(f"({i})" for i in range(2, len(ways) + 2))))
        tries = (one.offer, *(f"{one.offer} {text}" for text in more))
        found.append(one.model_copy(update={"offer": next(name for name in tries if name not in names)}))
    return found


def _there(deal: Deal) -> tuple[Kind, ...]:
    """The cluster that is there, where it costs something."""
    there = deal.workload.cluster
    return own_cluster(there, deal.catalogue).kinds if there is not None and there.usd_per_hour else ()


def _reasons(ways: list[Way], owned: Way | None, own: Own | None, asked: float | None) -> tuple[str, ...]:
    """The answer in sentences."""
    if owned is None or own is None:
        return ("what the nodes cost to buy is not known: only rents are compared",)
    found = [_at(ways, owned, share) for share in dict.fromkeys(filter(None, (asked, 0.3, 1.0)))]
    hourly = [one for one in ways if one.billed == "by the hour"]
    for name, term in (("on demand", "on-demand"), ("spot", "spot")):
        cheap = next((one for one in hourly if one.term == term), None)
        if cheap is not None and cheap.break_even_interval is not None:
            low, high = cheap.break_even_interval
            span = f"({low:.0%} to {high:.0%} with every price over its span; above 100% is never)"
            from_ = cheap.break_even_utilisation
            where = f"from {from_:.0%} of the time on" if from_ is not None else "at no utilisation"
            found.append(f"against the cheapest {name} ({cheap.offer}) owning is cheaper {where} {span}")
    for what, own_one in (("a reservation", False), ("what is paid now", True)):
        firm = next((w for w in ways if w.billed == "round the clock" and (w.provider == "own") is own_one), None)
        if firm is not None:
            found.append(
                f"against {what} utilisation cancels, since both are paid used or idle: against {firm.offer} "
                f"{firm.break_even_reason.partition('; ')[2]}"
            )
    ends = [
        f"{m.figure} (${m.usd_per_accelerator_hour[0]:.2f} to ${m.usd_per_accelerator_hour[1]:.2f})"
        for m in own.moves[:MOST_MOVES]
    ]
    found.append(f"the hour of owning moves most with {', '.join(ends)}")
    return tuple(found)


def _at(ways: list[Way], owned: Way, share: float) -> str:
    best = min(ways, key=lambda one: one.at(share), default=None)
    when = "used all the time" if share == 1 else f"used {share:.0%} of the time"
    ours = f"{when}, owning costs ${owned.at(share):.2f} a useful accelerator-hour"
    if best is None:
        return ours
    steady = [one for one in ways if one.term != "spot"]
    firm = min(steady, key=lambda one: one.at(share), default=best)
    also = "" if firm is best else f", the cheapest that is not taken away ${firm.at(share):.2f} ({firm.offer})"
    return f"{ours}, the cheapest rent ${best.at(share):.2f} ({best.offer}){also}"


def _warnings(deal: Deal, ways: list[Way], quotes: list[Quote], own: Own | None) -> tuple[str, ...]:
    found = []
    old = [q for q in quotes if q.seen is not None and (deal.today - q.seen).days > OLD_DAYS]
    for quote in old:
        days = (deal.today - quote.seen).days if quote.seen else 0
        found.append(f"the price of {quote.provider} {quote.instance} ({quote.term}) is {days} days old: ask again")
    if any(one.term == "spot" for one in ways):
        worst = deal.catalogue.renting.worst_reclaim
        found.append(
            "spot: interruptions are in goodput at the provider's published rate, or an assumed one; scarce spot nodes "
            f"were lost after {worst.value:.0f} hours each in 2023, and then training does not get on at all"
        )
    if own is not None and own.left_out:
        found.append(f"owning is told without {', '.join(own.left_out)}, as asked")
    if deal.workload.constraints.horizon is None:
        kept = show_duration(deal.catalogue.owning.life.value * YEAR)
        found.append(f"no [constraints] horizon: what is bought or reserved is kept {kept}")
    return tuple(found)


def _sources(catalogue: Catalogue, quotes: list[Quote], node: Node) -> tuple[str, ...]:
    keys = [key for quote in quotes for key in (quote.source, *quote.more_sources)] + list(node.sources)
    found = [f"{s.title}: {s.url} (seen {s.seen})" if (s := catalogue.sources.get(key)) else key for key in keys]
    return tuple(dict.fromkeys(s for s in found if s))
