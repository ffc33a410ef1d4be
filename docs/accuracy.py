"""Write accuracy.md and its figures from the shipped published runs: ``python docs/accuracy.py``."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

from clusterwright.catalog import load
from clusterwright.drawing.scatter import draw
from clusterwright.estimators.efficiency import shipped
from clusterwright.validation import Scoreboard, validate_shipped
from clusterwright.validation.ranking import summarise
from clusterwright.validation.scoreboard import pair_of

DOCS = Path(__file__).parent
PAGE = DOCS / "accuracy.md"
FIGURES = {"step": DOCS / "accuracy-step.svg", "memory": DOCS / "accuracy-memory.svg"}
RESISTS = 0.08
"""Median error from which on a source is told of as one that resists."""
COLUMNS = 8
"""Sources that the table of terms shows."""
HEAD = """# How accurate it is

Every figure below is computed by `python docs/accuracy.py` from the published runs that are shipped with the tool; a
test writes the page again and compares. `clusterwright validate` prints the same with every row, and
`clusterwright validate FILE.csv` scores your own. How other open tools do on the same rows is [beside it](peers.md).

An error is estimated / measured - 1. Runs marked *fit* were used to fit the named efficiencies (one file,
`estimators/efficiency.toml`: architectures, networks, software stacks); runs marked *check* were never fitted. Two
sources hold most of the rows, so the figure that counts is the median over sources of each source's median error.
"""
REASONS = {
    "ultrascale": "nanotron, a sweep of deliberately bad layouts. Between 16 and 64 nodes a job has a bad node or has "
    "none, by chance: the estimate is the likelier of both, off by ten to forty times where it was the other.",
    "mb": "mixtures of experts: two releases ran one model half as fast as those before and after, and what a recipe "
    "changed besides (dispatcher, padding, graphs of parts) is not in the table.",
    "mbskill": "mixtures of experts at tiny batches, bound by launching and by the optimizer, as the source says.",
    "msswift": "one run with a step time: a mixture of experts under ZeRO-3 whose experts run one after another.",
    "aurora": "Max 1550: no run on this architecture is among the fitted ones. Products, memory and links are as "
    "measured on its nodes; its collectives take several times what those links explain.",
    "gaudi2": "no run on this architecture is among the fitted ones, and its table prints no layout.",
    "flagperf": "PaddleNLP, FlagScale, DeepSpeed and Megatron of 2023, mostly fp16: stacks that no fitted run has.",
    "nemo": "fp8 throughout, and the recompute is not printed: the least that fits is assumed.",
    "nemodoc": "fp8 throughout, and the recompute is not printed: the least that fits is assumed.",
    "fmsfsdp": "FSDP1 of early 2024 in a stack of its own, of which no run is among the fitted ones.",
    "mlm": "four runs of continuous integration: eight accelerators, eight sequences a step, deterministic kernels.",
    "torchtitan": "H100 with HBM2e at 500 W, more than half of the runs in fp8 under full recompute.",
    "torchtune": "recipes for one node, with adapters, offload and 8-bit optimizers.",
    "mlperf": "submissions of GPT-3 175B in fp8, each tuned by its maker.",
}
SEEN = """
## What was seen

No *check* run was fitted, but their errors were read while the model was built, so the figures above are a little
kinder than those of runs that nobody has seen. What only *check* runs showed to be missing, and what it then rests on:

- CUDA graphs, overlapped experts and the casts of expert weights of Megatron Bridge's releases since 2025.11: no
  mixture of those releases was fitted. Which recipe uses what is read from the recipes and release notes; that
  a graph hides 84% of the launches is set by hand.
- Compiled steps of torchtitan and FSDP: no fitted run is compiled. They take the factor 1 of NVIDIA's own layers.
- AMD's and Intel's accelerators: no run on them was fitted. Kernels, memory and links are single published
  measurements; what of them lasts through a step is the mean of Hopper and Blackwell.
- Packed samples of NeMo's fine-tuning, the releases' gain a year, stalls, ZeRO-1's exposed gathers and the head on the
  last stage were first seen there too, but *fit* runs show the same and set their size.
