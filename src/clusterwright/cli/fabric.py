"""``clusterwright fabric``: design the scale-out network of a cluster."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clusterwright.estimators.adequacy import NetworkChoice
    from clusterwright.hardware import FabricDesign, FabricParts
    from clusterwright.plan import Plan

TOPOLOGIES = ("shared-spine", "independent-rails")


SMALLEST, LARGEST = 1e-6, 1e21
"""Of a number on the command line; beyond them no cluster is, and products of them overflow."""


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
        if number and not SMALLEST <= number <= LARGEST:
            self.fail(f"{str(value)!r} is not between {SMALLEST:g} and {LARGEST:g}", param, ctx)
        return number


POSITIVE = FiniteNumber()
NOT_NEGATIVE = FiniteNumber(zero=True)


@click.command("fabric")
@click.option("--nodes", type=click.IntRange(min=1), help="Nodes to join.")
@click.option("--nics", type=click.IntRange(min=1), help="NICs a node on this network.")
@click.option("--nic-gbps", type=POSITIVE, help="Speed of one NIC and switch port [Gb/s].")
@click.option("--radix", type=click.IntRange(min=2), help="Ports of a switch at that speed.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path),
              help="Take nodes, NICs and speed from this plan, and say which network its job needs.")  # fmt: skip
@click.option("--topology", type=click.Choice(TOPOLOGIES), default=TOPOLOGIES[0], show_default=True,
              help="Rail-aligned leaves under common spines, or a network a rail.")  # fmt: skip
@click.option("--oversubscription", type=POSITIVE, default=1.0, show_default=True, help="Leaf bandwidth down over up.")
@click.option("--planes", type=click.IntRange(min=1), default=1, show_default=True,
              help="Equal networks side by side; everything printed is of one, `planes_*` of all.")  # fmt: skip
@click.option("--manager-ports", type=click.IntRange(min=0), default=0, show_default=True,
              help="Leaf ports kept for the fabric manager (UFM takes a node's place on the last leaves).")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path), help="Draw the topology to this .svg or .png file.")
@click.option("--cables", "cable_list", type=click.Path(path_type=Path), help="Write every cable to this .csv file.")
@click.option(
    "--rack-map", type=click.Path(path_type=Path), help="Write which node stands in which rack, to this .csv."
)
@click.option("--rack-kw", type=POSITIVE, default=40.0, show_default=True, help="Power of one rack.")
@click.option("--node-kw", type=POSITIVE, help="Draw of one node [default: that of the plan].")
@click.option(
    "--storage-nics", type=click.IntRange(min=1), help="Also design a storage network of so many NICs a node."
)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - one argument an option
    nodes: int | None,
    nics: int | None,
    nic_gbps: float | None,
    radix: int | None,
    plan_file: Path | None,
    topology: str,
    oversubscription: float,
    planes: int,
    manager_ports: int,
    plot: Path | None,
    cable_list: Path | None,
    rack_map: Path | None,
    rack_kw: float,
    node_kw: float | None,
    storage_nics: int | None,
    style: str,
) -> None:
    """Design the scale-out network: switches, cables, cost, power, and how far it grows."""
    from clusterwright import api
    from clusterwright.catalog.cluster_parts import load_fabric_parts

    parts = load_fabric_parts()
    asked = _Asked(nodes, nics, nic_gbps, radix)
    plan = _read(plan_file)
    if plan is not None:
        asked = asked.completed_by(plan, parts)
    count, each, speed, ports = asked.whole()
    joined = functools.partial(api.fabric, nodes=count, nic_gbps=speed / 1e9, radix=ports)
    design = joined(nics=each, topology=topology, oversubscription=oversubscription, manager_ports=manager_ports)
    files = _files(design, plot, cable_list) | _rack_file(design.nodes, rack_map, rack_kw, node_kw, plan)
    if files:
        from clusterwright.files import write_all_atomically

        write_all_atomically(files)
    document = _document(design, parts, planes, manager_ports)
    if storage_nics is not None:
        storage = joined(nics=storage_nics)
        document["storage_fabric"] = storage.model_dump(mode="json") | {"switches": storage.switches}
    if plan is not None:
        document |= _needs(plan) | {"site": _site(plan)}
    if style == "json":
        print(json.dumps(document, allow_nan=False))
    else:
        print(_text(design, parts, planes))
        if storage_nics is not None:
            print(f"\nstorage network, apart: {storage.switches} switches, {storage.cables:,} cables, "
                  f"${storage.capex_usd or 0.0:,.0f}")  # fmt: skip
        if plan is not None:
            print(_needs_text(document))


@dataclass(frozen=True)
class _Asked:
    """What joins what, as far as it was given."""

    nodes: int | None
    nics: int | None
    nic_gbps: float | None
    radix: int | None

    def completed_by(self, plan: Plan, parts: FabricParts) -> _Asked:
        """What was not given, from a plan; the switch is the priced one, split into ports of the NIC's speed."""
        node, chosen = plan.hardware_node, plan.chosen
        if node is None or chosen is None or not node.scales_out:
            return self
        gbps = self.nic_gbps or node.nic_bits_per_s / 1e9
        ports = int(parts.switch_ports * parts.bits_per_s / (gbps * 1e9)) // 2 * 2
        return _Asked(
            self.nodes or chosen.nodes + chosen.spares, self.nics or node.nics, gbps, self.radix or max(2, ports)
        )

    def whole(self) -> tuple[int, int, float, int]:
        """All of it; what is missing is a usage error."""
        for option, value in (
            ("--nodes", self.nodes), ("--nics", self.nics), ("--nic-gbps", self.nic_gbps), ("--radix", self.radix)
        ):  # fmt: skip
            if value is None:
                raise click.MissingParameter(param_hint=f"'{option}'", param_type="option")
        return int(self.nodes or 0), int(self.nics or 0), float(self.nic_gbps or 0.0) * 1e9, int(self.radix or 0)


