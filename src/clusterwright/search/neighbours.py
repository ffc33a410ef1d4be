"""Why this layout: what the others on the same accelerators would do."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.training import RECOMPUTES, USABLE_MEMORY, Layouts, run
from clusterwright.search.evaluate import TIE, layout_of
from clusterwright.search.propose import Limits, legal_layouts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from clusterwright.layout import Layout
    from clusterwright.search.candidate import Setting, Software
    from clusterwright.search.offers import Kind

    Floats = NDArray[np.float64]

NAMES = {"tp": "tensor parallelism", "cp": "context parallelism", "pp": "a pipeline", "ep": "expert parallelism"}
MOST = 300_000
"""Layouts that are looked at again for the sake of words."""


def layout_reasons(setting: Setting, kind: Kind, layout: Layout, pins: Mapping[str, int | str]) -> tuple[str, ...]:
    """What the parts of a layout are good for, and the next best that splits the model in another way.

    Args:
        setting: Of the search.
        kind: Of node.
        layout: The chosen one.
        pins: Choices that are fixed.
    """
    job = setting.job(kind)
    every = _every(setting, kind, layout.accelerators, pins)
    if not 1 < len(every.tp) <= MOST:
        return ()
    found, ours = run(job, every, setting.calibration), run(job, Layouts.of(layout), setting.calibration)
    fits = found.memory_bytes <= USABLE_MEMORY * kind.accelerator.memory_bytes
    ratio = np.where(fits, found.step_time_s / ours.step_time_s[0], np.inf)
    parts = [*_without(layout, every, ratio), *_next(layout, every, ratio)]
    world = "one accelerator" if layout.accelerators == 1 else f"{layout.accelerators:,} accelerators"
    count = f"of {len(fits):,} layouts of {world} {int(fits.sum()):,} fit"
    return ("; ".join((count, *parts)),)


def software_reasons(
    setting: Setting, kind: Kind, layout: Layout, software: tuple[Software, ...], pins: Mapping[str, int | str]
) -> tuple[str, ...]:
    """The framework and the precision of a choice against the others that were tried, on the same accelerators.

    Args:
        setting: Of the search.
        kind: Of node.
        layout: The chosen one.
        software: The chosen one first, then all that were tried.
        pins: Choices that are fixed.
    """
    ours = software[0]
    own = run(setting.under(ours).job(kind), Layouts.of(layout), setting.calibration).step_time_s[0]
    parts = []
    for other in software[1:]:
        if other == ours:
            continue
        under = setting.under(other)
        every = _every(under, kind, layout.accelerators, pins)
        if len(every.tp) > MOST:
            continue
        found = run(under.job(kind), every, setting.calibration)
        fits = found.memory_bytes <= USABLE_MEMORY * kind.accelerator.memory_bytes
        best = _best(np.where(fits, found.step_time_s / own, np.inf))
        best = {"none is legal": "has no legal layout", "none fits": "does not fit"}.get(best, best)
        parts.append(f"{other.framework} in {other.precision} {best}")
    if not parts:
        return ()
    return (f"{ours.framework} in {ours.precision}, on these accelerators at their best: " + ", ".join(parts),)


def _every(setting: Setting, kind: Kind, accelerators: int, pins: Mapping[str, int | str]) -> Layouts:
    """Every legal layout of so many accelerators, with every recomputing."""
    node, pins = kind.node, {**pins, "accelerators": accelerators}
    limits = Limits(node.accelerators, node.scale_up_domain, accelerators, kind.max_nodes, pins)
    space = legal_layouts(setting.model, setting.training, limits)
    several = [replace(space.layouts, recompute=np.full_like(space.layouts.tp, code)) for code in space.recomputes]
    return Layouts(*(np.concatenate([getattr(one, f.name) for one in several]) for f in fields(Layouts)))


def _without(layout: Layout, every: Layouts, ratio: Floats) -> Iterator[str]:
    """What the best layout without each part would do."""
    for axis, name in NAMES.items():
        if getattr(layout, axis) > 1:
            yield f"without {name} {_best(ratio[getattr(every, axis) == 1])}"
    if layout.recompute != "none":
        less = every.recompute < RECOMPUTES.index(layout.recompute)
        yield f"with less recomputing {_best(ratio[less])}"


def _best(ratio: Floats) -> str:
    if not len(ratio):
        return "none is legal"
    return _gap(float(ratio.min())) if np.isfinite(ratio.min()) else "none fits"


def _gap(ratio: float) -> str:
    return f"{ratio - 1:+.1%}" + (", a tie" if abs(ratio - 1) <= TIE else "")


def _next(layout: Layout, every: Layouts, ratio: Floats) -> Iterator[str]:
    alike = np.ones(len(ratio), dtype=bool)
    for axis in NAMES:
        alike &= getattr(every, axis) == getattr(layout, axis)
    other = np.where(alike, np.inf, ratio)
    if np.isfinite(other).any():
        place = int(np.argmin(other))
        one = layout_of(every, place, layout.precision)
        degrees = " ".join(f"{a} {getattr(one, a)}" for a in (*NAMES, "dp") if getattr(one, a) > 1) or "none"
        yield f"the quickest that splits otherwise is {degrees} ({_gap(float(other[place]))})"
