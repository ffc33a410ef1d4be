"""Effects of one change: what a change of the job did, measured in pairs of runs alike but for it, and estimated."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from clusterwright.estimators.observed import Scored
    from clusterwright.measurement import TrainingRun

ALIKE = (
    "source_group", "framework", "source_date", "model", "layers", "hidden", "ffn", "gated_mlp", "heads", "kv_heads",
    "vocab", "seq_len", "moe_experts", "moe_topk", "moe_ffn", "lora", "gpu", "gpus_per_node", "interconnect", "n_gpus",
    "precision", "tp", "cp", "pp", "vpp", "ep", "dp", "sharding", "mbs", "gbs", "recompute",
)  # fmt: skip
"""Columns in which the two runs of a pair are the same, but for those of the change."""
CLEAR = 0.02
"""A measured effect smaller than this may be the noise of two runs: its sign is not asked for."""


@dataclass(frozen=True)
class Change:
    """One thing that is changed: which pairs of runs show it."""

    name: str
    columns: tuple[str, ...]
    """What may differ between the two runs: the thing itself, and what follows from it."""
    shows: Callable[[TrainingRun, TrainingRun], bool]
    """Whether a pair, before and after, is one of this change."""


@dataclass(frozen=True)
class Effect:
    """What a change did to the accelerator-time of one sequence, over all pairs of runs that show it."""

    change: str
    pairs: int
    sources: int
    measured: float
    """Median of after / before - 1."""
    estimated: float
    clear: int
    """Pairs whose measured effect is beyond noise."""
    right_sign: float | None
    """Share of the clear ones whose estimated effect goes the same way; none without any."""
    median_abs_error: float
    """Median of the absolute of (estimated after / before) / (measured after / before) - 1."""


def _becomes(column: str, before: object, *after: object) -> Callable[[TrainingRun, TrainingRun], bool]:
    return lambda a, b: a.given(column) == before and b.given(column) in after


def _grows(column: str, factor: float) -> Callable[[TrainingRun, TrainingRun], bool]:
    return lambda a, b: b.number(column) == factor * (a.number(column) or float("nan"))


def _scales(a: TrainingRun, b: TrainingRun) -> bool:
    """At least eight times the accelerators, with as many sequences each."""
    few, many = a.number("n_gpus") or 0.0, b.number("n_gpus") or 0.0
    return many >= 8 * few > 0 and few * (b.number("gbs") or 0.0) == many * (a.number("gbs") or float("nan"))


_SCALE = ("n_gpus", "dp", "gbs", "interconnect")
CHANGES = (
    Change("recompute off to on", ("recompute",), _becomes("recompute", "none", "selective", "full")),
    Change("tensor parallel 4 to 8", ("tp", "dp"), lambda a, b: a.number("tp") == 4 and b.number("tp") == 8),  # noqa: PLR2004
    Change("global batch doubled", ("gbs",), _grows("gbs", 2)),
    Change("micro-batch doubled", ("mbs",), _grows("mbs", 2)),
    Change("bf16 to fp8", ("precision",), _becomes("precision", "bf16", "fp8", "mxfp8")),
    Change("8 to 256 accelerators", _SCALE, lambda a, b: a.number("n_gpus") == 8 and b.number("n_gpus") == 256),  # noqa: PLR2004
    Change("8 times the accelerators or more, as many sequences each", _SCALE, _scales),
)


def effects(scored: Iterable[Scored]) -> list[Effect]:
    """Every change that at least one pair of runs shows."""
    rows = [item for item in scored if item.run.number("step_time_s")]
    values = [tuple(map(item.run.given, ALIKE)) for item in rows]
    found = []
    for change in CHANGES:
        kept = itemgetter(*(i for i, column in enumerate(ALIKE) if column not in change.columns))
        groups: dict[tuple[object, ...], list[Scored]] = defaultdict(list)
        for item, row in zip(rows, values, strict=True):
            groups[kept(row)].append(item)
        pairs = [pair for same in groups.values() for pair in _pairs(same, change)]
        if pairs:
            found.append(_effect(change, pairs))
    return found


def _pairs(same: Sequence[Scored], change: Change) -> Iterator[tuple[Scored, Scored]]:
    return ((a, b) for a in same for b in same if a is not b and change.shows(a.run, b.run))


def _effect(change: Change, pairs: Sequence[tuple[Scored, Scored]]) -> Effect:
    # a sequence's accelerator-time: runs of different batches and sizes can be held against each other
    each = np.array([_weight(b.run) / _weight(a.run) for a, b in pairs])
    measured = each * np.array([_measured(b.run) / _measured(a.run) for a, b in pairs])
    estimated = each * np.array([b.step_s / a.step_s for a, b in pairs])
    clear = np.abs(measured - 1) >= CLEAR
    same = ((measured > 1) == (estimated > 1))[clear]
    return Effect(
        change.name,
        len(pairs),
        len({a.run.text("source_group") for a, _ in pairs}),
        float(np.median(measured)) - 1,
        float(np.median(estimated)) - 1,
        int(clear.sum()),
        float(same.mean()) if same.size else None,
        float(np.median(np.abs(estimated / measured - 1))),
    )


def _weight(run: TrainingRun) -> float:
    return run.whole("n_gpus") / (run.number("gbs") or 1.0)


def _measured(run: TrainingRun) -> float:
    return run.number("step_time_s") or float("nan")


def documents(found: Iterable[Effect]) -> list[dict[str, Any]]:
    """The effects as JSON."""
    return [asdict(effect) for effect in found]
