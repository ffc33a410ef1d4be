"""Fit the shipped efficiency factors to published runs: few parameters with names, fitted once, weighed by source.

    python calibration/fit_efficiency.py RUNS.csv [--passes N]

The kernels' own curves come from measured tables (calibration/fit_kernels.py) and stay as they are. Only rows whose
``split`` is ``fit`` are read. A coordinate search minimises the mean over sources of the mean
absolute log error of the step time (an error over 60% counts as 60%), with a prior that holds every parameter near
its first value. Writes src/clusterwright/estimators/efficiency.toml in place, comments kept.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import tomlkit

from clusterwright.catalog import load
from clusterwright.estimators.efficiency import Efficiency
from clusterwright.validation import validate

FILE = Path(__file__).parent.parent / "src" / "clusterwright" / "estimators" / "efficiency.toml"
CAP = 0.6
PRIOR = 0.001
PRIOR_WIDTH = 0.3
"""Change of a parameter's logarithm that costs one unit of the prior."""
HALF_WEIGHT = {"ultrascale"}
"""Sources whose rows are a sweep of deliberately bad layouts."""
UNSEEN = 0.18
"""Spread of a stack that no fitted row has [1]."""
HELD = {("blackwell", "bf16"), ("hopper", "fp4"), ("ampere", "fp8"), ("ampere", "fp4")}
"""Factors that no rows, or rows of one machine only, would set: B200s measured by two sources differ by 1.6."""
BOUNDS = {"sustained": (0.4, 1.3), "hidden": (0.0, 0.98)}


def parameters(document: Any, seen: set[str]) -> list[tuple[Any, ...]]:  # noqa: ANN401 - a TOML document
    """Paths of everything that is fitted; of stacks, those that a row was run with."""
    paths: list[tuple[Any, ...]] = [("law", k) for k in ("softmax_passes", "straggle", "elementwise")]
    for name in ("ampere", "hopper", "blackwell"):
        paths += [
            ("architecture", name, kind, "sustained")
            for kind in ("bf16", "fp8", "fp4", "attention", "attention_2")
            if (name, kind) not in HELD
        ]
    paths += [("fabric", k, "out") for k in ("infiniband", "roce")]
    for i, stack in enumerate(document["stack"]):
        if stack["name"] not in seen:
            continue
        paths += [("stack", i, k) for k in ("factor", "host", "step")]
        paths += [("stack", i, "pipeline_host")] if "pipeline_host" in document["stack"][i] else []
        paths += [("stack", i, "hidden", k) for k in ("dp", "tp", "ep", "pp")]
    return paths


def change(document: Any, path: tuple[Any, ...], factor: float) -> Any:  # noqa: ANN401 - a TOML document
    """The value before, having scaled what is at ``path`` (shares hidden move by their distance from one)."""
    place = document
    for key in path[:-1]:
        place = place[key]
    before = place[path[-1]]
    value = float(before)
    value = 1 - (1 - value) / factor if "hidden" in path else value * factor
    low, high = BOUNDS.get("hidden" if "hidden" in path else str(path[-1]), (0.0, math.inf))
    place[path[-1]] = float(f"{min(max(value, low), high):.4g}")
    return before


def restore(document: Any, path: tuple[Any, ...], value: Any) -> None:  # noqa: ANN401 - a TOML document
    """Put a value back."""
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value


def loss(document: Any, table: str, catalogue: Any) -> float:  # noqa: ANN401 - a TOML document, a catalogue
    """Mean over sources of the mean absolute log error."""
    board = validate([table], catalogue, efficiency=Efficiency.model_validate(document.unwrap()))
    errors = defaultdict(list)
    for item in board.scored:
        measured = item.run.number("step_time_s")
        if measured:
            errors[item.run.text("source_group")].append(min(abs(math.log(item.step_s / measured)), CAP))
    weight = {s: 0.5 if s in HALF_WEIGHT else 1.0 for s in errors}
    return sum(weight[s] * sum(e) / len(e) for s, e in errors.items()) / sum(weight.values())


def descend(
    document: Any,  # noqa: ANN401 - a TOML document
    path: tuple[Any, ...],
    direction: float,
    best: float,
    context: tuple[Any, ...],
) -> tuple[float, int]:
    """Move one parameter in one direction while it pays; the loss reached, and the moves made."""
    table, catalogue, moved = context
    for tries in range(5):
        before = change(document, path, math.exp(direction))
        old, new = PRIOR * moved[path] ** 2, PRIOR * (moved[path] + direction / PRIOR_WIDTH) ** 2
        try:
            found = loss(document, table, catalogue)
        except ValueError:
            found = math.inf
        if found + new >= best + old - 1e-6:
            restore(document, path, before)
            return best, tries
        best, moved[path] = found, moved[path] + direction / PRIOR_WIDTH
    return best, 5


def set_spreads(document: Any, table: str, catalogue: Any) -> None:  # noqa: ANN401 - a TOML document, a catalogue
    """Set each stack's spread so that 80% of the fitted rows lie in its interval, widened by what sources differ."""
    efficiency = Efficiency.model_validate(document.unwrap())
    board = validate([table], catalogue, efficiency=efficiency)
    errors, medians = defaultdict(list), defaultdict(list)
    for item in board.scored:
        if measured := item.run.number("step_time_s"):
            error = math.log(item.step_s / measured)
            errors[efficiency.stack_of(item.run.text("framework") or "any", item.run.year).name].append(abs(error))
            medians[item.run.text("source_group")].append(error)
    between = statistics.pstdev([statistics.median(e) for s, e in medians.items() if s not in HALF_WEIGHT])
    for stack in document["stack"]:
        found = sorted(errors.get(stack["name"], []))
        within = found[int(0.8 * (len(found) - 1))] / 1.2816 if found else UNSEEN
        stack["spread"] = round(math.hypot(within, between), 3)


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description="Fit the shipped efficiency curves to published runs.")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--passes", type=int, default=3)
    arguments = parser.parse_args()
    rows = [r for r in csv.DictReader(arguments.runs.open(encoding="utf-8")) if r["split"] == "fit"]
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="", encoding="utf-8", delete=False) as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    document = tomlkit.parse(FILE.read_text(encoding="utf-8"))
    efficiency = Efficiency.model_validate(document.unwrap())
    seen = {efficiency.stack_of(r["framework"] or "any", float((r["source_date"] or "2026")[:4])).name for r in rows}
    catalogue, moved, step = load(), defaultdict(float), 0.15
    best = loss(document, file.name, catalogue)
    print(f"start {best:.4f}")
    for _ in range(arguments.passes):
        for path in parameters(document, seen):
            for direction in (step, -step):
                best, tries = descend(document, path, direction, best, (file.name, catalogue, moved))
                if tries:
                    break
        step /= 1.7
        print(f"step {step:.3f} loss {best:.4f}", flush=True)
        set_spreads(document, file.name, catalogue)
        FILE.write_text(tomlkit.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