"""
MEMORY = """
Known misses of the memory: stacks of 2023 (PaddleNLP, FlagScale, DeepSpeed) hold a tenth more than their code accounts
for; nanotron's runs do not say whether tensor parallelism splits sequences; four-bit adapters over FSDP come out too
large.
"""


def table(title: str, board: Scoreboard, quantity: str) -> list[str]:
    """Rows of a table by split and source."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for item in board.scored:
        if pair := pair_of(item, quantity):
            groups[item.run.text("split"), item.run.text("source_group")].append(pair[1] / pair[0] - 1)
    figure = FIGURES[quantity].name
    lines = [f"\n## {title}\n", f"![Measured against estimated: {title.lower()}]({figure})\n"]
    lines += ["| split | source | runs | median error | 90% of runs within | bias |", "|---|---|--:|--:|--:|--:|"]
    for (split, source), errors in sorted(groups.items()):
        size = sorted(map(abs, errors))
        p90 = size[max(0, -(-9 * len(size) // 10) - 1)]
        figures = f"{statistics.median(size):.1%} | {p90:.1%} | {statistics.median(errors):+.1%}"
        lines.append(f"| {split} | {source} | {len(size)} | {figures} |")
    for split in ("fit", "check"):
        medians = [statistics.median(map(abs, e)) for (s, _), e in groups.items() if s == split]
        found = statistics.median(medians)
        lines.append(f"\nMedian over the {len(medians)} *{split}* sources: **{found:.1%}**.")
    return lines


def effects(board: Scoreboard) -> list[str]:
    """What single changes do."""
    lines = [
        "\n## Effects of one change\n",
        "What a change does to the accelerator-time of a sequence, in pairs of runs alike but for it: medians, the",
        "share of pairs whose sign is right (of those whose measured effect is 2% or more), and the median error of",
        "the size.\n",
        "| change | pairs | sources | measured | estimated | right sign | error of size |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for effect in board.effects():
        sign = "-" if effect.right_sign is None else f"{effect.right_sign:.0%}"
        figures = f"{effect.measured:+.1%} | {effect.estimated:+.1%} | {sign} | {effect.median_abs_error:.1%}"
        lines.append(f"| {effect.change} | {effect.pairs} | {effect.sources} | {figures} |")
    return lines


def ranking(board: Scoreboard) -> list[str]:
    """How well layouts are chosen."""
    lines = [
        "\n## Choice of layout\n",
        "Jobs with four measured layouts or more: Kendall's tau between measured and estimated order, and the pick",
        "regret, how much longer the layout that is estimated fastest took than the fastest (means over jobs).\n",
        "| split | nodes | jobs | layouts | tau | regret | worst |",
        "|---|---|--:|--:|--:|--:|---|",
    ]
    for group in summarise(board.jobs()):
        tau = "-" if group["mean_kendall_tau"] is None else f"{group['mean_kendall_tau']:.2f}"
        worst = f"{group['worst_pick_regret']:.1%}: {group['worst_job']}"
        counts = f"{group['split']} | {group['nodes']} | {group['jobs']} | {group['layouts']}"
        lines.append(f"| {counts} | {tau} | {group['mean_pick_regret']:.1%} | {worst} |")
    return lines


def resisting(board: Scoreboard) -> list[str]:
    """The sources that resist, term by term."""
    worst = [one for one in board.only("check").residuals() if one.median_abs_error > RESISTS]
    lines = [
        "\n## What resists, and why\n",
        f"Sources whose *check* runs are off by more than {RESISTS:.0%} in the median. The term the error goes with",
        "is the one whose share of the step has the largest rank correlation with the signed error, over eight runs or",
        "more: below zero the estimate is low where that term is large, above zero it is high there.\n",
        "| source | runs | median error | bias | goes with | why |",
        "|---|--:|--:|--:|---|---|",
    ]
    for one in worst:
        term = "-" if one.goes_with is None else f"{one.goes_with} ({one.correlation:+.2f})"
        why = REASONS.get(one.source, "not known yet.")
        lines.append(f"| {one.source} | {one.n} | {one.median_abs_error:.1%} | {one.bias:+.1%} | {term} | {why} |")
    shown = worst[:COLUMNS]
    lines += ["\nWhat their estimated steps are made of, on average:\n"]
    lines += ["| term | " + " | ".join(one.source for one in shown) + " |", "|---|" + "--:|" * len(shown)]
    lines.append("| **signed error** | " + " | ".join(f"**{one.bias:+.1%}**" for one in shown) + " |")
    for term in dict.fromkeys(term for one in shown for term in one.shares):
        shares = [one.shares.get(term, 0.0) for one in shown]
        if max(shares) >= 0.005:
            lines.append(f"| {term} | " + " | ".join(f"{abs(share):.0%}" for share in shares) + " |")
    return lines


def kernels() -> list[str]:
    """Rows of the table of kernel curves: what is sustained, and the error against the measured kernels."""
    lines = [
        "\n## Kernels\n",
        "Share of the dense peak that short kernels sustain on large sizes, what of it lasts through a training step,",
        "and the median error of the curve against the measured kernels (from aiconfigurator-core 0.12.0, Apache-2.0;",
        "no error: carried over from single figures). `calibration/fit_kernels.py` writes the curves; what lasts is",
        "fitted to runs, but for bf16 on Ampere (held at what long kernels show), bf16 on Blackwell (held between two",
        "machines that differ by 1.6) and the products of AMD and Intel (the mean of Hopper and Blackwell).",
        "",
        "| architecture | kernel | share | lasts | error |",
        "|---|---|--:|--:|--:|",
    ]
    for name, curve in shipped().architecture.items():
        for kind in ("bf16", "fp8", "fp4", "attention"):
            one = getattr(curve, kind)
            if kind in ("bf16", "attention") or one.error:
                error = f"{one.error:.1%}" if one.error else "-"
                lines.append(f"| {name} | {kind} | {one.share:.2f} | {one.sustained:.2f} | {error} |")
    return lines


def page(board: Scoreboard) -> str:
    """The whole page."""
    inside: dict[str, list[bool]] = defaultdict(list)
    for item in board.only("check").scored:
        if pair := pair_of(item, "step"):
            inside[item.run.text("source_group")].append(item.low_s <= pair[0] <= item.high_s)
    rows, mean = board.coverage_by_split()["check"], statistics.fmean(map(statistics.fmean, inside.values()))
    lines = [
        HEAD,
        f"{board.rows:,} runs, {len(board.scored):,} estimated, {len(board.skipped)} skipped with a reason.",
        f"The 80% interval holds {rows:.1%} of the *check* runs; of one source's, {mean:.0%} on average: for a stack",
        "or an accelerator that no fitted run has, it promises too much.",
    ]
    lines += table("Step time", board, "step") + table("Peak memory", board, "memory")
    lines.append(MEMORY.rstrip())
    lines += effects(board) + ranking(board) + resisting(board) + [SEEN.rstrip()] + kernels()
    return "\n".join(lines) + "\n"


def written() -> dict[Path, str]:
    """Every file that this script writes, with its text."""
    board = validate_shipped(load())
    figures = {path: draw([panel]) for path, panel in zip(FIGURES.values(), board.panels(), strict=True)}
    return {PAGE: page(board), **figures}


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
