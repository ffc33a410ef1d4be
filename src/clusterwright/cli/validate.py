"""``clusterwright validate``: measured against estimated, on published runs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from clusterwright.validation import Scoreboard

app = typer.Typer(add_completion=False)
command = app


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSON = "json"


@app.command()
def validate(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="CSV tables of training runs; none: those that are shipped", show_default=False),
    ] = None,
    calibration: Annotated[Path | None, typer.Option(help="factors fitted to your own runs")] = None,
    output: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> int:
    """Score the estimate against published runs, by source and family."""
    from clusterwright import api

    board = api.validate(*(files or ()), calibration=calibration)
    if output is Format.JSON:
        typer.echo(json.dumps(board.document(), allow_nan=False))
    else:
        _show(board)
    return 0


def _show(board: Scoreboard) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=100)
    for quantity, title in (("step", "step time"), ("memory", "peak memory")):
        for by in ("source_group", "family") if quantity == "step" else ("source_group",):
            groups = board.groups(quantity, by=by)
            if not groups:
                continue
            table = Table(title=f"{title} by {by.replace('_group', '')}: estimated / measured - 1")
            for name in (by.replace("_group", ""), "runs", "median |e|", "p90 |e|", "bias"):
                table.add_column(name, justify="left" if name == by.replace("_group", "") else "right")
            for group in groups[:40]:
                table.add_row(*_cells(group, by))
            console.print(table)
            if len(groups) > 40:  # noqa: PLR2004 - what a screen holds
                console.print(f"and {len(groups) - 40} smaller families (all of them with --format json)")
    weighted, coverage = board.source_weighted(), board.coverage()
    console.print(f"{board.rows} rows, {len(board.scored)} scored, {len(board.skipped)} skipped")
    if weighted is not None and coverage is not None:
        console.print(f"median over sources of the median |e|: {weighted:.1%}; 80% interval covers {coverage:.1%}")
    reasons: dict[str, int] = {}
    for _, reason in board.skipped:
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:8]:
        console.print(f"skipped {count}: {reason}", markup=False)


def _cells(group: dict[str, Any], by: str) -> list[str]:
    return [
        str(group[by]),
        str(group["n"]),
        f"{group['median_abs_error']:.1%}",
        f"{group['p90_abs_error']:.1%}",
        f"{group['bias']:+.1%}",
    ]
