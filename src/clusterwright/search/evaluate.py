"""Evaluate every legal layout on one kind of node, and keep the best for every number of nodes.

For one kind of node and one number of nodes, rent, power and training time all grow with the step time (or do not
depend on the layout at all). So the fastest layout that fits is the best for every offer and every constraint, and
keeping only it loses no optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.communication import FULL_SHARDS
from clusterwright.estimators.cost import Quote, rent_cost
from clusterwright.estimators.goodput import estimate_goodput
from clusterwright.estimators.grid import WORDS
from clusterwright.estimators.storage import checkpoint_bytes
from clusterwright.estimators.training import USABLE_MEMORY, Job, Layouts, run
from clusterwright.laws.reliability import job_mtbf
from clusterwright.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clusterwright.hardware import FailureRates
    from clusterwright.measurement import Calibration
    from clusterwright.model import Model
    from clusterwright.search.propose import Space
    from clusterwright.workload import Training

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

BLOCK = 16_384
"""Layouts evaluated at once: the arrays of a block stay in the processor's cache, and memory far below 2 GB."""
BEHIND = 600.0
"""A checkpoint is on storage this long after it was taken, where the plan chooses the storage. [s]"""
BEHIND_SHARE = 0.01
"""Or within this share of the mean time between failures, where that is shorter. [1]"""
TIE = 0.01
"""Times and costs within this share are equal: the simpler layout, and the fewer nodes, are taken. Where the estimates
of two layouts of a published job differ by less, the one estimated quicker was quicker in half of the cases. [1]"""
ANOTHER_FRAMEWORK = 1.05
"""What another framework than the first must gain to be taken, as a factor on its time: the estimates of two stacks are
no surer against one another, and most published runs are the first one's. [1]"""
COLUMNS = ("step_time_s", "low_s", "high_s", "memory_bytes", "mfu", "exposed_communication_s")


@dataclass(frozen=True)
class Useful:
    """What failures leave of the time, by number of nodes. Arrays of shape (largest number of nodes + 1,)."""

    goodput: Floats
    spares: Integers
    interval_s: Floats
    write_bytes_per_s: Floats
    checkpoint_bytes: float


@dataclass(frozen=True)
class Best:
    """The best layout for every number of nodes. Arrays of shape (n,)."""

    layouts: Layouts
    nodes: Integers
    columns: dict[str, Floats]
    fits: int
    too_large: int
    """Legal layouts that do not fit in memory."""
    least_memory_bytes: float
    """Of all legal layouts; infinite when there are none."""
    least: Layout | None
    """The layout of the least memory."""
    least_software: int
    """Place of its framework and precision."""
    software: Integers
    """Place of each layout's framework and precision among those that were tried."""

    def layout(self, row: int, precision: str) -> Layout:
        """One of the layouts as a noun."""
        return layout_of(self.layouts, row, precision)


def layout_of(layouts: Layouts, row: int, precision: str) -> Layout:
    """One row of the arrays as a noun."""
    names = {f.name: int(getattr(layouts, f.name)[row]) for f in fields(layouts)}
    named = {name: words[names[name]] for name, words in WORDS.items()}
    return Layout.model_validate({**names, **named, "precision": precision})


def saved_bytes(model: Model, training: Training) -> float:
    """Size of one checkpoint [B]: the whole training state, or that of the adapters."""
    trained = float(model.parameters)
    if training.method != "full":
        # A pair of adapters of this rank on each of the seven projections of a layer, input and output.
        trained = 14.0 * training.lora_rank * model.hidden * model.layers
    return float(checkpoint_bytes(trained))


