"""Write recipes.md: what is planned for five models, and our layouts beside NVIDIA's: ``python docs/recipes.py``."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, fields
from datetime import date
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts, load_failure_rates
from clusterwright.estimators.grid import RECOMPUTES, SHARDINGS, Layouts
from clusterwright.estimators.observed import job_of
from clusterwright.estimators.training import USABLE_MEMORY, run
from clusterwright.search.choice import choose
from clusterwright.search.design import Known, Wish, largest, offered_by, setting_of, trainable
from clusterwright.search.evaluate import TIE, complexity, layout_of, pick
from clusterwright.search.propose import Limits, legal_layouts
from clusterwright.search.table import evaluate
from clusterwright.units import show_duration, show_money
from clusterwright.validation import validate
from clusterwright.workload import Training, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clusterwright.catalog import Catalogue
    from clusterwright.estimators.observed import Scored
    from clusterwright.layout import Layout
    from clusterwright.plan import Candidate

PAGE = Path(__file__).parent / "recipes.md"
TODAY = date(2026, 11, 9)
"""Of the newest offer: prices have an age, and the page must not change by itself."""
PLANNED = {
    "llama-3.1-8b": {"tokens": "1T", "sequence_length": 8192, "global_batch": 512},
    "llama-3.1-70b": {"tokens": "1.5T", "sequence_length": 8192, "global_batch": 512},
    "llama-3.1-405b": {"tokens": "3T", "sequence_length": 8192, "global_batch": 1536},
    "mixtral-8x7b": {"tokens": "1T", "sequence_length": 4096, "global_batch": 1024},
    "deepseek-v3": {"tokens": "3T", "sequence_length": 4096, "global_batch": 8192},
}
LIMITS = {"deadline": "60 days", "max_accelerators": 4096, "terms": ["on-demand", "spot"]}
SOURCES = ("dgxc", "mb", "nemo", "nemodoc")
"""NVIDIA's: DGX Cloud benchmarking recipes, Megatron-Bridge, NeMo."""
MODELS = ("Llama3-8B", "Llama3.1-8B", "Llama3-70B", "Llama3.1-70B", "Llama3.1-405B", "Mixtral", "DeepSeek", "Qwen3")
OTHERWISE = ("LoRA", "SFT", "proxy")
DEGREES = ("tp", "cp", "pp", "vpp", "ep", "dp", "micro_batch")
FEW = 2
"""Jobs of one model on one accelerator at one precision that are shown: the smallest and the largest."""
CLOSE = 0.03
"""Estimates of two layouts that differ by less are called as quick. [1]"""

HEAD = """# Plans beside recipes

Written by `python docs/recipes.py` from the shipped catalogue and the shipped published runs. Read it as a practitioner
would: are these layouts that people run, and where a plan differs from a published recipe for the same job on the same
accelerators, is it better, as good, or a mistake of the estimate?
"""
PLANS = """
## What is planned

Within 60 days on at most 4,096 accelerators, on demand or spot, in bf16 with Megatron, at the prices of {day}.

| model | batch | objective | cluster | offer | tp cp pp vpp ep dp | micro-batch, recompute | MFU | time | cost |
|---|--:|---|---|---|---|---|--:|--:|--:|"""
RECIPES = """
## The same jobs as NVIDIA's recipes

Every row is a job that NVIDIA published with its layout: the same accelerators, number, batch, sequence and precision.
`recipe` is the fastest published layout of that job, with its measured and its estimated step time; `pick` is what the
search takes for it (quickest legal layout that fits, ties of {tie:.0%} to the simpler) with its estimate, and how much
longer or shorter than the recipe's own estimate that is. Layouts are tp cp pp vpp ep dp / micro-batch / sharding /
recompute.

| job | recipe | measured | estimated | pick | estimated | against recipe |
|---|---|--:|--:|---|--:|--:|"""


@dataclass(frozen=True)
class Compared:
    """One published job: NVIDIA's layout and ours."""

    name: str
    theirs: Layout
    ours: Layout
    measured_s: float
    theirs_s: float
    ours_s: float
    fits: bool
    """Whether the recipe fits in memory by the estimate."""

    @property
    def gap(self) -> float:
        """Our pick's estimate over that of the recipe, less one [1]."""
        return self.ours_s / self.theirs_s - 1

    @property
    def splits(self) -> tuple[bool, ...]:
        """Which degrees of the model's split are the same."""
        return tuple(getattr(self.ours, d) == getattr(self.theirs, d) for d in ("tp", "cp", "pp", "ep"))


