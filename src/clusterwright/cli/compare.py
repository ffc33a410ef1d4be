"""``clusterwright compare``: rent, reserve or own one cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clusterwright.search.compare import Comparison
    from clusterwright.search.ways import Own, Way

SHOWN = (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
"""Utilisations that the table shows; the document has all."""
MOST = 14
"""Offers that the table shows; the document has all."""
READING = (
    "breaks even at: owning is cheaper when the cluster works more than this share of the time",
    "its span: the rent 20% either way, and every figure of owning over its own span",
    "cancels: both are paid used or idle, so that no utilisation decides",
    "pays back: months until the rent that is not paid has paid for what was bought (with the cost of capital)",
)


@click.command("compare")
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--plan", "plan_file", type=click.Path(path_type=Path),
              help="Compare the cluster of this plan [default: the one that `plan` would choose].")  # fmt: skip
@click.option("--without", multiple=True, metavar="PART",
              help="Leave a part of owning out, such as colocation; repeatable.")  # fmt: skip
@click.option("--set", "overrides", multiple=True, metavar="SECTION.KEY=VALUE",
              help='Replace a line of the workload, such as constraints.horizon="4 years"; repeatable.')  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path), help="Draw price over utilisation to this .svg or .png file.")
@click.option("--catalog", type=click.Path(path_type=Path), help="Folder with your own parts, prices and owning.toml.")
@click.option("--calibration", type=click.Path(path_type=Path), help="Factors fitted to your own runs.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - one argument an option
    workload: Path,
    plan_file: Path | None,
    without: tuple[str, ...],
    overrides: tuple[str, ...],
    plot: Path | None,
    catalog: Path | None,
    calibration: Path | None,
    style: str,
) -> int:
    """Hold rent, reservation and ownership of WORKLOAD's cluster against one another, over how much it is used."""
    from clusterwright import api
    from clusterwright.files import write_all_atomically

    work = api.load_workload(workload, overrides=overrides)
    found = api.compare(work, plan=plan_file, without=without, catalog=catalog, calibration=calibration)
    if plot is not None:
        write_all_atomically({plot: draw(found, plot)})
    if style == "json":
        print(json.dumps(found.model_dump(mode="json"), indent=2, allow_nan=False))
    else:
        show(found)
    return 0 if found.own is not None else 1


def draw(found: Comparison, path: Path) -> str | bytes:
    """Price of a useful accelerator-hour over utilisation, as the file asked for."""
    from clusterwright.drawing.lines import Line, draw_lines
    from clusterwright.drawing.picture import picture

    shown = shortened(found)
    lines = [Line(one.offer, one.usd_per_useful_accelerator_hour, dashed=one.billed != "by the hour") for one in shown]
    if found.owned is not None and found.own is not None:
        price, value = found.owned.usd_per_useful_accelerator_hour, found.own.usd_per_accelerator_hour
        low, high = (tuple(end / value * usd for usd in price) for end in found.own.interval)
        lines.insert(0, Line(f"owned {found.own.node}", price, low, high, thick=True))
    title = f"{found.accelerators} {found.accelerator}: what a useful accelerator-hour costs"
    return picture(draw_lines(title, "utilisation", "USD", found.utilisation, lines), path)


def shortened(found: Comparison) -> list[Way]:
    """The offers that are shown: the cheapest of each provider, instance and term, at most `MOST`."""
    kept: dict[tuple[str, str, str], Way] = {}
    for one in found.offers:
        kept.setdefault((one.provider, one.instance, one.term), one)
    return list(kept.values())[:MOST]


def show(found: Comparison) -> None:
    """Print the answer for people, at 100 columns."""
    from clusterwright import report
    from clusterwright.units import show_duration

    job = f"one job takes {show_duration(found.train_time_s)}, kept {show_duration(found.horizon_s)}"
    print(f"{found.accelerators} {found.accelerator} ({found.nodes} x {found.node}): {job}\n")
    report.show_lines("Answer", found.reasons, sys.stdout)
    if found.own is not None and found.owned is not None:
        _owning(found.own)
    _prices(found)
    if found.own is not None:
        _even(found)
    if found.left_out:
        report.show_lines("Not compared", [f"{n}: {why}" for why, n in found.left_out.items()], sys.stdout)
    report.show_lines("Warnings", found.warnings, sys.stdout)
    report.show_lines("Assumed", found.assumptions, sys.stdout)
    report.show_lines("Sources", found.sources, sys.stdout)


