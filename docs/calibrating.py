"""Write the table of reference/calibrate.md: ``python docs/calibrating.py``.

Ten runs of one stack, each left out of the fit to the other nine.
"""

from __future__ import annotations

import random
import statistics
from collections import defaultdict
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from clusterwright.calibration import Fit, calibrate
from clusterwright.catalog import load
from clusterwright.estimators.observed import score
from clusterwright.validation import read_tables

if TYPE_CHECKING:
    from clusterwright.measurement import TrainingRun

PAGE = Path(__file__).parent / "reference" / "calibrate.md"
MARKS = ("<!-- written by docs/calibrating.py -->\n", "<!-- end -->\n")
SOURCES = {"llmfoundry": "llm-foundry", "simumax": "SimuMax", "dgxc": "dgxc"}
RUNS = 10
LEAST = 20
"""Runs that a stack must have for ten to be drawn from it."""
DRAWS = 24


@dataclass(frozen=True)
class Stack:
    """One software stack on one accelerator, with what calibrating to ten of its runs gives, draw by draw."""

    source: str
    framework: str
    gpu: str
    runs: int
    fits: tuple[Fit, ...]
    others: tuple[float, ...]
    """Error of the runs that were not drawn, median of each draw."""


def stacks(draws: int = DRAWS, only: str = "") -> list[Stack]:
    """Every stack of the three sources with enough runs; or those of one source, or of one accelerator."""
    known = load()
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        _, runs, _ = read_tables([table])
    scored, _ = score([r for r in runs if r.text("source_group") in SOURCES and r.number("step_time_s")], known)
    groups: dict[tuple[str, str, str], list[TrainingRun]] = defaultdict(list)
    for run in (item.run for item in scored):
        groups[run.text("source_group"), run.text("framework"), run.text("gpu")].append(run)
    found = []
    for (source, framework, gpu), same in sorted(groups.items()):
        if len(same) >= LEAST and only in {"", source, gpu}:
            rng = random.Random(f"{source} {framework} {gpu}")
            drawn = [rng.sample(range(len(same)), RUNS) for _ in range(draws)]
            fits = [calibrate([same[i] for i in chosen], known) for chosen in drawn]
            others = []
            for fit, chosen in zip(fits, drawn, strict=True):
                rest, _ = score([r for i, r in enumerate(same) if i not in chosen], known, fit.calibration)
                others.append(statistics.median(abs(o.step_s / o.run.numbers["step_time_s"] - 1) for o in rest))
            found.append(Stack(source, framework, gpu, len(same), tuple(fits), tuple(others)))
    return found


def by_source(found: list[Stack]) -> dict[str, float]:
    """Median over the draws of a source of the median error of the runs left out."""
    errors: dict[str, list[float]] = defaultdict(list)
    for stack in found:
        errors[stack.source] += [fit.left_out for fit in stack.fits if fit.left_out is not None]
    return {source: statistics.median(each) for source, each in errors.items()}


def table(found: list[Stack]) -> str:
    """The table, and the line under it."""
    lines = [
        "| source | stack | accelerator | runs | before | left out | the other runs | interval before | left out |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for stack in found:
        before = statistics.median(fit.before for fit in stack.fits)
        left_out = statistics.median(fit.left_out or 0.0 for fit in stack.fits)
        others = statistics.median(stack.others)
        widths = [statistics.median(w or 0.0 for w in each) for each in (
            [fit.interval_before for fit in stack.fits], [fit.interval_left_out for fit in stack.fits]
        )]  # fmt: skip
        name = stack.framework.split(" (")[0]
        errors = f"{before:.1%} | **{left_out:.1%}** | {others:.1%}"
        interval = " | ".join(f"+-{width:.1%}" for width in widths)
        cells = f"{SOURCES[stack.source]} | {name} | {stack.gpu} | {stack.runs} | {errors} | {interval}"
        lines.append(f"| {cells} |")
    whole = ", ".join(f"{SOURCES[source]} {error:.1%}" for source, error in by_source(found).items())
    lines.append(f"\nRuns left out, median over all draws of a source: {whole}.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text(f"{before}{MARKS[0]}{table(stacks())}{MARKS[1]}{after}", encoding="utf-8")