def useful_time(
    nodes: Integers, accelerators_a_node: int, size: float, rates: FailureRates, write_bytes_per_s: float | None
) -> Useful:
    """Goodput, spares and storage for some numbers of nodes, as tables indexed by the number of nodes.

    Args:
        nodes: Distinct numbers of nodes. [1], shape (n,)
        accelerators_a_node: [1]
        size: Of one checkpoint. [B]
        rates: How often things fail.
        write_bytes_per_s: Of the storage that is there; none: enough to write behind the job in `BEHIND`. [B/s]
    """
    if not len(nodes):
        nothing = np.zeros(0)
        return Useful(nothing, nothing.astype(np.int64), nothing, nothing, size)
    count = nodes * accelerators_a_node
    behind = np.minimum(BEHIND_SHARE * job_mtbf(count, rates.mtbf_s), BEHIND)
    write = size / behind if write_bytes_per_s is None else np.full(len(nodes), write_bytes_per_s)
    found = estimate_goodput(count, size, write, rates)
    length = int(nodes.max(initial=0)) + 1

    def table(values: Floats | Integers) -> Floats:
        whole = np.zeros(length)
        whole[nodes] = values
        return whole

    return Useful(
        goodput=table(found.goodput),
        spares=table(found.spares).astype(np.int64),
        interval_s=table(found.checkpoint_interval_s),
        write_bytes_per_s=table(write),
        checkpoint_bytes=size,
    )


def best_by_nodes(
    job: Job, space: Space, useful: Useful, quote: Quote, steps: float, calibration: Calibration | None
) -> Best:
    """Evaluate all layouts in blocks; memory, step time, training time and cost of each exist as array elements.

    Args:
        job: Model, node and software.
        space: The legal layouts.
        useful: Goodput by number of nodes.
        quote: The cheapest, for the cost of every candidate.
        steps: Optimizer steps of the run. [1]
        calibration: Factors fitted to the user's own runs.
    """
    length = len(useful.goodput)
    quickest, kept, fits, failed = np.full(length, np.inf), [], 0, 0
    least: tuple[float, Layout | None] = (np.inf, None)
    limit = USABLE_MEMORY * job.accelerator.memory_bytes
    for start in range(0, len(space.layouts.tp), BLOCK):
        part = _slice(space.layouts, slice(start, start + BLOCK))
        for recompute in space.recomputes:
            part = replace(part, recompute=np.full_like(part.tp, recompute))
            found = run(job, part, calibration)
            nodes = part.accelerators // job.node.accelerators
            time = steps * found.step_time_s / useful.goodput[nodes]
            cost = rent_cost(nodes + useful.spares[nodes], quote, time)
            ok = (found.memory_bytes <= limit) & np.isfinite(cost)
            lowest = int(np.argmin(found.memory_bytes))
            if found.memory_bytes[lowest] < least[0]:
                least = (float(found.memory_bytes[lowest]), layout_of(part, lowest, job.precision))
            fits, failed = fits + int(ok.sum()), failed + int((~ok).sum())
            np.minimum.at(quickest, nodes[ok], found.step_time_s[ok])
            near = np.flatnonzero(ok & (found.step_time_s <= quickest[nodes] * (1 + TIE)))
            columns = {name: getattr(found, name)[near] for name in COLUMNS}
            kept.append((_slice(part, near), nodes[near], columns))
            # Recomputing takes time: what fits does not recompute more.
            part = _slice(part, np.flatnonzero(~ok))
            if not len(part.tp):
                break
    layouts, nodes, columns = _joined(kept, space.layouts)
    chosen = pick(columns["step_time_s"], complexity(layouts, job.model.layers), nodes)
    return Best(
        layouts=_slice(layouts, chosen),
        nodes=nodes[chosen],
        columns={n: v[chosen] for n, v in columns.items()},
        fits=fits,
        too_large=failed,
        least_memory_bytes=least[0],
        least=least[1],
        least_software=0,
        software=np.zeros(len(chosen), dtype=np.int64),
    )


