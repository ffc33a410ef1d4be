"""All runs of some tables, measured against estimated: by family, by source."""

from __future__ import annotations

import csv
import io
import statistics
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.drawing.scatter import Panel
from clusterwright.errors import InputError
from clusterwright.estimators.observed import Scored, score
from clusterwright.files import read_text
from clusterwright.measurement import Calibration, TrainingRun, check_columns, read_run
from clusterwright.validation import effects, ranking, residuals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from clusterwright.estimators.efficiency import Efficiency
    from clusterwright.estimators.observed import Known
    from clusterwright.validation.bands import Worsened


@dataclass(frozen=True)
class Scoreboard:
    """All runs of some tables: scored, or skipped with the reason."""

    rows: int
    scored: tuple[Scored, ...]
    skipped: tuple[tuple[str, str], ...]
    worsened: tuple[Worsened, ...] | None = None
    """Bands that no longer hold; none where the runs or the efficiencies are not the shipped ones."""

    def only(self, split: str) -> Scoreboard:
        """The runs of one split alone."""
        return replace(self, scored=tuple(item for item in self.scored if item.run.text("split") == split))

    def groups(self, quantity: str = "step", *, by: str = "family") -> list[dict[str, Any]]:
        """Errors by family (or source_group), largest group first."""
        errors: dict[str, list[float]] = defaultdict(list)
        for item in self.scored:
            if pair := pair_of(item, quantity):
                errors[item.run.text(by) or "-"].append(pair[1] / pair[0] - 1)
        return [
            {
                by: name,
                "n": len(e),
                "median_abs_error": statistics.median(map(abs, e)),
                "p90_abs_error": float(np.quantile(np.abs(e), 0.9)),
                "bias": statistics.median(e),
            }
            for name, e in sorted(errors.items(), key=lambda item: -len(item[1]))
        ]

    def source_weighted(self, quantity: str = "step") -> float | None:
        """Median over the sources of each source's median absolute error."""
        medians = [g["median_abs_error"] for g in self.groups(quantity, by="source_group")]
        return statistics.median(medians) if medians else None

    def coverage(self) -> float | None:
        """Share of the measured step times inside the 80% interval."""
        inside = [s.low_s <= m <= s.high_s for s in self.scored if (m := s.run.number("step_time_s"))]
        return sum(inside) / len(inside) if inside else None

    def coverage_by_split(self) -> dict[str, float]:
        """`coverage` of the runs that were fitted, and of those that were not."""
        splits = sorted({item.run.text("split") for item in self.scored} - {""})
        return {split: share for split in splits if (share := self.only(split).coverage()) is not None}

    def jobs(self) -> list[ranking.Ranked]:
        """How well the layouts of each job are ranked."""
        return ranking.rank(self.scored)

    def effects(self) -> list[effects.Effect]:
        """What single changes did, measured and estimated."""
        return effects.effects(self.scored)

    def residuals(self) -> list[residuals.Residual]:
        """What the steps of each source are made of, the worst source first."""
        return residuals.residuals(self.scored)

    def panels(self) -> list[Panel]:
        """What to draw: measured and estimated step times and peak memories, by source."""
        return [_panel(self.scored, *what) for what in (("step", "Step time", "s"), ("memory", "Peak memory", "GiB"))]

    def document(self, *, with_ranking: bool = False) -> dict[str, Any]:
        """The scoreboard as JSON."""
        held = {} if self.worsened is None else {"worsened": [str(one) for one in self.worsened]}
        jobs = {"jobs": ranking.documents(self.jobs())} if with_ranking else {}
        return {
            "rows": self.rows,
            "scored": len(self.scored),
            "skipped": [{"id": i, "reason": r} for i, r in self.skipped],
            "results": [s.document() for s in self.scored],
            "groups": self.groups(),
            "memory_groups": self.groups("memory"),
            "source_weighted_median_abs_error": self.source_weighted(),
            "interval_coverage": self.coverage(),
            "interval_coverage_by_split": self.coverage_by_split(),
            "effects": effects.documents(self.effects()),
            "residuals": residuals.documents(self.residuals()),
            **jobs,
            **held,
        }


def _panel(scored: Iterable[Scored], quantity: str, title: str, unit: str) -> Panel:
    dots: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for item in scored:
        if pair := pair_of(item, quantity):
            dots[item.run.text("source_group") or "-"].append(pair)
    return Panel(title, unit, dict(dots))


def pair_of(item: Scored, quantity: str) -> tuple[float, float] | None:
    """Measured and estimated step time [s], or peak memory [GiB]; none where it was not measured."""
    measured = item.run.number("step_time_s") if quantity == "step" else item.measured_memory_gib
    return (measured, item.step_s if quantity == "step" else item.memory_gib) if measured else None


def validate(
    paths: Iterable[Path | str],
    known: Known,
    calibration: Calibration | None = None,
    efficiency: Efficiency | None = None,
) -> Scoreboard:
    """Score every run of some CSV tables.

    Raises:
        InputError: a table is missing, unreadable, or lacks a column.
    """
    count, runs, unread = read_tables(paths)
    scored, skipped = score(runs, known, calibration, efficiency)
    return Scoreboard(count, tuple(scored), (*unread, *skipped))


def read_tables(paths: Iterable[Path | str]) -> tuple[int, list[TrainingRun], list[tuple[str, str]]]:
    """The runs of some CSV tables: how many rows, those that can be read, and why the others cannot.

    Raises:
        InputError: a table is missing, unreadable, or lacks a column.
    """
    rows = [row for path in paths for row in _rows(path)]
    runs, skipped = [], []
    for row in rows:
        observed = read_run(row)
        if isinstance(observed, str):
            skipped.append((row.get("id") or "-", observed))
        else:
            runs.append(observed)
    return len(rows), runs, skipped


def _rows(path: Path | str) -> Iterator[dict[str, str | None]]:
    reader = csv.DictReader(io.StringIO(read_text(path)))
    try:
        check_columns(list(reader.fieldnames or []), str(path))
        yield from reader
    except csv.Error as error:
        msg = f"{path}: line {reader.line_num}: not a CSV table ({error})"
        raise InputError(msg) from None
