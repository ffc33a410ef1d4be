"""The errors that may not grow: bands over the published runs that were never fitted, in `bands.toml`.

A band is only ever tightened, by `python calibration/tighten_bands.py`.
"""

from __future__ import annotations

import functools
import math
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

import tomlkit

from clusterwright.validation.ranking import rank, summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusterwright.validation.scoreboard import Scoreboard

FILE = "bands.toml"
ROOM = 1e-3
"""A band is the figure rounded up to this: room for the last digits of another processor."""
LEAST = 10
"""Runs that a family must have to be held by itself."""
INTERVAL = (0.75, 0.85)
"""Share of the runs never fitted that the 80% interval must hold."""
Figures = dict[str, dict[str, float]]
"""By table of the file, by name."""


@dataclass(frozen=True)
class Worsened:
    """A band that no longer holds."""

    band: str
    limit: float
    figure: float | None
    """None: no run of it is scored any more."""

    def __str__(self) -> str:
        """One line for people."""
        if self.figure is None:
            return f"{self.band}: no run is scored any more"
        return f"{self.band}: {self.figure:.2%}, the band is {self.limit:.1%}"


def figures(board: Scoreboard) -> Figures:
    """Everything that is held, of the runs never fitted."""
    checked = board.only("check")
    regret = {group["nodes"]: group["mean_pick_regret"] for group in summarise(rank(checked.scored))}
    return {
        "step-by-source": _medians(checked, "step", "source_group"),
        "step-by-family": _medians(checked, "step", "family", LEAST),
        "memory-by-source": _medians(checked, "memory", "source_group"),
        "pick-regret": regret,
    }


def _medians(board: Scoreboard, quantity: str, by: str, least: int = 1) -> dict[str, float]:
    groups = board.groups(quantity, by=by)
    return {group[by]: group["median_abs_error"] for group in groups if group["n"] >= least}


@functools.cache
def shipped() -> Mapping[str, Mapping[str, float]]:
    """The shipped bands (package data, read once)."""
    text = resources.files("clusterwright.validation").joinpath(FILE).read_text(encoding="utf-8")
    return tomllib.loads(text)


def judge(board: Scoreboard, held: Mapping[str, Mapping[str, float]]) -> tuple[Worsened, ...]:
    """Every band that no longer holds, and the interval where it holds too few or too many runs."""
    found = figures(board)
    broken = [
        Worsened(f"{table} {name}", limit, figure)
        for table, limits in held.items()
        for name, limit in limits.items()
        if (figure := found.get(table, {}).get(name)) is None or figure > limit
    ]
    coverage = board.only("check").coverage()
    low, high = INTERVAL
    if coverage is not None and not low <= coverage <= high:
        broken.append(Worsened("80% interval, share of runs in it", low if coverage < low else high, coverage))
    return tuple(broken)


def tighten(text: str, found: Figures) -> str:
    """The file of bands with each that can be tightened, and those that are new; none is loosened or dropped."""
    document = tomlkit.parse(text)
    for table, names in found.items():
        held = document.setdefault(table, tomlkit.table())
        for name, figure in sorted(names.items()):
            limit = round(math.ceil(figure / ROOM - 1e-9) * ROOM, 6)
            if name not in held or limit < held[name]:
                held[name] = limit
    return tomlkit.dumps(document)