def plans(facts: Catalogue) -> Iterator[str]:
    """Rows of the first table."""
    known = Known(facts, load_fabric_parts(), load_failure_rates())
    for name, training in PLANNED.items():
        lines = {**training, "framework": "megatron"}
        document = {"model": {"name": name}, "training": lines, "constraints": LIMITS}
        wish = Wish(Workload.model_validate(document), facts.model(name), document, TODAY)
        setting = setting_of(wish, trainable(wish.workload), known)
        table = evaluate(setting, offered_by(wish, setting, known).kinds, largest(wish.workload), {})
        for objective in ("cost", "time", "balanced"):
            _, index = choose(table, wish.workload.constraints, objective)
            if index is not None:
                yield _plan(name, training["global_batch"], objective, table.candidate(index))


def _plan(name: str, batch: object, objective: str, one: Candidate) -> str:
    found, offer = one.estimate, one.offer
    price = f"{offer.provider}, {offer.term}, ${offer.usd_per_accelerator_hour:.2f}"
    layout = " ".join(str(getattr(one.layout, d)) for d in DEGREES[:-1])
    cells = (
        name, batch, objective, f"{one.accelerators:,} {one.accelerator}", price, layout,
        f"{one.layout.micro_batch}, {one.layout.recompute}", f"{found.mfu:.0%}", show_duration(found.train_time_s),
        show_money(found.cost_usd),
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def compared(facts: Catalogue) -> list[Compared]:
    """NVIDIA's jobs with our picks."""
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as runs:
        board = validate([runs], facts)
    jobs: dict[tuple[object, ...], list[Scored]] = defaultdict(list)
    for item in board.scored:
        one = item.run
        wanted = one.text("source_group") in SOURCES and one.number("step_time_s") and one.number("gbs")
        megatron = any(word in one.text("framework").lower() for word in ("megatron", "nemo"))
        named = one.text("model").startswith(MODELS) and not any(w in one.text("model") for w in OTHERWISE)
        if wanted and megatron and named and all(one.number(d) for d in ("tp", "pp", "dp")):
            jobs[_name(item), one.whole("gbs")].append(item)
    rows = [_compare(min(same, key=lambda i: i.run.number("step_time_s") or 0.0), facts) for same in jobs.values()]
    return sorted(_few([row for row in rows if row is not None]), key=lambda row: row.name)


def _name(item: Scored) -> str:
    one = item.run
    return f"{one.text('model')}, {one.whole('n_gpus'):5,} {one.text('gpu')}, {one.text('precision')}"


def _few(rows: Iterable[Compared]) -> Iterator[Compared]:
    """The smallest and the largest job of each model, accelerator and precision."""
    alike: dict[tuple[str, ...], list[Compared]] = defaultdict(list)
    for row in rows:
        model, cluster, precision = row.name.split(", ")
        alike[model, cluster.split()[-1], precision].append(row)
    for same in alike.values():
        same.sort(key=lambda row: (row.theirs.accelerators, row.theirs.global_batch))
        yield same[0]
        if len(same) >= FEW and same[-1].theirs.accelerators > same[0].theirs.accelerators:
            yield same[-1]


def _compare(item: Scored, facts: Catalogue) -> Compared | None:
    one = item.run
    job = job_of(one, facts)
    if isinstance(job, str):
        return None
    recompute, sharding = one.text("recompute"), one.text("sharding")
    theirs = Layouts(*(
        np.array([value])
        for value in (
            *(one.whole(d, 1) for d in ("tp", "cp", "pp", "vpp", "ep")), one.whole("dp"), one.whole("mbs", 1),
            one.whole("gbs"), SHARDINGS.index(sharding if sharding in SHARDINGS else "distopt"),
            RECOMPUTES.index(recompute if recompute in RECOMPUTES else "none"),
        )
    ))  # fmt: skip
    training = Training(
        tokens=1e12, sequence_length=job.sequence_length, global_batch=one.whole("gbs"), framework="megatron"
    )
    world = int(theirs.tp[0] * theirs.cp[0] * theirs.pp[0] * theirs.dp[0])
    limits = Limits(1, job.node.scale_up_domain, world, pins={"accelerators": world})
    space = legal_layouts(job.model, training, limits)
    every = _with_recomputing(space.layouts, space.recomputes)
    found, recipe = run(job, every), run(job, theirs)
    limit = USABLE_MEMORY * job.accelerator.memory_bytes
    fits = np.flatnonzero(found.memory_bytes <= limit)
    if not len(fits):
        return None
    plain = complexity(every, job.model.layers)[fits]
    best = int(fits[pick(found.step_time_s[fits], plain, np.zeros(len(fits), dtype=np.int64))[0]])
    return Compared(
        _name(item), layout_of(theirs, 0, job.precision), layout_of(every, best, job.precision),
        one.number("step_time_s") or 0.0, float(recipe.step_time_s[0]), float(found.step_time_s[best]),
        bool(recipe.memory_bytes[0] <= limit),
    )  # fmt: skip


def _with_recomputing(layouts: Layouts, codes: tuple[int, ...]) -> Layouts:
    columns = {f.name: np.tile(getattr(layouts, f.name), len(codes)) for f in fields(Layouts)}
    return Layouts(**{**columns, "recompute": np.repeat(np.array(codes), len(layouts.tp))})


def _row(row: Compared) -> str:
    recipe = _layout(row.theirs) + ("" if row.fits else " (does not fit by the estimate)")
    model, cluster, precision = row.name.split(", ")
    name = f"{model}, {cluster.strip()}, {precision}, batch {row.theirs.global_batch:,}"
    ours = "the same" if row.ours == row.theirs else _layout(row.ours)
    figures = (f"{row.measured_s:.2f} s", f"{row.theirs_s:.2f} s", ours, f"{row.ours_s:.2f} s", f"{row.gap:+.1%}")
    return "| " + " | ".join((name, recipe, *figures)) + " |"


def _layout(one: Layout) -> str:
    degrees = " ".join(str(getattr(one, d)) for d in DEGREES[:-1])
    return f"{degrees} / {one.micro_batch} / {one.sharding} / {one.recompute}"


WHY = {
    "tp": ("tensor parallelism", "Its messages are counted as overlapped by one share in every layout."),
    "cp": ("context parallelism", "The search takes it wherever it spares tensor parallelism or memory."),
    "pp": ("a pipeline", "Recipes keep one split over all sizes of a cluster; the search splits anew for each."),
    "ep": ("expert parallelism", "Dispatch is traded against memory; few published runs tell how well it overlaps."),
    "micro_batch": ("sequences in a micro-batch", "Recipes leave memory for fragments; the search fills nine tenths."),
}  # fmt: skip
"""Axes, what more of them is called, and why search and recipes may differ in them."""


def summary(rows: list[Compared]) -> Iterator[str]:
    """What the second table says as a whole."""
    gain = -statistics.median(row.gap for row in rows)
    error = statistics.median(abs(row.theirs_s / row.measured_s - 1) for row in rows)
    same, close = sum(all(row.splits) for row in rows), sum(abs(row.gap) <= CLOSE for row in rows)
    yield f"""
Of {len(rows)} jobs the pick splits the model as the recipe does (tp, cp, pp, ep) in {same}, and in {close} the
estimate holds the two as quick within {CLOSE:.0%}. The median pick is estimated {gain:.1%} quicker than the recipe.
The estimates of the recipes themselves are {error:.1%} from what was measured (median): a gain of that size proves
nothing, a larger one is worth a try.

Where they differ, and why:
"""
    for axis, (name, why) in WHY.items():
        more = [row for row in rows if getattr(row.ours, axis) > getattr(row.theirs, axis)]
        less = [row for row in rows if getattr(row.ours, axis) < getattr(row.theirs, axis)]
        counts = ", ".join(
            f"{word} in {len(some)} (median {statistics.median(row.gap for row in some):+.1%})"
            for word, some in (("more", more), ("less", less))
            if some
        )
        if counts:
            yield f"- **{name}**: {counts}. {why}"
    again = sum(row.ours.recompute != "none" and row.theirs.recompute == "none" for row in rows)
    spared = sum(row.ours.recompute == "none" and row.theirs.recompute != "none" for row in rows)
    if again or spared:
        yield f"- **recomputing**: spared in {spared} where the recipe has it, the other way in {again}."
    tight = sum(not row.fits for row in rows)
    if tight:
        yield (
            f"- **memory**: {tight} recipes ran although the estimate has them above nine tenths of the memory; the "
            "pick avoids them, and is the slower for it where they are the quicker."
        )
    unchecked = [name for name in PLANNED if not any(_alike(name, row.name) for row in rows)]
    if unchecked:
        yield (
            f"\nOf {' and '.join(unchecked)} no run of NVIDIA's with its layout and its step time is shipped, so their "
            "plans above stand unchecked; the nearest mixtures are those in the table."
        )


def _alike(name: str, published: str) -> bool:
    """Whether a published name is that of a catalogue's model."""
    family, size = name.replace("-", " ").split()[0], name.rsplit("-", 1)[-1]
    plain = published.lower()
    return plain.startswith(family) and size in plain


def page() -> str:
    """The whole page."""
    facts = catalog.load()
    rows = compared(facts)
    lines = [HEAD, PLANS.format(day=facts.date.isoformat()).lstrip("\n"), *plans(facts)]
    lines += [RECIPES.format(tie=TIE), *map(_row, rows), *summary(rows)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
