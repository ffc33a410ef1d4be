"""Write accuracy.md from the shipped published runs: ``python docs/accuracy.py``."""

from __future__ import annotations

import statistics
from collections import defaultdict
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from clusterwright.catalog import load
from clusterwright.validation import Scoreboard, validate

if TYPE_CHECKING:
    from clusterwright.estimators.observed import Scored

PAGE = Path(__file__).parent / "accuracy.md"
HEAD = """# How accurate it is

Every figure below is computed by `python docs/accuracy.py` from the published runs that are shipped with the tool; a
test writes the page again and compares. `clusterwright validate` prints the same with every row, and
`clusterwright validate FILE.csv` scores your own.

An error is estimated / measured - 1. Runs marked *fit* were used to fit the named efficiencies (one file,
`estimators/efficiency.toml`: architectures, networks, software stacks); runs marked *check* were never fitted. Two
sources hold most of the rows, so the figure that counts is the median over sources of each source's median error.
"""
KNOWN_MISSES = """
## Known misses, and why

- **ultrascale** (nanotron): a sweep of deliberately bad layouts. Tensor parallelism across nodes and pipelines at 128
  accelerators and more ran up to a hundred times slower than their traffic explains; the estimate knows the launch
  time that a blocking pipeline serialises, not these stalls.
- **mixtures of experts** (mb, mbskill): no run of one is among the fitted ones. Releases drift by 1.3 to 1.6 times, and
  small ones are bound by the host, whose share is a guess from the dense stack.
- **aurora** (Max 1550) and **gaudi2**: no run on these architectures is among the fitted ones; their shares of peak are
  estimated, and the Gaudi 2 table prints no layout.
- **memory of torchtune and of adapters**: 8-bit and paged optimizers, and activation offload, are not modelled.
- **memory of torchtitan under a pipeline**: reserved memory counts fragments that the allocated estimate does not.
"""


def table(title: str, board: Scoreboard, quantity: str) -> list[str]:
    """Rows of a table by split and source."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for item in board.scored:
        measured = item.run.number("step_time_s" if quantity == "step" else "peak_mem_gb")
        if measured:
            estimated = item.step_s if quantity == "step" else item.memory_gib
            groups[item.run.text("split"), item.run.text("source_group")].append(estimated / measured - 1)
    lines = [f"\n## {title}\n", "| split | source | runs | median error | 90% of runs within | bias |"]
    lines.append("|---|---|--:|--:|--:|--:|")
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


def inside(item: Scored) -> bool:
    """Whether the measured step time is in the 80% interval."""
    measured = item.run.number("step_time_s") or 0.0
    return item.low_s <= measured <= item.high_s


def page() -> str:
    """The whole page."""
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as runs:
        board = validate([runs], load())
    checked = [i for i in board.scored if i.run.text("split") == "check" and i.run.number("step_time_s")]
    share = sum(map(inside, checked)) / len(checked)
    lines = [HEAD, f"{board.rows:,} runs, {len(board.scored):,} estimated, {len(board.skipped)} skipped with a reason."]
    lines.append(f"The 80% interval holds {share:.1%} of the *check* runs.")
    lines += table("Step time", board, "step") + table("Peak memory", board, "memory")
    return "\n".join(lines) + "\n" + KNOWN_MISSES


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
