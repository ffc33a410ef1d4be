"""``clusterwright validate``: measured against estimated, on published runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from clusterwright.validation import Scoreboard

FAMILIES = 40
"""Families that the text lists."""


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--calibration", type=click.Path(path_type=Path), help="Factors fitted to your own runs.")
@click.option("--ranking", is_flag=True, help="Also rank the layouts of each job: Kendall's tau and pick regret.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw measured against estimated to this .svg or .png.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(files: tuple[Path, ...], calibration: Path | None, ranking: bool, plot: Path | None, style: str) -> int:
    """Score the estimate against published runs in FILES (CSV); none: those that are shipped, with their bands.

    Without FILES and calibration the errors are held to the shipped bands: the exit code is 1 where one is exceeded.
    """
    from clusterwright import api

    board = api.validate(*files, calibration=calibration)
    if plot is not None:
        _draw(board, plot)
    if style == "json":
        print(json.dumps(board.document(with_ranking=ranking), allow_nan=False))
    else:
        _text(board, ranking)
    return 1 if board.worsened else 0


def _text(board: Scoreboard, ranking: bool) -> None:
    for quantity, title, by in (
        ("step", "step time by source", "source_group"),
        ("memory", "peak memory by source", "source_group"),
        ("step", "step time by family", "family"),
    ):
        _table(title, board.groups(quantity, by=by), by)
    _effects(board)
    if ranking:
        _ranking(board)
    _summary(board)
    if board.worsened is not None:
        for broken in board.worsened:
            print(f"worse than it was: {broken}")
        if not board.worsened:
            print("no band is exceeded")


def _table(title: str, groups: list[dict[str, Any]], by: str) -> None:
    if not groups:
        return
    width = max(len(str(group[by])) for group in groups[:FAMILIES])
    print(f"\n{title}: estimated / measured - 1")
    print(f"  {'':<{width}}  {'runs':>5}  {'median |e|':>10}  {'p90 |e|':>8}  {'bias':>7}")
    for group in groups[:FAMILIES]:
        errors = f"{group['median_abs_error']:>10.1%}  {group['p90_abs_error']:>8.1%}  {group['bias']:>+7.1%}"
        print(f"  {group[by]!s:<{width}}  {group['n']:>5}  {errors}")
    if len(groups) > FAMILIES:
        print(f"  and {len(groups) - FAMILIES} smaller ones (all with --format json)")


def _effects(board: Scoreboard) -> None:
    found = board.effects()
    if not found:
        return
    width = max(len(effect.change) for effect in found)
    print("\neffects of one change on the accelerator-time of a sequence: medians over pairs of runs alike but for it")
    print(f"  {'':<{width}}  {'pairs':>5}  {'measured':>8}  {'estimated':>9}  {'right sign':>10}  {'|e| of size':>11}")
    for effect in found:
        sign = "-" if effect.right_sign is None else f"{effect.right_sign:.0%}"
        sizes = f"{effect.measured:>+8.1%}  {effect.estimated:>+9.1%}"
        print(f"  {effect.change:<{width}}  {effect.pairs:>5}  {sizes}  {sign:>10}  {effect.median_abs_error:>11.1%}")


def _ranking(board: Scoreboard) -> None:
    from clusterwright.validation.ranking import LEAST, summarise

    jobs = board.jobs()
    if not jobs:
        print(f"\nno job has {LEAST} measured layouts: nothing to rank")
        return
    print("\nranking of a job's layouts: how much longer the one estimated fastest took than the fastest")
    print(f"  {'':<18}  {'jobs':>5}  {'layouts':>7}  {'mean tau':>8}  {'mean regret':>11}  worst regret")
    for group in summarise(jobs):
        tau = "-" if group["mean_kendall_tau"] is None else f"{group['mean_kendall_tau']:.2f}"
        counts = f"{group['split'] + ' ' + group['nodes']:<18}  {group['jobs']:>5}  {group['layouts']:>7}"
        worst = f"{group['worst_pick_regret']:.1%} of {group['worst_job']}"
        print(f"  {counts}  {tau:>8}  {group['mean_pick_regret']:>11.1%}  {worst}")


def _summary(board: Scoreboard) -> None:
    weighted, coverage = board.source_weighted(), board.coverage()
    print(f"\n{board.rows} rows, {len(board.scored)} scored, {len(board.skipped)} skipped")
    if weighted is not None and coverage is not None:
        splits = ", ".join(f"{share:.1%} of the {split} ones" for split, share in board.coverage_by_split().items())
        held = f"the 80% interval holds {coverage:.1%} of the runs{f' ({splits})' if splits else ''}"
        print(f"median over sources of the median |e|: {weighted:.1%}; {held}")
    for reason, count in Counter(reason for _, reason in board.skipped).most_common(8):
        print(f"skipped {count}: {reason}")


def _draw(board: Scoreboard, path: Path) -> None:
    from clusterwright.drawing.picture import picture
    from clusterwright.drawing.scatter import draw
    from clusterwright.files import write_all_atomically

    write_all_atomically({path: picture(draw(board.panels()), path)})