def _read(plan_file: Path | None) -> Plan | None:
    from clusterwright.plan import read_plan, require_chosen

    if plan_file is None:
        return None
    plan = read_plan(plan_file)
    require_chosen(plan, plan_file)
    return plan


def _needs(plan: Plan) -> dict[str, object]:
    """Every network weighed for the plan's job, and of each kind the smallest that costs little."""
    from clusterwright.estimators import adequacy

    choices = adequacy.weigh_networks_of_plan(plan)
    smallest = []
    for kind in adequacy.FABRICS:
        found = adequacy.smallest_adequate(choices, kind)
        larger = adequacy.next_larger(choices, found) if found else None
        smallest.append({
            "fabric": kind.value,
            "adequate": None if found is None else _choice(found),
            "size_up_saves_s": None if found is None or larger is None else found.step_time_s - larger.step_time_s,
        })  # fmt: skip
    return {"networks": [_choice(c) for c in choices], "smallest_adequate": smallest}


def _site(plan: Plan) -> dict[str, object]:
    """Power, space and energy of the plan's run."""
    from clusterwright.catalog.cluster_parts import load_site_figures
    from clusterwright.estimators.site import estimate_site

    chosen, figures = plan.chosen, load_site_figures()
    assert chosen is not None  # noqa: S101 - read with a choice
    nodes = chosen.nodes + chosen.spares
    need = estimate_site(nodes, _node_w(plan), chosen.estimate.power_w, chosen.estimate.train_time_s, figures.pue)
    kwh = need.energy_j / 3.6e6
    return {**asdict(need), "energy_usd": kwh * figures.usd_per_kwh, "sources": list(figures.sources)}


def _choice(choice: NetworkChoice) -> dict[str, object]:
    return {**asdict(choice), "fabric": choice.fabric.value}


def _needs_text(document: dict[str, object]) -> str:
    """What the job needs, a line for each kind of fabric."""
    from clusterwright.estimators.adequacy import ADEQUATE

    lines = ["", f"what the job of the plan needs (smallest network that costs at most {100 * ADEQUATE:g}% of a step)"]
    rows = document["smallest_adequate"]
    assert isinstance(rows, list)  # noqa: S101 - built above
    for row in rows:
        found, saves = row["adequate"], row["size_up_saves_s"]
        if found is None:
            lines.append(f"  {row['fabric']:<12} none of those weighed")
            continue
        size = f"{found['node_bits_per_s'] / 1e9:,.0f} Gb/s a node at {found['oversubscription']:g}:1"
        more = "" if saves is None else f"; a size up saves {1e3 * saves:,.0f} ms of {found['step_time_s']:,.2f} s"
        lines.append(f"  {row['fabric']:<12} {size}, costs {100 * found['cost_share']:.1f}%{more}")
    site = document["site"]
    assert isinstance(site, dict)  # noqa: S101 - built above
    racks = ", ".join(f"{w / 1e3:g} kW {'none fits' if n is None else n}" for w, n in site["racks"])
    kw = [site[key] / 1e3 for key in ("site_power_w", "cooling_power_w")]
    lines += [
        "",
        f"site          {kw[0]:,.0f} kW at PUE {site['pue']:g}, of it cooling and losses {kw[1]:,.0f} kW",
        f"energy        {site['energy_j'] / 3.6e9:,.0f} MWh for the run, ${site['energy_usd']:,.0f}",
        f"racks         {racks}",
    ]
    return "\n".join(lines)


def _rack_file(
    nodes: int, rack_map: Path | None, rack_kw: float, node_kw: float | None, plan: Plan | None
) -> dict[Path, str | bytes]:
    """Which node stands in which rack, by power."""
    from clusterwright.drawing.fabric import list_racks

    if rack_map is None:
        return {}
    if node_kw is None and plan is not None:
        node_kw = _node_w(plan) / 1e3
    if node_kw is None:
        raise click.MissingParameter(
            "a rack map needs the draw of a node", param_hint="'--node-kw'", param_type="option"
        )
    return {rack_map: list_racks(nodes, node_kw * 1e3, rack_kw * 1e3)}


def _node_w(plan: Plan) -> float:
    """Draw of one node of a plan; the switches are apart."""
    chosen = plan.chosen
    assert chosen is not None  # noqa: S101 - read with a choice
    return (chosen.estimate.power_w - (chosen.fabric.power_w or 0.0)) / (chosen.nodes + chosen.spares)


def _files(design: FabricDesign, plot: Path | None, cable_list: Path | None) -> dict[Path, str | bytes]:
    from clusterwright.drawing import fabric as drawing
    from clusterwright.drawing.picture import picture

    files: dict[Path, str | bytes] = {}
    if plot is not None:
        files[plot] = picture(drawing.draw_svg(design), plot)
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