def best_of(several: list[Best], handicaps: Sequence[float], layers: int) -> Best:
    """The best of every number of nodes over several kinds of software.

    Args:
        several: One for each.
        handicaps: Factors on their times that only the choice knows. [1]
        layers: Of the model. [1]
    """
    if len(several) == 1:
        return several[0]
    layouts = Layouts(*(np.concatenate([getattr(b.layouts, f.name) for b in several]) for f in fields(Layouts)))
    nodes = np.concatenate([b.nodes for b in several])
    columns = {name: np.concatenate([b.columns[name] for b in several]) for name in COLUMNS}
    software = np.repeat(np.arange(len(several)), [len(b.nodes) for b in several])
    chosen = pick(columns["step_time_s"] * np.array(handicaps)[software], complexity(layouts, layers), nodes)
    least = min(range(len(several)), key=lambda i: several[i].least_memory_bytes)
    return Best(
        layouts=_slice(layouts, chosen),
        nodes=nodes[chosen],
        columns={name: values[chosen] for name, values in columns.items()},
        fits=sum(b.fits for b in several),
        too_large=sum(b.too_large for b in several),
        least_memory_bytes=several[least].least_memory_bytes,
        least=several[least].least,
        least_software=least,
        software=software[chosen],
    )


def pick(time: Floats, complexity: Floats, group: Integers) -> Integers:
    """Of every group the simplest member within `TIE` of its quickest, and the quickest of those.

    Args:
        time: [s], shape (n,)
        complexity: [1], shape (n,)
        group: Small numbers from 0. [1], shape (n,)

    Returns:
        One index for every group that has a member, in the order of the groups.

    >>> pick(np.array([1.0, 1.01, 2.0, 3.0]), np.array([5.0, 2.0, 1.0, 0.0]), np.array([0, 0, 0, 1])).tolist()
    [1, 3]
    """
    quickest = np.full(int(group.max(initial=-1)) + 1, np.inf)
    np.minimum.at(quickest, group, time)
    near = np.flatnonzero(time <= quickest[group] * (1 + TIE))
    order = near[np.lexsort((time[near], complexity[near], group[near]))]
    return order[np.diff(group[order], prepend=-1) > 0]


def _joined(
    kept: list[tuple[Layouts, Integers, dict[str, Floats]]], empty: Layouts
) -> tuple[Layouts, Integers, dict[str, Floats]]:
    """What the blocks kept, in one row."""
    if not kept:
        return _slice(empty, slice(0, 0)), np.zeros(0, dtype=np.int64), {n: np.zeros(0) for n in COLUMNS}
    layouts = Layouts(*(np.concatenate([getattr(k[0], f.name) for k in kept]) for f in fields(Layouts)))
    columns = {n: np.concatenate([k[2][n] for k in kept]) for n in COLUMNS}
    return layouts, np.concatenate([k[1] for k in kept]), columns


def complexity(layouts: Layouts, layers: int) -> Floats:
    """How many things a layout makes a person understand: doublings of every degree, uneven stages, recomputing.

    Args:
        layouts: shape (n,).
        layers: Of the model. [1]

    Returns:
        [1], shape (n,).

    >>> import numpy as np
    >>> one, two = np.array([1]), np.array([2])
    >>> plain = Layouts(one, one, one, one, one, two, one, two, 0 * one, 0 * one)
    >>> split = Layouts(two, one, one, one, one, one, one, two, 0 * one, 0 * one)
    >>> bool((complexity(plain, 8) < complexity(split, 8)).all())
    True
    """
    degrees = layouts.tp * layouts.cp * layouts.pp * layouts.vpp * layouts.ep
    uneven = layers % (layouts.pp * layouts.vpp) != 0
    sharded = 0.25 * (layouts.sharding != 0) + 0.25 * np.isin(layouts.sharding, FULL_SHARDS)
    return np.asarray(np.log2(degrees) + uneven + 0.5 * layouts.recompute + sharded)


def _slice(layouts: Layouts, part: slice | Integers) -> Layouts:
    return Layouts(*(getattr(layouts, f.name)[part] for f in fields(layouts)))
