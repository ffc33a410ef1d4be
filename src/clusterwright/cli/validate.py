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
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(files: tuple[Path, ...], calibration: Path | None, style: str) -> None:
    """Score the estimate against published runs in FILES (CSV); none: those that are shipped."""
    from clusterwright import api

    board = api.validate(*files, calibration=calibration)
    if style == "json":
        print(json.dumps(board.document(), allow_nan=False))
        return
    for quantity, title, by in (
        ("step", "step time by source", "source_group"),
        ("memory", "peak memory by source", "source_group"),
        ("step", "step time by family", "family"),
    ):
        _table(title, board.groups(quantity, by=by), by)
    _summary(board)


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


def _summary(board: Scoreboard) -> None:
    weighted, coverage = board.source_weighted(), board.coverage()
    print(f"\n{board.rows} rows, {len(board.scored)} scored, {len(board.skipped)} skipped")
    if weighted is not None and coverage is not None:
        print(
            f"median over sources of the median |e|: {weighted:.1%}; the 80% interval holds {coverage:.1%} of the runs"
        )
    for reason, count in Counter(reason for _, reason in board.skipped).most_common(8):
        print(f"skipped {count}: {reason}")
