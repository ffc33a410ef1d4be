"""Fit the shipped efficiency factors to published runs: few parameters with names, fitted once, weighed by source.

    python calibration/fit_efficiency.py RUNS.csv [--passes N]

The kernels' own curves come from measured tables (calibration/fit_kernels.py) and stay as they are. Only rows whose
``split`` is ``fit`` are read. Minimises the mean over sources of the mean absolute log error of the step time (an
error over 60% counts as 60%), with a prior that holds every parameter near its first value: each pass takes the
derivatives of all errors, solves a weighted least-squares problem inside a trust region, and keeps the step where it
pays. Writes src/clusterwright/estimators/efficiency.toml in place, comments kept.
"""

from __future__ import annotations

import argparse
import csv
import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomlkit
from scipy.optimize import lsq_linear, minimize_scalar

from clusterwright.catalog import load
from clusterwright.estimators.efficiency import Efficiency
from clusterwright.estimators.training import INTERVAL_80
from clusterwright.laws.pipeline import blocking_messages
from clusterwright.laws.reliability import any_bad
from clusterwright.validation import validate

if TYPE_CHECKING:
    from clusterwright.estimators.observed import Scored

FILE = Path(__file__).parent.parent / "src" / "clusterwright" / "estimators" / "efficiency.toml"
CAP = 0.6
PRIOR = 0.001
PRIOR_WIDTH = 0.3
"""Change of a parameter's logarithm that costs one unit of the prior."""
HALF_WEIGHT = {"ultrascale"}
"""Sources whose rows are a sweep of deliberately bad layouts."""
STEP = 0.03
"""Change of a logarithm that derivatives are taken over."""
COVERED = 0.8
HALVINGS = 9
"""Of a stack's spread, until its interval holds that share of its runs."""
HELD = {
    ("blackwell", "bf16"),
    ("ampere", "bf16"),
    ("blackwell", "attention_2"),
    ("hopper", "fp4"),
    ("ampere", "fp8"),
    ("ampere", "fp4"),
    ("ampere", "attention"),
    ("NeMo and Megatron-Bridge", "factor"),
}
"""Factors that stay: no rows, or rows of one machine only, would set them (B200s measured by two sources differ by
1.6), kernel tables set them (two of three backends multiply large matrices 7-11% faster on an A100 than the curve,
which fits all sizes), or they are the unit of the others (the factor of NVIDIA's tuned recipes)."""
BOUNDS = {"sustained": (0.4, 1.3), "hidden": (0.0, 0.98), "out": (0.3, 1.0)}


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
        paths += [("stack", i, k) for k in ("factor", "host", "step") if (stack["name"], k) not in HELD]
        paths += [("stack", i, k) for k in ("pipeline_host", "tensor_hop", "gain", "gain_blocks") if k in stack]
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


class Fit:
    """The rows, and the errors of a document of factors."""

    def __init__(self, table: str, document: Any) -> None:  # noqa: ANN401 - a TOML document
        self.table, self.catalogue, self.document = table, load(), document
        self.weight = np.zeros(0)
        self.sources = self.stacks = np.array([], dtype=str)
        self.items: list[Scored] = []

    def errors(self) -> Any:  # noqa: ANN401 - array
        """Logarithm of estimated over measured step time, of every row with one; sets the rows' weights."""
        efficiency = Efficiency.model_validate(self.document.unwrap())
        scored = validate([self.table], self.catalogue, efficiency=efficiency).scored
        self.items = [item for item in scored if item.run.number("step_time_s")]
        runs = [item.run for item in self.items]
        self.sources = np.array([run.text("source_group") for run in runs])
        self.stacks = np.array([efficiency.stack_of(run.text("framework") or "any", run.year).name for run in runs])
        count = Counter(self.sources)
        share = {s: 0.5 if s in HALF_WEIGHT else 1.0 for s in count}
        self.weight = np.array([share[s] / count[s] for s in self.sources]) / sum(share.values())
        return np.array([math.log(item.step_s / (item.run.number("step_time_s") or 1.0)) for item in self.items])

    def loss(self, errors: Any, moved: Any) -> float:  # noqa: ANN401 - arrays
        """Mean over sources of the mean absolute error, and the prior."""
        return float(self.weight @ np.minimum(np.abs(errors), CAP) + PRIOR * np.sum((moved / PRIOR_WIDTH) ** 2))

    def derivatives(self, paths: list[tuple[Any, ...]], errors: Any) -> Any:  # noqa: ANN401 - arrays
        """Of every error in the logarithm of every parameter, (rows, parameters)."""
        columns = []
        for path in paths:
            before = change(self.document, path, math.exp(STEP))
            columns.append((self.errors() - errors) / STEP)
            restore(self.document, path, before)
        return np.stack(columns, axis=1)

    def step(self, jacobian: Any, errors: Any, moved: Any, reach: float, *, without: str = "") -> Any:  # noqa: ANN401 - arrays
        """Change of the parameters' logarithms: absolute errors as reweighted squares, capped ones left out."""
        rows = self.sources != without
        weight = self.weight * (np.abs(errors) < CAP) * rows / np.maximum(np.abs(errors), 0.02)
        root = np.sqrt(weight)[:, None]
        hold = math.sqrt(2 * PRIOR) / PRIOR_WIDTH
        matrix = np.vstack([root * jacobian, hold * np.eye(len(moved))])
        target = np.concatenate([-root[:, 0] * errors, -hold * moved])
        return lsq_linear(matrix, target, bounds=(-reach, reach)).x

    def left_out(self, paths: list[tuple[Any, ...]], errors: Any, moved: Any) -> dict[str, Any]:  # noqa: ANN401 - arrays
        """Errors of each source without it: the rest refitted, a stack that it alone ran taken for any other."""
        jacobian, kept, found = self.derivatives(paths, errors), self.document.as_string(), {}
        for source in sorted(set(self.sources) - HALF_WEIGHT):
            own = self.sources == source
            step = self.step(jacobian, errors, moved, 0.2, without=source)
            for path, by in zip(paths, step, strict=True):
                change(self.document, path, math.exp(by))
            alone = set(self.stacks[own]) - set(self.stacks[~own])
            other = self.document["stack"][-1]
            for stack in self.document["stack"]:
                if stack["name"] in alone:
                    stack.update({name: other[name] for name in ("factor", "host", "step", "hidden")})
            found[source] = self.errors()[own]
            self.document = tomlkit.parse(kept)
        return found


