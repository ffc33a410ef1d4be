"""The nearest misses, each with the constraint that binds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.training import USABLE_MEMORY, Layouts, run
from clusterwright.plan import Rejected
from clusterwright.search.candidate import make
from clusterwright.search.choice import best, choose
from clusterwright.search.evaluate import COLUMNS
from clusterwright.units import show_bytes, show_duration, show_money

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from clusterwright.search.offers import Market
    from clusterwright.search.table import Table
    from clusterwright.workload import Workload

_SHOW: dict[str, Callable[[float], str]] = {
    "deadline": show_duration,
    "budget": show_money,
    "power": lambda watts: f"{watts / 1e3:,.1f} kW",
}
_SUPERLATIVE = {"deadline": "on the fastest", "budget": "on the cheapest", "power": "on the least"}


def misses(
    table: Table, workload: Workload, chosen: int | None, offered: Market, relaxed: Callable[[], Table | None]
) -> tuple[Rejected, ...]:
    """What came nearest, and what it broke.

    Args:
        table: Every cluster.
        workload: With its constraints.
        chosen: Row of the choice; none where nothing satisfies the constraints.
        offered: What the market left.
        relaxed: The table without the limit of accelerators, evaluated when it is asked for.
    """
    found: list[Rejected] = []
    if not offered.kinds:
        return _no_offers(offered)
    if not table.rows:
        found.extend(_nothing_fits(table, workload))
    elif chosen is None:
        found.extend(_infeasible(table, workload))
    else:
        found.extend(_tempting(table, workload, chosen))
    if chosen is None:
        found.extend(_with_more(workload, relaxed()))
    elif table.counts["out of memory"]:
        found.append(_out_of_memory(table))
    if offered.unknown_network:
        found.append(Rejected(
            binding_constraint="unknown-network", count=offered.unknown_network,
            why=f"{offered.unknown_network} offers whose node or scale-out network is unknown: tried on one node only",
        ))  # fmt: skip
    return tuple(found)


def _values(table: Table) -> dict[str, NDArray[np.float64]]:
    return {"deadline": table.time_s, "budget": table.cost_usd, "power": table.power_w}


def _apart(key: str, needs: float, limit: float) -> tuple[str, str]:
    """What is needed and what is allowed, in words; where the words are equal, by how little they differ."""
    words = _SHOW[key](needs), _SHOW[key](limit)
    return words if words[0] != words[1] else (f"{needs / limit - 1:.2%} more than that", words[1])


def _constraint(key: str) -> str:
    return "providers" if key == "largest_order" else key


def _only(broken: Mapping[str, NDArray[np.bool_]], key: str) -> NDArray[np.int64]:
    """Rows that break this constraint and no other."""
    mask = broken[key].copy()
    for other, flags in broken.items():
        if other != key:
            mask &= ~flags
    return np.flatnonzero(mask)


def _infeasible(table: Table, workload: Workload) -> list[Rejected]:
    """Every constraint that binds alone; where none does, all that bind together."""
    broken = table.broken(workload.constraints)
    alone = [key for key in broken if len(_only(broken, key))]
    found = []
    for key in alone or [k for k, flags in broken.items() if flags.any()]:
        rows = _only(broken, key) if alone else np.flatnonzero(broken[key])
        together = "" if alone else " (no single constraint is to blame: " + " and ".join(broken) + " bind together)"
        if key == "largest_order":
            row = best(table, rows, workload.prefer.objective)
            why = f"needs {table.ordered[row]} nodes; the offer has {table.rows[row].quote.largest_order}{together}"
        else:
            row = int(rows[np.argmin(_values(table)[key][rows])])
            needs, limit = _apart(key, float(_values(table)[key][row]), getattr(workload.constraints, key))
            why = f"needs {needs} {_SUPERLATIVE[key]}; {key} {limit}{together}"
        found.append(
            Rejected(candidate=table.candidate(row), binding_constraint=_constraint(key), why=why, count=len(rows))
        )
    return found


def _tempting(table: Table, workload: Workload, chosen: int) -> list[Rejected]:
    """Rows that would win if it were not for one constraint."""
    objective = "time" if workload.prefer.objective == "time" else "cost"
    wanted = table.time_s if objective == "time" else table.cost_usd
    broken = table.broken(workload.constraints)
    found = []
    for key in broken:
        rows = _only(broken, key)
        rows = rows[wanted[rows] < wanted[chosen]]
        if not len(rows):
            continue
        # The nearest miss that is still better: the least beyond the limit.
        values = table.ordered if key == "largest_order" else _values(table)[key]
        row = int(rows[np.argmin(values[rows])])
        gain = (
            show_duration(wanted[chosen] - wanted[row])
            if objective == "time"
            else show_money(wanted[chosen] - wanted[row])
        )
        why = f"{gain} {'sooner' if objective == 'time' else 'cheaper'}, but "
        if key == "largest_order":
            why += f"{table.ordered[row]} nodes are more than the offer's {table.rows[row].quote.largest_order}"
        else:
            needs, limit = _apart(key, float(values[row]), getattr(workload.constraints, key))
            why += f"needs {needs}; {key} {limit}"
        found.append(
            Rejected(candidate=table.candidate(row), binding_constraint=_constraint(key), why=why, count=len(rows))
        )
    return found


def _out_of_memory(table: Table) -> Rejected:
    count, legal = table.counts["out of memory"], table.counts["legal"]
    return Rejected(
        binding_constraint="memory", count=count, why=f"{count:,} of {legal:,} legal layouts do not fit in memory"
    )


def _no_offers(offered: Market) -> tuple[Rejected, ...]:
    """The constraints that leave no offer, alone or together."""
    if offered.alone:
        elsewhere = "your own prices: --catalog; your own nodes: [cluster]"
        why = "no offer is left; without {} there would be {} ({})"
        return tuple(
            Rejected(binding_constraint=key, count=count, why=why.format(key, count, elsewhere))
            for key, count in offered.alone.items()
        )
    together = " and ".join(offered.left_out)
    return tuple(
        Rejected(binding_constraint=key, count=count, why=f"no offer is left: {together} contradict one another")
        for key, count in offered.left_out.items()
    )


def _nothing_fits(table: Table, workload: Workload) -> list[Rejected]:
    """No cluster at all: memory, or a limit below the smallest cluster."""
    setting = table.setting
    groups = [g for g in table.groups if g.best.least is not None]
    if not groups:
        limit = workload.constraints.max_accelerators
        if limit is not None and all(k.node.accelerators > limit for g in table.groups for k in g.kinds):
            least = min(k.node.accelerators for g in table.groups for k in g.kinds)
            why = f"the smallest node has {least} accelerators; max_accelerators {limit}"
            return [Rejected(binding_constraint="max_accelerators", why=why, count=table.counts["candidates"])]
        reason = max(table.refused, key=lambda k: table.refused[k], default="nothing was tried")
        why = f"no layout is legal: {reason}"
        return [Rejected(binding_constraint="max_accelerators", why=why, count=table.counts["candidates"])]
    group = min(groups, key=lambda g: g.best.least_memory_bytes / g.kinds[0].accelerator.memory_bytes)
    kind, layout = group.kinds[0], group.best.least
    setting = setting.under(group.software[group.best.least_software])
    assert layout is not None  # noqa: S101 - chosen so above
    numbers = run(setting.job(kind), Layouts.of(layout), setting.calibration)
    quote = min(kind.quotes, key=lambda q: q.usd_per_node_hour)
    candidate = make(setting, kind, quote, layout, {n: float(getattr(numbers, n)[0]) for n in COLUMNS}, group.useful)
    usable = USABLE_MEMORY * kind.accelerator.memory_bytes
    why = (
        f"needs {show_bytes(group.best.least_memory_bytes)} of memory on each of {layout.accelerators} "
        f"{kind.accelerator.name} at the least; {show_bytes(usable)} can be used"
    )
    return [Rejected(candidate=candidate, binding_constraint="memory", why=why, count=table.counts["out of memory"])]


def _with_more(workload: Workload, wider: Table | None) -> list[Rejected]:
    """Whether more accelerators than allowed would do."""
    if wider is None or not wider.rows:
        return []
    front, _ = choose(wider, workload.constraints, workload.prefer.objective)
    if not front:
        return []
    row = min(front, key=lambda i: wider.nodes[i] * wider.rows[i].kind.node.accelerators)
    candidate, limit = wider.candidate(row), workload.constraints.max_accelerators
    why = f"{candidate.accelerators} {candidate.accelerator} would do; max_accelerators {limit}"
    return [Rejected(candidate=candidate, binding_constraint="max_accelerators", why=why)]
