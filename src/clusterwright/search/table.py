"""Every cluster that could run the job, as one table of arrays, and which constraints each row breaks."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.cost import node_power, rent_cost, run_power
from clusterwright.search.bounds import INPUTS, STATES, memory_bounds
from clusterwright.search.candidate import Setting, Software, fabric_of, make, spares_of
from clusterwright.search.cores import shared
from clusterwright.search.evaluate import ANOTHER_FRAMEWORK, Best, Useful, best_by_nodes, best_of, complexity
from clusterwright.search.propose import Limits, count_candidates, legal_layouts, takes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from clusterwright.estimators.cost import Quote
    from clusterwright.plan import Candidate
    from clusterwright.search.offers import Kind
    from clusterwright.search.propose import Space
    from clusterwright.workload import Constraints

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """Kinds of node of equal value, evaluated once."""

    kinds: tuple[Kind, ...]
    best: Best
    useful: Useful
    software: tuple[Software, ...]
    """That were tried."""


@dataclass(frozen=True)
class Row:
    """One cluster at one price."""

    group: Group
    kind: Kind
    quote: Quote
    place: int
    """In the arrays of `Best`."""
    useful: Useful
    """Of the time, at this price: spot nodes are taken away."""

    @property
    def software(self) -> Software:
        """That its layout runs under."""
        return self.group.software[int(self.group.best.software[self.place])]


@dataclass(frozen=True)
class Table:
    """Rows, and their figures as arrays of shape (n,)."""

    setting: Setting
    groups: tuple[Group, ...]
    rows: tuple[Row, ...]
    nodes: NDArray[np.int64]
    ordered: NDArray[np.int64]
    """Nodes that must be ordered: those of the job and the spares."""
    time_s: Floats
    cost_usd: Floats
    power_w: Floats
    tie: Floats
    """Among equals the least wins: fewer nodes, then the simpler layout."""
    counts: Mapping[str, int]
    """Layouts looked at, legal, fitting, and refused by reason."""
    refused: Mapping[str, int]

    def candidate(self, index: int) -> Candidate:
        """One row as a noun."""
        row = self.rows[index]
        best = row.group.best
        numbers = {name: float(values[row.place]) for name, values in best.columns.items()}
        layout = best.layout(row.place, row.software.precision)
        return make(self.setting_of(index), row.kind, row.quote, layout, numbers, row.useful)

    def setting_of(self, index: int) -> Setting:
        """The setting of one row: with the software that its layout runs under."""
        return self.setting.under(self.rows[index].software)

    def broken(self, constraints: Constraints) -> dict[str, Flags]:
        """Where each constraint is broken, by its key in the workload."""
        found = {}
        for key, values in (("deadline", self.time_s), ("budget", self.cost_usd), ("power", self.power_w)):
            limit = getattr(constraints, key)
            if limit is not None:
                found[key] = values > limit
        most = np.array([np.inf if r.quote.largest_order is None else r.quote.largest_order for r in self.rows])
        if np.isfinite(most).any():
            found["largest_order"] = self.ordered > most
        return found


def evaluate(
    setting: Setting,
    kinds: Sequence[Kind],
    max_accelerators: int,
    pins: Mapping[str, int | str],
    progress: Callable[[float], None] | None = None,
    *,
    bounded: bool = True,
) -> Table:
    """Evaluate every legal layout on every kind of node.

    Args:
        setting: Of the search.
        kinds: Nodes with their quotes.
        max_accelerators: Largest cluster. [1]
        pins: Choices that are fixed.
        progress: Told the share that is done.
        bounded: Refuse unseen what is far from fitting in memory.
    """
    alike: dict[tuple[object, ...], list[Kind]] = {}
    for kind in kinds:
        alike.setdefault(kind.alike, []).append(kind)
    tasks = [_Task(setting, tuple(same), max_accelerators, pins, bounded) for same in alike.values()]
    groups: list[Group] = []
    counts: Counter[str] = Counter({"candidates": 0, "legal": 0, "fits": 0, "out of memory": 0})
    refused: Counter[str] = Counter()
    for task, found in zip(tasks, shared(_evaluated, tasks, sum(task.candidates for task in tasks)), strict=True):
        groups.append(Group(task.kinds, found.best, found.useful, task.software))
        refused.update(found.refused)
        fits, failed = found.best.fits, found.best.too_large
        counts.update({"candidates": task.candidates, "legal": found.legal, "fits": fits, "out of memory": failed})
        refused["it fits with less recomputing"] += found.legal - fits - failed
        if progress is not None:
            progress(len(groups) / len(tasks))
    if bounded and not counts["fits"] and (refused[STATES] or refused[INPUTS]):
        return evaluate(setting, kinds, max_accelerators, pins, bounded=False)  # to say how much is missing
    return _table(setting, tuple(groups), counts, refused)


@dataclass(frozen=True)
class _Task:
    """Kinds of node of equal value, to be evaluated."""

    setting: Setting
    kinds: tuple[Kind, ...]
    max_accelerators: int
    pins: Mapping[str, int | str]
    bounded: bool

    @property
    def limits(self) -> Limits:
        node, most = self.kinds[0].node, self.max_accelerators
        return Limits(node.accelerators, node.scale_up_domain, most, self.kinds[0].max_nodes, self.pins)

    @property
    def software(self) -> tuple[Software, ...]:
        every = self.setting.software(self.kinds[0].accelerator)
        return tuple(one for one in every if takes(one.framework, self.pins)) or every[:1]

    @functools.cached_property
    def candidates(self) -> int:
        """Layouts that will be looked at."""
        settings = [self.setting.under(one) for one in self.software]
        return sum(count_candidates(one.model, one.training, self.limits) for one in settings)


@dataclass(frozen=True)
class _Evaluated:
    """What is left of the layouts on one kind of node."""

    best: Best
    useful: Useful
    legal: int
    refused: Mapping[str, int]


def _evaluated(task: _Task) -> _Evaluated:
    setting, kind, a_node = task.setting, task.kinds[0], task.kinds[0].node.accelerators
    cheapest = min((q for k in task.kinds for q in k.quotes), key=lambda q: q.usd_per_node_hour)
    several, legal, refused = [], 0, Counter[str]()
    settings = [setting.under(one) for one in task.software]
    spaces = [_space(one, kind, task) for one in settings]
    counts = [_nodes(space, a_node) for space in spaces]
    useful = setting.useful(np.flatnonzero(np.bincount(np.concatenate(counts))), a_node)
    for one, space in zip(settings, spaces, strict=True):
        job = one.job(kind)
        several.append(best_by_nodes(job, space, useful, cheapest, one.training.steps, setting.calibration))
        legal += space.legal
        refused.update(space.refused)
    factors = handicaps(task.software, task.software[0])
    return _Evaluated(best_of(several, factors, setting.model.layers), useful, legal, refused)


def handicaps(software: Sequence[Software], first: Software) -> list[float]:
    """Factors on the times of several kinds of software when one of them is chosen [1]."""
    return [1.0 if one.framework == first.framework else ANOTHER_FRAMEWORK for one in software]


def _space(setting: Setting, kind: Kind, task: _Task) -> Space:
    bounds = memory_bounds(setting.job(kind), setting.training.batch_sequences) if task.bounded else ()
    return legal_layouts(setting.model, setting.training, task.limits, bounds)


def _nodes(space: Space, a_node: int) -> NDArray[np.int64]:
    return np.asarray(space.layouts.accelerators // a_node)


def tabulate(table: Table, setting: Setting | None = None, groups: tuple[Group, ...] | None = None) -> Table:
    """The same rows in the same order under another setting, or with other figures of their layouts."""
    return _table(setting or table.setting, groups or table.groups, table.counts, table.refused)


def weighed(setting: Setting, groups: tuple[Group, ...]) -> Table:
    """Layouts that are given as a table; nothing was searched."""
    return _table(setting, groups, {}, {})


def _table(setting: Setting, groups: tuple[Group, ...], counts: Mapping[str, int], refused: Mapping[str, int]) -> Table:
    rows: list[Row] = []
    pieces: list[tuple[Floats, ...]] = []
    for group in groups:
        for kind in group.kinds if len(group.best.nodes) else ():
            for quote in kind.quotes:
                useful = _useful(setting, group, kind, quote)
                rows.extend(Row(group, kind, quote, place, useful) for place in range(len(group.best.nodes)))
                pieces.append(_figures(setting, group.best, kind, quote, useful))
    nodes, ordered, time, cost, power, tie = (
        np.concatenate([p[i] for p in pieces]) if pieces else np.zeros(0) for i in range(6)
    )
    return Table(
        setting=setting, groups=groups, rows=tuple(rows), nodes=nodes.astype(np.int64),
        ordered=ordered.astype(np.int64), time_s=time, cost_usd=cost, power_w=power, tie=tie, counts=counts,
        refused=refused,
    )  # fmt: skip


def _useful(setting: Setting, group: Group, kind: Kind, quote: Quote) -> Useful:
    """What is left of the time at a price; for one number of nodes it slows all layouts alike."""
    if math.isinf(quote.node_mtbi_s):
        return group.useful
    return setting.useful(group.best.nodes, kind.node.accelerators, quote)


def _figures(setting: Setting, best: Best, kind: Kind, quote: Quote, useful: Useful) -> tuple[Floats, ...]:
    """Nodes, nodes ordered, time, cost, power and tie of every number of nodes at one price."""
    ordered = best.nodes + np.array([spares_of(useful, int(n), quote) for n in best.nodes], dtype=np.int64)
    time = setting.training.steps * best.columns["step_time_s"] / useful.goodput[best.nodes]
    fabric = np.array(
        [fabric_of(kind.node, int(n), setting.oversubscription, setting.parts).power_w or 0.0 for n in ordered]
    )
    power = run_power(ordered, node_power(kind.node, kind.accelerator, setting.power_ratio), fabric)
    # A layout's complexity is far below 64, so that fewer nodes always come first.
    tie = best.nodes + complexity(best.layouts, setting.model.layers) / 64
    return best.nodes.astype(float), ordered.astype(float), time, rent_cost(ordered, quote, time), power, tie
