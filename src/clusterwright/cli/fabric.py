"""``clusterwright fabric``: design the scale-out network of a cluster."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clusterwright.hardware import FabricDesign, FabricParts

TOPOLOGIES = ("shared-spine", "independent-rails")


class FiniteNumber(click.ParamType):  # type: ignore[type-arg] # generic in its stubs alone
    """A finite number above zero, or from zero on."""

    name = "number"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        try:
            number = float(str(value))
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < 0 or (number == 0 and not self.zero):
            self.fail(
                f"{str(value)!r} is not a finite number {'from zero on' if self.zero else 'above zero'}", param, ctx
            )
        return number


POSITIVE = FiniteNumber()
NOT_NEGATIVE = FiniteNumber(zero=True)


@click.command("fabric")
@click.option("--nodes", type=click.IntRange(min=1), required=True, help="Nodes to join.")
@click.option("--nics", type=click.IntRange(min=1), required=True, help="NICs a node on this network.")
@click.option("--nic-gbps", type=POSITIVE, required=True, help="Speed of one NIC and switch port [Gb/s].")
@click.option("--radix", type=click.IntRange(min=2), required=True, help="Ports of a switch at that speed.")
@click.option("--topology", type=click.Choice(TOPOLOGIES), default=TOPOLOGIES[0], show_default=True,
              help="Rail-aligned leaves under common spines, or a network a rail.")  # fmt: skip
@click.option("--oversubscription", type=POSITIVE, default=1.0, show_default=True, help="Leaf bandwidth down over up.")
@click.option("--planes", type=click.IntRange(min=1), default=1, show_default=True,
              help="Equal networks side by side; everything printed is of one, `planes_*` of all.")  # fmt: skip
@click.option("--manager-ports", type=click.IntRange(min=0), default=0, show_default=True,
              help="Leaf ports kept for the fabric manager (UFM takes a node's place on the last leaves).")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the topology to this .svg file.")
@click.option("--cables", "cable_list", type=click.Path(path_type=Path), help="Write every cable to this .csv file.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - one argument an option
    nodes: int,
    nics: int,
    nic_gbps: float,
    radix: int,
    topology: str,
    oversubscription: float,
    planes: int,
    manager_ports: int,
    plot: Path | None,
    cable_list: Path | None,
    style: str,
) -> None:
    """Design the scale-out network: switches, cables, cost, power, and how far it grows."""
    from clusterwright.catalog.cluster_parts import load_fabric_parts
    from clusterwright.errors import InputError
    from clusterwright.estimators.fabric import design_fabric

    parts = load_fabric_parts()
    design = design_fabric(
        nodes, nics, nic_gbps * 1e9, radix, topology, oversubscription, parts, manager_ports=manager_ports
    )
    if plot is not None and plot.suffix != ".svg":
        raise InputError(f"--plot {plot}: drawings are written as .svg")
    files = _files(design, plot, cable_list)
    if files:
        from clusterwright.files import write_all_atomically

        write_all_atomically(files)
    if style == "json":
        print(json.dumps(_document(design, parts, planes, manager_ports), allow_nan=False))
    else:
        print(_text(design, parts, planes))


def _files(design: FabricDesign, plot: Path | None, cable_list: Path | None) -> dict[Path, str]:
    from clusterwright.drawing import fabric as drawing

    files = {}
    if plot is not None:
        files[plot] = drawing.draw_svg(design)
    if cable_list is not None:
        files[cable_list] = drawing.list_cables(design)
    return files


def _document(design: FabricDesign, parts: FabricParts, planes: int, manager_ports: int) -> dict[str, object]:
    from clusterwright.estimators.fabric import explain_fabric

    return {
        **design.model_dump(mode="json"),
        "switches": design.switches,
        "planes": planes,
        "planes_switches": planes * design.switches,
        "planes_capex_usd": planes * (design.capex_usd or 0.0),
        "manager_ports": manager_ports,
        "terms": explain_fabric(design, parts).model_dump(mode="json"),
        "sources": list(parts.sources),
    }


def _text(design: FabricDesign, parts: FabricParts, planes: int) -> str:
    from clusterwright.drawing.fabric import draw_text
    from clusterwright.units import show_money

    kinds = ", ".join(
        f"{kind} {count:,}"
        for kind, count in (
            ("node-leaf", design.node_leaf_cables),
            ("leaf-spine", design.leaf_spine_cables),
            ("spine-core", design.spine_core_cables),
        )
    )
    rate = f"{design.bisection_bytes_per_s / 1e12:,.2f} TB/s"
    lines = [
        draw_text(design),
        "",
        f"switches      {design.switches:,} (leaf {design.leaf:,}, spine {design.spine:,}, core {design.core:,})",
        f"cables        {design.cables:,} ({kinds})",
        f"bisection     {rate} one direction, over all rails",
        f"longest path  {design.most_hops} switches",
        f"grows to      {design.max_nodes:,} nodes in {design.tiers} tier{'s' if design.tiers > 1 else ''}",
        f"cost          {show_money(design.capex_usd or 0.0)} (switches, cables, optics)",
        f"power         {(design.power_w or 0.0) / 1e3:,.1f} kW at most",
    ]
    if planes > 1:
        total = planes * (design.capex_usd or 0.0)
        lines.append(f"planes        {planes}: {planes * design.switches:,} switches, {show_money(total)} together")
    lines += ["", "sources", *(f"  {source}" for source in parts.sources)]
    return "\n".join(lines)
