"""Every cluster that could run the job, as one table of arrays, and which constraints each row breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.cost import node_power, rent_cost, run_power
from clusterwright.search.candidate import Setting, fabric_of, make, spares_of
from clusterwright.search.evaluate import Best, Useful, best_by_nodes, complexity
from clusterwright.search.propose import Limits, legal_layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from clusterwright.estimators.cost import Quote
    from clusterwright.plan import Candidate
    from clusterwright.search.offers import Kind
    from clusterwright.workload import Constraints

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Group:
    """Kinds of node of equal value, evaluated once."""

    kinds: tuple[Kind, ...]
    best: Best
    useful: Useful


@dataclass(frozen=True)
class Row:
    """One cluster at one price."""

    group: Group
    kind: Kind
    quote: Quote
    place: int
    """In the arrays of `Best`."""


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
        layout = best.layout(row.place, self.setting.training.precision)
        return make(self.setting, row.kind, row.quote, layout, numbers, row.group.useful)

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
) -> Table:
    """Evaluate every legal layout on every kind of node.

    Args:
        setting: Of the search.
        kinds: Nodes with their quotes.
        max_accelerators: Largest cluster. [1]
        pins: Choices that are fixed.
        progress: Told the share that is done.
    """
    alike: dict[tuple[object, ...], list[Kind]] = {}
    for kind in kinds:
        alike.setdefault(kind.alike, []).append(kind)
    groups, counts, refused = [], {"candidates": 0, "legal": 0, "fits": 0, "out of memory": 0}, {}
    for number, same in enumerate(alike.values()):
        kind = same[0]
        limits = _limits(kind, max_accelerators, pins)
        space = legal_layouts(setting.model, setting.training, limits)
        layouts = space.layouts
        nodes = np.flatnonzero(np.bincount(layouts.tp * layouts.cp * layouts.pp * layouts.dp // kind.node.accelerators)) if space.legal else np.zeros(0, dtype=np.int64)
        useful = setting.useful(nodes, kind.node.accelerators)
        cheapest = min((q for k in same for q in k.quotes), key=lambda q: q.usd_per_node_hour)
        best = best_by_nodes(setting.job(kind), space, useful, cheapest, setting.training.steps, setting.calibration)
        groups.append(Group(tuple(same), best, useful))
        for key, count in (("candidates", space.candidates), ("legal", space.legal), ("fits", best.fits), ("out of memory", best.too_large)):
            counts[key] += count
        for why, count in space.refused.items():
            refused[why] = refused.get(why, 0) + count
        if progress is not None:
            progress((number + 1) / len(alike))
    return _table(setting, tuple(groups), counts, refused)


def _limits(kind: Kind, max_accelerators: int, pins: Mapping[str, int | str]) -> Limits:
    return Limits(kind.node.accelerators, kind.node.scale_up_domain, max_accelerators, kind.max_nodes, pins)


def _table(setting: Setting, groups: tuple[Group, ...], counts: dict[str, int], refused: dict[str, int]) -> Table:
    rows: list[Row] = []
    pieces: list[tuple[Floats, ...]] = []
    for group in groups:
        best, useful = group.best, group.useful
        count = len(best.nodes)
        if not count:
            continue
        time = setting.training.steps * best.columns["step_time_s"] / useful.goodput[best.nodes]
        simple = complexity(best.layouts)
        for kind in group.kinds:
            watts = node_power(kind.node, kind.accelerator, setting.power_ratio)
            for quote in kind.quotes:
                rows.extend(Row(group, kind, quote, place) for place in range(count))
                ordered = best.nodes + np.array([spares_of(useful, int(n), quote) for n in best.nodes], dtype=np.int64)
                fabric = np.array([_fabric_w(setting, kind, int(n)) for n in ordered])
                power = run_power(ordered, watts, fabric)
                pieces.append((best.nodes, ordered, time, rent_cost(ordered, quote, time), power, best.nodes + simple / 64))
    arrays = [np.concatenate([p[i] for p in pieces]) if pieces else np.zeros(0) for i in range(6)]
    return Table(
        setting, groups, tuple(rows), arrays[0].astype(np.int64), arrays[1].astype(np.int64), *arrays[2:],
        counts=counts, refused=refused,
    )  # fmt: skip


def _fabric_w(setting: Setting, kind: Kind, nodes: int) -> float:
    return fabric_of(kind.node, nodes, setting.oversubscription, setting.parts).power_w or 0.0