def _owning(own: Own) -> None:
    from rich import box
    from rich.table import Table

    from clusterwright.report import show_table
    from clusterwright.units import YEAR, show_money

    count, hours = own.usd_per_hour / own.usd_per_accelerator_hour, YEAR / 3600
    low, high = own.interval
    price = f"${own.usd_per_accelerator_hour:.2f} an accelerator-hour ({low:.2f} to {high:.2f})"
    print(f"Owning {own.nodes} x {own.node}, spares included: {price}")
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("part", "to buy", "a year", "an accelerator-hour"):
        table.add_column(name, justify="left" if name == "part" else "right")
    for part, usd in own.usd_per_year.items():
        bought = own.capital_usd.get(part)
        name = f"{part}, less resale" if part == "nodes" and own.residual_usd else part
        table.add_row(
            f"{name} (left out)" if part in own.left_out else name, "" if bought is None else show_money(bought),
            show_money(usd), f"${usd / hours / count:.3f}",
        )  # fmt: skip
    table.add_section()
    year = sum(own.usd_per_year.values())
    table.add_row("together", show_money(own.capital), show_money(year), f"${own.usd_per_accelerator_hour:.3f}")
    show_table(table, sys.stdout)


def _prices(found: Comparison) -> None:
    from rich import box
    from rich.table import Table

    from clusterwright.report import show_table

    table = Table(
        title="USD for a useful accelerator-hour, by the share of the time that the cluster works", box=box.SIMPLE_HEAD,
        title_justify="left",
    )  # fmt: skip
    table.add_column("")
    for share in SHOWN:
        table.add_column(f"{share:.0%}", justify="right")
    rows = [*([found.owned] if found.owned is not None else []), *shortened(found)]
    for one in rows:
        table.add_row(one.offer, *(f"{one.at(share):.2f}" for share in SHOWN))
    show_table(table, sys.stdout)
    rest = len(found.offers) - len(shortened(found))
    if rest > 0:
        print(f"{rest} more offers (dearer, or of other regions) are in --format json\n")


def _even(found: Comparison) -> None:
    from rich import box
    from rich.table import Table

    from clusterwright.report import show_lines, show_table
    from clusterwright.units import show_money

    share = found.asked_utilisation or 1.0
    place = min(range(len(found.utilisation)), key=lambda i: abs(found.utilisation[i] - share))
    share = found.utilisation[place]
    table = Table(
        title=f"Against owning; money and months at a utilisation of {share:.0%}", box=box.SIMPLE_HEAD,
        title_justify="left",
    )  # fmt: skip
    for name in ("", "billed", "breaks even at", "a job", "a year", "pays back"):
        table.add_column(name, justify="left" if name in {"", "billed"} else "right")
    for one in [*([found.owned] if found.owned else []), *shortened(found)]:
        table.add_row(
            one.offer, one.billed, _where(one) if one is not found.owned else "", show_money(one.usd_per_job[place]),
            show_money(one.usd_per_year[place]), _months(one, place) if one is not found.owned else "",
        )  # fmt: skip
    show_table(table, sys.stdout)
    show_lines("Reading it", READING, sys.stdout)


def _where(one: Way) -> str:
    if one.billed == "round the clock":
        return "cancels"
    low, high = one.break_even_interval or (0.0, 0.0)
    span = f" ({low:.0%}-{high:.0%})"
    return (f"{one.break_even_utilisation:.0%}" if one.break_even_utilisation is not None else "never") + span


def _months(one: Way, place: int) -> str:
    plain, with_finance = one.pay_back_months[place], one.pay_back_months_with_finance[place]
    if plain is None:
        return "never"
    return f"{plain:.0f} ({'never' if with_finance is None else f'{with_finance:.0f}'})"
