"""``clusterwright plan``: choose the cluster and the layout for a workload."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusterwright.plan import Plan

PATIENCE_S = 2.0
"""Before a search says how far it is."""
WIDTH = 40


@click.command("plan")
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the plan document here.")
@click.option("--top", type=click.IntRange(min=1, max=1000), default=20, show_default=True, help="Points of the front.")
@click.option("--pin", "pins", multiple=True, metavar="KEY=VALUE", help="Fix one choice, such as tp=8; repeatable.")
@click.option("--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE",
              help="Replace a line of the workload, such as site.queue=x; repeatable.")  # fmt: skip
@click.option("--catalog", type=click.Path(path_type=Path), help="Folder with your own parts and prices.")
@click.option("--calibration", type=click.Path(path_type=Path), help="Factors fitted to your own runs.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the whole cluster to this .svg or .png file.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - one argument an option
    workload: Path,
    out: Path | None,
    top: int,
    pins: tuple[str, ...],
    overrides: tuple[str, ...],
    catalog: Path | None,
    calibration: Path | None,
    plot: Path | None,
    style: str,
) -> int:
    """Choose the cluster and the layout for WORKLOAD: within its constraints, by its objective."""
    from clusterwright import api, report
    from clusterwright.files import write_all_atomically

    work = api.load_workload(workload, overrides=overrides)
    plan = api.design(work, pins=pins, top=top, catalog=catalog, calibration=calibration, progress=_progress())
    text = plan.to_json()
    files: dict[Path, str | bytes] = {} if out is None or plan.chosen is None else {out: text}
    write_all_atomically(files | _drawing(plan, plot))
    if style == "json":
        print(text, end="")
    else:
        report.show_plan(plan, sys.stdout)
    return 0 if plan.chosen is not None else 1


def _drawing(plan: Plan, plot: Path | None) -> dict[Path, str | bytes]:
    """The picture of the chosen cluster, where one was asked for and there is one."""
    from clusterwright.drawing.cluster import draw_cluster
    from clusterwright.drawing.picture import picture

    if plot is None or plan.chosen is None or plan.facility is None:
        return {}
    chosen = plan.chosen
    title = f"{plan.model.name}: {chosen.nodes} x {chosen.node}" + (f" and {chosen.spares} spare" * bool(chosen.spares))
    return {plot: picture(draw_cluster(plan.facility.networks, chosen.nodes + chosen.spares, title), plot)}


def _progress() -> Callable[[float], None] | None:
    """A bar on stderr, for people who have waited a while; none where stderr is no terminal."""
    if not sys.stderr.isatty():
        return None
    start = time.monotonic()

    def show(share: float) -> None:
        if time.monotonic() - start < PATIENCE_S:
            return
        done = round(WIDTH * share)
        end = "\r" + " " * (WIDTH + 20) + "\r" if share >= 1 else ""
        sys.stderr.write(f"\rsearching [{'#' * done}{'.' * (WIDTH - done)}] {share:4.0%}{end}")
        sys.stderr.flush()

    return show