def set_stalls(fit: Fit) -> None:
    """Set how long messages stall, and the share of nodes that make them: jobs have stalls or have none."""
    for stack in fit.document["stack"]:
        if "stall" not in stack:
            continue
        nodes, each, whole = [], [], []
        for item, name in zip(fit.items, fit.stacks, strict=True):
            if name != stack["name"] or item.where is None:
                continue
            job, lay, at = item.where
            messages = float(blocking_messages(lay.micro_batches[at], lay.pp[at]))
            count = max(lay.accelerators[at] / job.node.accelerators, 1.0)
            more = (item.run.number("step_time_s") or 0.0) - item.step_s + item.parts["stalled messages"]
            if messages:
                each.append(more / messages)
                nodes.append(count)
            elif item.parts["stalled messages"]:
                whole.append(more)
        size, time = np.array(nodes), np.array(each)
        stalled = time > float(stack["stall"]) / 2

        def unlikely(share: float, size: Any = size, stalled: Any = stalled) -> float:  # noqa: ANN401 - arrays
            some = any_bad(size, share)
            return -float(np.log(np.where(stalled, some, 1 - some)).sum())

        stack["stall"] = float(f"{np.median(time[stalled]):.4g}")
        stack["stall_reduces"] = float(f"{max(np.median(whole), 0.0) / stack['stall']:.2g}") if whole else 0.0
        stack["stalling_nodes"] = float(f"{minimize_scalar(unlikely, bounds=(1e-4, 0.5), method='bounded').x:.3g}")


def set_spreads(fit: Fit, left_out: dict[str, Any]) -> None:
    """Set each stack's spread so that 80% of runs lie in its interval: its own, where it has been fitted.

    Where all its runs are of one source, another may be off as a source is that was left out and whose stack others
    ran too. Of a stack that was not fitted: what a source is off that was left out, each counted alike.
    """
    unseen = float(np.mean([np.quantile(np.abs(e), 0.8) for e in left_out.values()])) / INTERVAL_80
    print("left out:", {s: f"{np.median(np.abs(e)):.3f}" for s, e in left_out.items()}, f"spread {unseen:.3f}")
    sources = {name: set(fit.sources[fit.stacks == name]) for name in set(fit.stacks)}
    shared = {source for found in sources.values() if len(found) > 1 for source in found}
    between = float(np.mean([abs(np.median(left_out[source])) for source in sorted(shared & set(left_out))]))
    print(f"between sources of a stack: {between:.3f}")
    low, high = {s["name"]: 0.0 for s in fit.document["stack"]}, {s["name"]: 0.6 for s in fit.document["stack"]}
    for _ in range(HALVINGS):
        for stack in fit.document["stack"]:
            stack["spread"] = (low[stack["name"]] + high[stack["name"]]) / 2
        fit.errors()
        inside = np.array([i.low_s <= (i.run.number("step_time_s") or 0.0) <= i.high_s for i in fit.items])
        for name in set(fit.stacks):
            enough = inside[fit.stacks == name].mean() > COVERED
            (high if enough else low)[name] = (low[name] + high[name]) / 2
    for stack in fit.document["stack"]:
        found = sources.get(stack["name"], set())
        own = math.hypot(high[stack["name"]], between if len(found) == 1 else 0.0)
        stack["spread"] = round(own if found else unseen, 3)


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
    fit, paths, reach = Fit(file.name, document), parameters(document, seen), 0.2
    moved, errors = np.zeros(len(paths)), fit.errors()
    best = fit.loss(errors, moved)
    print(f"{len(errors)} rows, {len(paths)} parameters, loss {best:.4f}")
    for _ in range(arguments.passes):
        jacobian = fit.derivatives(paths, errors)
        for _ in range(4):
            step = fit.step(jacobian, errors, moved, reach)
            before = [change(document, path, math.exp(by)) for path, by in zip(paths, step, strict=True)]
            found = fit.errors()
            if (value := fit.loss(found, moved + step)) < best:
                best, errors, moved = value, found, moved + step
                break
            for path, value_before in zip(paths, before, strict=True):
                restore(document, path, value_before)
            reach /= 2
        print(f"reach {reach:.3f} loss {best:.4f}", flush=True)
    fit.errors()
    set_stalls(fit)
    errors = fit.errors()
    set_spreads(fit, fit.left_out(paths, errors, moved))
    FILE.write_text(tomlkit.dumps(fit.document), encoding="utf-8")


if __name__ == "__main__":
    main()
