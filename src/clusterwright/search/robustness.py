"""How robust a choice is: what each uncertain figure does to it, and at which prices another cluster wins.

Everything is read off the evaluated table: the best layout on every cluster stays the best when prices, failures or the
length of the run change, and when the estimate is off by the same share for all layouts of an accelerator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.cost import rent_cost
from clusterwright.plan import Case, Robustness, Swing, Threshold
from clusterwright.search.choice import best, choose, feasible
from clusterwright.search.table import tabulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from clusterwright.search.table import Table
    from clusterwright.workload import Workload

    Flags = NDArray[np.bool_]

PRICE, TOKENS, FAILURES = (0.8, 1.2), (0.8, 1.2), (0.5, 2.0)
"""Factors that the figures are varied by."""
LARGEST_RISE = 10.0
"""Prices that rise further than by this factor are not looked at."""
HALVINGS = 14
"""Of the range in which a price is looked for: to a ten-thousandth of it."""
RIVALS = 3
"""Other accelerators, and other offers of the chosen one, whose price is looked for."""


@dataclass(frozen=True)
class Question:
    """A choice that is put to the test."""

    table: Table
    chosen: int
    workload: Workload

    def asked(self, table: Table) -> int | None:
        """The row that would be chosen from another table of the same rows."""
        return choose(table, self.workload.constraints, self.workload.prefer.objective)[1]

    def of_accelerator(self, name: str) -> Flags:
        """Rows of an accelerator."""
        return np.array([row.kind.accelerator.name == name for row in self.table.rows])

    def of_offer(self, index: int) -> Flags:
        """Rows of the accelerator, the provider and the term of a row."""
        wanted = offer_of(self.table, index)
        return np.array([offer_of(self.table, i) == wanted for i in range(len(self.table.rows))])


def robustness(table: Table, chosen: int, workload: Workload) -> Robustness:
    """What would change the choice.

    Args:
        table: Every cluster.
        chosen: The row that was chosen.
        workload: With its constraints and its objective.
    """
    question = Question(table, chosen, workload)
    swings = [
        _swing(question, what, factors, vary) for what, factors, vary in _variations(question)
        if table.cost_usd[chosen] > 0 or "price" not in what
    ]  # fmt: skip
    priced = workload.prefer.objective == "cost" and table.cost_usd[chosen] > 0
    return Robustness(swings=tuple(swings), thresholds=tuple(_thresholds(question)) if priced else ())


def _variations(question: Question) -> Iterable[tuple[str, tuple[float, float], Callable[[float], Table]]]:
    table, row = question.table, question.table.rows[question.chosen]
    name, setting = row.kind.accelerator.name, table.setting
    columns = row.group.best.columns
    step = columns["step_time_s"][row.place]
    ends = (float(columns["low_s"][row.place] / step), float(columns["high_s"][row.place] / step))
    this = question.of_accelerator(name)
    yield (
        f"price of {row.quote.seller}",
        PRICE,
        lambda f: priced(table, question.of_offer(question.chosen), f),
    )
    yield "step time of all, over its 80% interval", ends, lambda f: _slower(table, f, np.ones_like(this))
    if not this.all():
        yield f"step time of {name} alone, over its 80% interval", ends, lambda f: _slower(table, f, this)
    yield "failures", FAILURES, lambda f: _failing(table, f)
    longer = setting.training.tokens
    yield (
        "tokens",
        TOKENS,
        lambda f: tabulate(
            table, replace(setting, training=setting.training.model_copy(update={"tokens": f * longer}))
        ),
    )


def _swing(question: Question, what: str, factors: tuple[float, float], vary: Callable[[float], Table]) -> Swing:
    low, high = (_case(question, factor, vary(factor)) for factor in factors)
    return Swing(what=what, low=low, high=high)


def _case(question: Question, factor: float, table: Table) -> Case:
    """The choice kept, and the choice made again."""
    again, kept = question.asked(table), question.chosen
    return Case(
        factor=factor, cost_usd=float(table.cost_usd[kept]), train_time_s=float(table.time_s[kept]),
        changes=again is None or offer_of(table, again) != offer_of(table, kept),
        choice="" if again is None else label(table, again),
    )  # fmt: skip


def offer_of(table: Table, index: int) -> tuple[str, str, str]:
    """Accelerator, provider and term of a row: what has a price of its own."""
    row = table.rows[index]
    return row.kind.accelerator.name, row.quote.provider, row.quote.term


def label(table: Table, index: int) -> str:
    """A cluster and its price in a few words."""
    one = table.candidate(index)
    return f"{one.accelerators} {one.accelerator} ({one.seller})"


def priced(table: Table, rows: Flags, factor: float) -> Table:
    """The table with other prices of the nodes for some rows; their storage and egress cost the same."""
    beside = np.zeros_like(table.time_s)
    for quote in {id(q): q for q in (table.rows[i].quote for i in np.flatnonzero(rows))}.values():
        if quote.paid_nodes is None and quote.owned is None:
            beside = np.where(rows, rent_cost(np.zeros_like(table.time_s), quote, table.time_s), beside)
    other = beside + factor * (table.cost_usd - beside)
    return replace(table, cost_usd=np.where(rows, other, table.cost_usd))


def _slower(table: Table, factor: float, rows: Flags) -> Table:
    """The table with longer steps for some rows; what it costs follows."""
    groups = tuple(
        replace(
            g, best=replace(g.best, columns={**g.best.columns, "step_time_s": g.best.columns["step_time_s"] * factor})
        )
        for g in table.groups
    )
    other = tabulate(table, groups=groups)
    time, cost = (
        np.where(rows, new, old) for new, old in ((other.time_s, table.time_s), (other.cost_usd, table.cost_usd))
    )
    return replace(table, time_s=time, cost_usd=cost)


def _failing(table: Table, factor: float) -> Table:
    """The table with so many times the failures."""
    rates = table.setting.rates
    setting = replace(table.setting, rates=rates.model_copy(update={"mtbf_s": rates.mtbf_s / factor}))
    groups = tuple(replace(g, useful=setting.useful(g.best.nodes, g.kinds[0].node.accelerators)) for g in table.groups)
    return tabulate(table, setting, groups)


def _thresholds(question: Question) -> Iterable[Threshold]:
    """Prices at which the choice changes: its own that rises, and those of its nearest rivals that fall."""
    table, own = question.table, question.of_offer(question.chosen)
    rise = _rise(question, own)
    if rise is not None:
        factor, winner = rise
        yield _threshold(table, question.chosen, factor, winner)
    for rival in _rivals(question, own):
        rows = question.of_offer(rival)
        fall = _fall(question, rows)
        if fall is not None:
            yield _threshold(table, rival, fall, question.asked(priced(table, rows, fall)))


def _threshold(table: Table, index: int, factor: float, winner: int | None) -> Threshold:
    row = table.rows[index]
    usd = row.quote.per_accelerator_hour(
        int(table.ordered[index]), int(table.ordered[index]) * row.kind.node.accelerators
    )
    return Threshold(
        accelerator=row.kind.accelerator.name, provider=row.quote.provider, term=row.quote.term,
        usd_per_accelerator_hour=usd, changes_at_usd=usd * factor,
        choice="" if winner is None else label(table, winner),
    )  # fmt: skip


def _rivals(question: Question, own: Flags) -> list[int]:
    """The best rows of the nearest other accelerators, and of the nearest other offer of the chosen one."""
    table, workload = question.table, question.workload
    allowed = feasible(table, workload.constraints)
    others = allowed[~own[allowed]]
    names = np.array([table.rows[i].kind.accelerator.name for i in others])
    ours = table.rows[question.chosen].kind.accelerator.name
    nearest = [best(table, others[names == name], workload.prefer.objective) for name in sorted(set(names))]
    nearest.sort(key=lambda i: float(table.cost_usd[i]))
    same = [i for i in nearest if table.rows[i].kind.accelerator.name == ours]
    return [i for i in nearest if i not in same][:RIVALS] + same


def _fall(question: Question, rows: Flags) -> float | None:
    """The largest factor on a price below which the choice is among those rows; none where even nothing would do."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _won(question, rows, middle) else (low, middle)
    return low if low > 0 else None


def _won(question: Question, rows: Flags, factor: float) -> bool:
    found = question.asked(priced(question.table, rows, factor))
    return found is not None and bool(rows[found])


def _rise(question: Question, own: Flags) -> tuple[float, int | None] | None:
    """The least factor on the choice's own price above which another offer is chosen, and what that is."""
    low, high = 0.0, math.log(LARGEST_RISE)
    if _won(question, own, LARGEST_RISE):
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _won(question, own, math.exp(middle)) else (low, middle)
    return math.exp(high), question.asked(priced(question.table, own, math.exp(high)))
