"""What a bill says in words: what is committed to, what spot nodes risk, what is in it and what not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clusterwright.estimators import ownership
from clusterwright.estimators.goodput import estimate_goodput, with_reclaims
from clusterwright.units import DAY, HOUR, show_bytes, show_duration, show_money

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.estimators.cost import Quote
    from clusterwright.market import Renting
    from clusterwright.plan import Candidate
    from clusterwright.search.candidate import Setting
    from clusterwright.search.offers import Deal
    from clusterwright.workload import Constraints

MONTH_DAYS = 30.4375


def cautions(
    candidate: Candidate, quote: Quote, accelerators_a_node: int, setting: Setting, deal: Deal
) -> tuple[str, ...]:
    """What to beware of before the bill comes.

    Args:
        candidate: That is chosen.
        quote: Its price.
        accelerators_a_node: [1].
        setting: Of the search.
        deal: Constraints and catalogue.
    """
    found = []
    if quote.commitment_s:
        found.append(_committed(candidate, quote, deal.workload.constraints.budget))
    elif unused := _unused(deal.workload.constraints):
        found.append(f"[constraints] {unused}: only what is committed to uses it, and the choice is billed by the hour")
    if math.isfinite(quote.node_mtbi_s):
        found.append(_spot(candidate, quote, accelerators_a_node, setting, deal.catalogue.renting))
    return tuple(found)


def _committed(candidate: Candidate, quote: Quote, budget: float | None) -> str:
    """Both sums, and that the whole is beyond the budget that this job's share keeps."""
    whole = candidate.estimate.commitment_usd or 0.0
    nodes = candidate.nodes + candidate.spares
    what = f"{nodes} nodes for {show_duration(max(quote.paid_s, candidate.estimate.train_time_s))}"
    if quote.used_s is None or quote.utilisation is None:
        return (
            f"{quote.term}: {show_money(whole)} are committed, {what} round the clock, and all of it is counted for "
            "this job; with [constraints] horizon and utilisation the job bears its share"
        )
    beyond = ""
    if budget is not None and whole > budget:
        beyond = f"; the budget of {show_money(budget)} covers the share alone"
    return (
        f"{quote.term}: {show_money(whole)} are committed, {what} round the clock; this job's share is "
        f"{show_money(candidate.estimate.cost_usd)}, if {quote.utilisation:.0%} of {show_duration(quote.used_s)} is "
        f"useful work{beyond}"
    )


def _unused(constraints: Constraints) -> str:
    return ", ".join(key for key in ("horizon", "utilisation") if getattr(constraints, key) is not None)


def _spot(candidate: Candidate, quote: Quote, accelerators_a_node: int, setting: Setting, renting: Renting) -> str:
    """How often nodes are taken away, and what the worst published rate would do."""
    nodes = candidate.nodes
    share = -math.expm1(-MONTH_DAYS * DAY / quote.node_mtbi_s)
    worst = useful_at(candidate, accelerators_a_node, setting, renting.worst_reclaim.value * HOUR)
    assumed = " (assumed: this provider publishes no rate)" if quote.reclaim_source.startswith("assumed") else ""
    return (
        f"spot: {share:.0%} of the nodes are taken away within a month{assumed}, one of {nodes} every "
        f"{show_duration(quote.node_mtbi_s / nodes)}, each a restart; goodput {candidate.estimate.goodput:.1%} counts "
        f"that, and takes for granted that another node is had at once. At the worst published rate (a node in "
        f"{renting.worst_reclaim.value:.0f} hours) it would be {worst:.0%}"
    )


def useful_at(candidate: Candidate, accelerators_a_node: int, setting: Setting, node_mtbi_s: float) -> float:
    """Goodput of a candidate, with its storage, where one node is taken away this often [1]."""
    store, rates = candidate.storage, with_reclaims(setting.rates, node_mtbi_s, accelerators_a_node)
    count = candidate.nodes * accelerators_a_node
    return float(estimate_goodput(count, store.checkpoint_bytes, store.write_bytes_per_s, rates).goodput)


def assumptions(deal: Deal, quotes: Iterable[Quote]) -> tuple[str, ...]:
    """What the sums take for granted, over all prices that were weighed."""
    renting, use, offered = deal.catalogue.renting, deal.workload.storage, list(quotes)
    found = []
    if deal.workload.cluster is not None:
        found.append("storage and data transfer of the cluster that is there are not in the cost")
    if paid := max((quote.beside.storage_bytes for quote in offered), default=0.0):
        found.append(
            f"storage of {show_bytes(paid)} is paid, of which checkpoints kept and data take "
            f"{show_bytes(deal.stored_bytes)} and the rest is room; in the cost at "
            f"{1e9 * renting.storage.value:.2f} USD per GB-month ({renting.storage.seen})"
        )
        found.append(
            f"{show_bytes(use.egress)} leave the provider in the end, at its price"
            if use.egress
            else "no data leaves the provider ([storage] egress)"
        )
    for quote in [q for q in offered if q.owned is not None][:1]:
        if quote.owned is not None:
            found.extend(ownership.assumptions(quote.owned))
            if deal.workload.constraints.horizon is None:
                found.append(f"owning: kept {show_duration(quote.commitment_s)} ([constraints] horizon)")
    return tuple(found)
