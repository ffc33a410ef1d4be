"""What a plan says in words: why this one, what to beware of, what was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.search.choice import best, feasible
from clusterwright.search.evaluate import TIE
from clusterwright.search.neighbours import layout_reasons, software_reasons
from clusterwright.search.propose import MAX_ACCELERATORS
from clusterwright.units import show_duration, show_money

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from numpy.typing import NDArray

    from clusterwright.plan import Candidate, Plan
    from clusterwright.search.candidate import Setting
    from clusterwright.search.table import Table
    from clusterwright.workload import Workload

STALE_DAYS = 60
"""Age of a price from which on a plan warns."""
RIVALS = 3
CENTS = 100.0
"""Less money than this is told with its cents. [USD]"""
EQUAL = 0.005
"""Accelerator-hours within this share are as many. [1]"""


def name_of(candidate: Candidate) -> str:
    """A cluster and its price in a few words."""
    return f"{candidate.accelerators} {candidate.accelerator} ({candidate.seller})"


def reasons(table: Table, index: int, plan: Plan, workload: Workload, pins: Mapping[str, int | str]) -> tuple[str, ...]:
    """Why the chosen row: against other accelerators, other offers, the ends of the front, and other layouts."""
    chosen, objective = table.candidate(index), workload.prefer.objective
    allowed = feasible(table, workload.constraints)
    what = {"cost": "the cheapest", "time": "the fastest", "balanced": "the knee of the front"}[objective]
    keys = ("deadline", "budget", "power", "max_accelerators")
    kept = [k for k in keys if getattr(workload.constraints, k) is not None]
    found = [f"{what} of {len(allowed):,} clusters and prices" + (f" that keep {', '.join(kept)}" if kept else "")]
    if len(allowed) == 1:
        found = ["the only cluster and price" + (f" that keeps {', '.join(kept)}" if kept else "")]
    if objective == "balanced" and len(plan.front) > 1:
        found.extend(_against_ends(chosen, plan))
    rivals = _rivals(table, index, allowed, objective)
    found.extend(_against(chosen, table.candidate(rival), objective) for rival in rivals)
    row = table.rows[index]
    found.extend(software_reasons(table.setting, row.kind, chosen.layout, (row.software, *row.group.software), pins))
    found.extend(layout_reasons(table.setting_of(index), row.kind, chosen.layout, pins))
    return tuple(found)


def _rivals(table: Table, index: int, allowed: NDArray[np.int64], objective: str) -> list[int]:
    """The best row of each of the nearest other accelerators, and of the nearest other offer of the chosen one.

    For the balance of time and money: those that are as fast.
    """
    offers = [(r.kind.accelerator.name, r.quote.provider, r.quote.term) for r in table.rows]
    if objective == "balanced":
        allowed = allowed[table.time_s[allowed] <= table.time_s[index] * (1 + TIE)]
    aim = "time" if objective == "time" else "cost"
    others = [i for i in allowed if offers[i] != offers[index]]
    names = sorted({offers[i][0] for i in others})
    rivals = [best(table, np.array([i for i in others if offers[i][0] == name]), aim) for name in names]
    rivals.sort(key=lambda i: float((table.time_s if aim == "time" else table.cost_usd)[i]))
    same = [i for i in rivals if offers[i][0] == offers[index][0]]
    return [i for i in rivals if i not in same][:RIVALS] + same


def _against(chosen: Candidate, rival: Candidate, objective: str) -> str:
    """The choice against one rival, with what makes the difference."""
    ours, theirs = chosen.estimate, rival.estimate
    if objective == "time":
        gap = show_duration(max(theirs.train_time_s - ours.train_time_s, 0.0))
        why = f"{ours.tokens_per_s / theirs.tokens_per_s:.2f} times the tokens a second"
        return f"faster than {name_of(rival)} by {gap} because it makes {why}"
    if theirs.cost_usd < ours.cost_usd * (1 + TIE):
        better = "sooner" if ours.train_time_s < theirs.train_time_s else "simpler"
        return f"within {TIE:.0%} as cheap as {name_of(rival)}, and {better}"
    gap = _money(theirs.cost_usd - ours.cost_usd)
    hours = _hours(chosen) / _hours(rival)
    ours_usd, theirs_usd = chosen.offer.usd_per_accelerator_hour, rival.offer.usd_per_accelerator_hour
    prices = f"${ours_usd:.2f} against ${theirs_usd:.2f}"
    cheaper = ours_usd < theirs_usd
    if cheaper and hours < 1 - EQUAL:
        why = f"an accelerator-hour is cheaper ({prices}) and {1 - hours:.0%} fewer are needed"
    elif cheaper and hours > 1 + EQUAL:
        why = f"an accelerator-hour is cheaper ({prices}), although {hours - 1:.0%} more are needed"
    elif cheaper:
        why = f"an accelerator-hour is cheaper ({prices})"
    elif hours < 1 - EQUAL:
        why = f"it needs {1 - hours:.0%} fewer accelerator-hours (at {prices})"
    else:
        why = f"less is paid that is not used (an accelerator-hour is {prices})"
    return f"cheaper than {name_of(rival)} by {gap} because {why}"


def _money(usd: float) -> str:
    """A difference of money; a small one with its cents."""
    return f"${max(usd, 0.0):.2f}" if usd < CENTS else show_money(usd)


def _hours(one: Candidate) -> float:
    """Accelerator-seconds that are paid, spares included [s]."""
    return one.accelerators * (1 + one.spares / one.nodes) * one.estimate.train_time_s


def _against_ends(chosen: Candidate, plan: Plan) -> list[str]:
    fastest, cheapest = plan.front[0].estimate, plan.front[-1].estimate
    ours = chosen.estimate
    money, time = show_money(fastest.cost_usd - ours.cost_usd), show_duration(ours.train_time_s - fastest.train_time_s)
    less, sooner = show_money(ours.cost_usd - cheapest.cost_usd), cheapest.train_time_s - ours.train_time_s
    return [
        f"{money} cheaper than the fastest, which would save {time}",
        f"{show_duration(sooner)} sooner than the cheapest shown, which would save {less}",
    ]


def warnings(table: Table, index: int, today: date, workload: Workload) -> tuple[str, ...]:
    """What to beware of before ordering."""
    row, chosen = table.rows[index], table.candidate(index)
    quote, found = row.quote, []
    if quote.seen is not None and (age := (today - quote.seen).days) > STALE_DAYS:
        found.append(
            f"the price of {quote.provider} {quote.instance} ({quote.term}) was seen on {quote.seen.isoformat()}, "
            f"{age} days ago: ask again{_with_fresh_prices(table, today, workload)}"
        )
    if quote.largest_order is None and quote.owned is None:
        found.append(
            f"how many {quote.instance} {quote.provider} can really deliver ({quote.term}) is unknown: "
            f"{chosen.nodes + chosen.spares} nodes are wanted"
        )
    if row.kind.there is not None and (idle := row.kind.there - chosen.nodes - chosen.spares) > 0:
        why = (
            f"no layout of more is quicker; the batch of {chosen.layout.global_batch} sequences, the heads and the "
            "layers do not split over them"
            if row.kind.node.scales_out
            else "what joins them is not known: [cluster] nic_gbps says it"
        )
        found.append(f"{idle} of the {row.kind.there} nodes stay idle: {why}")
    if row.kind.node.power_w is None:
        found.append(f"the draw of node {row.kind.node.name} is unknown: estimated from its accelerators")
    if chosen.fabric.tiers > 3:  # noqa: PLR2004 - what the fabric law covers
        found.append("more nodes than three tiers of switches hold: cost and power of the fabric are not counted")
    return tuple(found)


def _with_fresh_prices(table: Table, today: date, workload: Workload) -> str:
    """What would be chosen if only prices counted that are not stale."""
    allowed = feasible(table, workload.constraints)
    seen = [table.rows[i].quote.seen for i in allowed]
    fresh = allowed[[day is not None and (today - day).days <= STALE_DAYS for day in seen]]
    if not len(fresh):
        return ""
    rival = table.candidate(best(table, fresh, "time" if workload.prefer.objective == "time" else "cost"))
    return f"; by fresher prices alone {name_of(rival)} for {show_money(rival.estimate.cost_usd)}"


def assumptions(setting: Setting, workload: Workload, of_money: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What the numbers take for granted.

    Args:
        setting: Of the search.
        workload: As asked.
        of_money: What the sums take for granted, see `clusterwright.search.bill`.
    """
    found = list(setting.rates.assumptions)
    asked = workload.training
    if asked is not None and (batch := setting.training.batch_sequences) != asked.global_batch:
        tokens = batch * asked.sequence_length / 1e6
        found.append(f"global_batch {asked.global_batch} is taken as {batch} sequences ({tokens:,.2f}M tokens)")
    if setting.training.precision == "bf16" and setting.training.method != "qlora":
        found.append(
            'precision bf16: [training] precision = "any" tries fp8 too, where accelerator and framework have it'
        )
    if setting.model.experts and setting.training.routing == "balanced":
        found.append(
            "tokens fall evenly on experts, as recipes force them to: "
            '[training] routing = "natural" counts the rank that has more than its share'
        )
    if setting.training.offload:
        found.append(
            f"offload {', '.join(setting.training.offload)}: the time follows from the bandwidth of link and host "
            "memory, nothing of it is fitted"
        )
    if setting.write_bytes_per_s is None:
        found.append(
            "storage is chosen to write a checkpoint behind the job within ten minutes, or within 1% of the mean time "
            "between failures where that is shorter"
        )
    if workload.constraints.max_accelerators is None and workload.cluster is None:
        found.append(f"clusters of up to {MAX_ACCELERATORS:,} accelerators are tried ([constraints] max_accelerators)")
    found.extend(of_money)
    if setting.calibration is None:
        found.append("efficiencies as shipped: fitted to published runs, not to your own")
    return tuple(found)
