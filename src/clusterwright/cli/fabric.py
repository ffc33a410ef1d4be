"""``clusterwright fabric``: design the scale-out network of a cluster."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clusterwright.facility import Facility, Network
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
@click.option("--topology", type=click.Choice(TOPOLOGIES), show_default=TOPOLOGIES[0],
              help="Rail-aligned leaves under common spines, or a network a rail.")  # fmt: skip
@click.option("--oversubscription", type=POSITIVE, show_default="1, or that of the plan",
              help="Leaf bandwidth down over up.")  # fmt: skip
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
@click.option("--storage-nics", type=click.IntRange(min=1),
              help="Also design a storage network of so many NICs a node, and the management network.")  # fmt: skip
@click.option("--storage-ports", type=click.IntRange(min=1),
              help="Ports of storage on it [default: 3 for every 8 nodes].")  # fmt: skip
@click.option("--storage-leaves", type=click.IntRange(min=1),
              help="Leaves that storage stands on [default: what its ports need, at least two].")  # fmt: skip
@click.option("--storage-oversubscription", type=POSITIVE, default=4 / 3, show_default="4/3",
              help="Of the nodes' leaves there; storage itself is never oversubscribed.")  # fmt: skip
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - one argument an option
    nodes: int | None,
    nics: int | None,
    nic_gbps: float | None,
    radix: int | None,
    plan_file: Path | None,
    topology: str | None,
    oversubscription: float | None,
    planes: int,
    manager_ports: int,
    plot: Path | None,
    cable_list: Path | None,
    rack_map: Path | None,
    rack_kw: float,
    node_kw: float | None,
    storage_nics: int | None,
    storage_ports: int | None,
    storage_leaves: int | None,
    storage_oversubscription: float,
    style: str,
) -> None:
    """Design the networks of a cluster: switches, cables, cost, power, and how far they grow."""
    from clusterwright import api
    from clusterwright.catalog.cluster_parts import load_fabric_parts

    parts = load_fabric_parts()
    asked = _Asked(nodes, nics, nic_gbps, radix)
    plan = _read(plan_file)
    facility = None if plan is None else api.facility_of(plan)
    compute = facility and facility.network("compute")
    if plan is not None:
        asked = asked.completed_by(plan, parts)
    if facility is not None and not compute and nics is None and not asked.nics:
        _only_the_plan(facility, style)
        return
    count, each, speed, ports = asked.whole()
    design = api.fabric(
        nodes=count, nics=each, nic_gbps=speed / 1e9, radix=ports, manager_ports=manager_ports,
        topology=topology or (compute.design.topology if compute else TOPOLOGIES[0]),
        oversubscription=oversubscription or (compute.design.oversubscription if compute else 1.0),
    )  # fmt: skip
    apart = () if storage_nics is None else _apart(
        design, parts, storage_nics, storage_ports, storage_leaves, storage_oversubscription
    )  # fmt: skip
    networks = facility.networks if facility and not storage_nics else apart
    files = _files(design, networks, plot, cable_list) | _rack_file(design.nodes, rack_map, rack_kw, node_kw, plan)
    if files:
        from clusterwright.files import write_all_atomically

        write_all_atomically(files)
    document = _document(design, parts, planes, manager_ports)
    if apart:
        document["storage_fabric"] = {
            **apart[1].design.model_dump(mode="json"), "switches": apart[1].design.switches,
        }  # fmt: skip
        document["cluster_networks"] = [n.model_dump(mode="json") for n in apart]
    if facility is not None:
        document |= _of_plan(facility)
    if style == "json":
        print(json.dumps(document, allow_nan=False))
    else:
        from clusterwright.report import wrapped

        print(_text(design, networks, parts, planes))
        if apart:
            print("\n".join(["", *(wrapped(n.purpose, _apart_text(n)) for n in apart[1:])]))
        if facility is not None:
            print(_plan_text(facility))
        print("\n".join(["", "sources", *(wrapped("  ", source, 4) for source in parts.sources)]))


def _only_the_plan(facility: Facility, style: str) -> None:
    """What a plan says where its one node has no network that is known."""
    if style == "json":
        print(json.dumps(_of_plan(facility), allow_nan=False))
    else:
        print(_plan_text(facility).lstrip("\n"))


def _apart(
    design: FabricDesign, parts: FabricParts, nics: int, ports: int | None, leaves: int | None, oversubscription: float
) -> tuple[Network, ...]:
    """The compute network with a storage network of the same switches and a management network."""
    from clusterwright.catalog.cluster_parts import load_site_figures
    from clusterwright.errors import InfeasibleError
    from clusterwright.estimators.networks import design_storage_fabric, management_network, network_of

    nodes = design.nodes
    devices = ports or -(-3 * nodes // 8)
    storage = design_storage_fabric(
        nodes, nics, design.nic_bits_per_s, design.radix, devices, oversubscription, parts, device_leaves=leaves or 0
    )
    if storage is None:
        raise InfeasibleError(f"--storage-nics {nics}: two tiers do not hold {nodes:,} nodes and {devices:,} ports")
    # Where the uplinks of management end is not asked here: there is no in-band network.
    figures = load_site_figures().model_copy(update={"management_uplinks": 0})
    management = management_network(nodes, design.switches + storage.switches, figures)
    return network_of("compute", design, parts), network_of("storage", storage, parts), management


def _apart_text(network: Network) -> str:
    """A network beside the compute network in one line."""
    from clusterwright.units import show_money

    design = network.design
    cost = "no price known" if network.capex_usd is None else show_money(network.capex_usd)
    switches = f"{design.switches:,} switch{'' if design.switches == 1 else 'es'}"
    tiers = f" (leaf {design.leaf:,}, of them {design.device_leaf:,} of storage, spine {design.spine:,})"
    where = tiers if design.spine else ""
    return f"{switches}{where}, {design.cables:,} cables, {network.transceivers:,} optical modules, {cost}"


@dataclass(frozen=True)
class _Asked:
    """What joins what, as far as it was given."""

    nodes: int | None
    nics: int | None
    nic_gbps: float | None
    radix: int | None

    def completed_by(self, plan: Plan, parts: FabricParts) -> _Asked:
        """What was not given, from a plan; the switch is the one of the NIC's speed."""
        node, chosen = plan.hardware_node, plan.chosen
        if node is None or chosen is None or not node.scales_out:
            return self
        from clusterwright.estimators.networks import radix_for

        gbps = self.nic_gbps or node.nic_bits_per_s / 1e9
        asked = node.model_copy(update={"nic_bits_per_s": gbps * 1e9})
        return _Asked(
            self.nodes or chosen.nodes + chosen.spares, self.nics or node.nics, gbps,
            self.radix or radix_for(asked, parts),
        )  # fmt: skip

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


def _of_plan(facility: Facility) -> dict[str, object]:
    """Every network weighed for the plan's job, of each kind the smallest that costs little, and the whole site."""
    whole = facility.model_dump(mode="json")
    smallest = [{**need, "size_up_saves_s": need["next_up_saves_s"]} for need in whole["needs"]]
    power = {**whole["power"], "sources": _site_sources()}
    return {
        "networks": whole["choices"],
        "smallest_adequate": smallest,
        "site": power,
        "cluster_networks": whole["networks"],
        "rails": whole["rails"],
    }


def _site_sources() -> list[str]:
    from clusterwright.catalog.cluster_parts import load_site_figures

    return list(load_site_figures().sources)


def _plan_text(facility: Facility) -> str:
    """The plan's other networks, what its job needs, a line for each kind of fabric, and its site."""
    from clusterwright.estimators.adequacy import ADEQUATE
    from clusterwright.units import show_money

    if facility.network("compute") is None:
        return _site_text(facility, ["", "what the job of the plan needs: no network; it runs on one node"])
    lines = ["", f"what the job of the plan needs (smallest network that costs at most {100 * ADEQUATE:g}% of a step)"]
    for need in facility.needs:
        least = need.adequate
        if least is None:
            best = min((c for c in facility.choices if c.fabric is need.fabric), key=lambda c: c.cost_share)
            at = f"{best.node_bits_per_s / 1e9:,.0f} Gb/s at {best.oversubscription:g}:1"
            lines.append(f"  {need.fabric.value:<12} none of those weighed: {at} costs {100 * best.cost_share:.1f}%")
            continue
        size = f"{least.node_bits_per_s / 1e9:,.0f} Gb/s a node at {least.oversubscription:g}:1"
        more = ""
        if need.next_up_saves_s is not None:
            saves = f"{1e3 * need.next_up_saves_s:,.0f} ms of {least.step_time_s:,.2f} s"
            usd = need.next_up_saves_usd or 0.0
            more = f"; a size up saves {saves}" + (f", {show_money(usd)}" if usd >= 1 else "")
        lines.append(f"  {need.fabric.value:<12} {size}, costs {100 * least.cost_share:.1f}%{more}")
    return _site_text(facility, [*lines, *_losses(facility)])


def _site_text(facility: Facility, lines: list[str]) -> str:
    """The lines, and under them the plan's networks, rails, power and racks."""
    from clusterwright.report import facility_lines, wrapped

    rows = [(name, text) for name, text in facility_lines(facility) if name in ("networks", "power")]
    if facility.rails:
        rows.insert(0, ("rails", _rails_text(facility)))
    return "\n".join([*lines, "", *(wrapped(name, text) for name, text in rows)])


def _losses(facility: Facility) -> list[str]:
    """Share of a step lost on every network weighed: a row for each kind and oversubscription, a column a speed."""
    speeds = list(dict.fromkeys(c.node_bits_per_s for c in facility.choices))
    rows: dict[str, list[str]] = {}
    for choice in facility.choices:
        rows.setdefault(f"{choice.fabric.value:<11}{choice.oversubscription:g}:1", []).append(
            f"{choice.cost_share:7.1%}"
        )
    if not rows:
        return []
    head = " ".join(f"{speed / 1e9:7,.0f}" for speed in speeds)
    title = "share of a step that each network costs, by Gb/s a node"
    return ["", title, f"  {'':<14} {head}", *(f"  {name:<14} {' '.join(cells)}" for name, cells in rows.items())]


def _rails_text(facility: Facility) -> str:
    """Which leaves each NIC goes to, as a rule and its first case."""
    rails = facility.rails
    if len({rail.leaves for rail in rails}) == 1:
        return f"all {len(rails)} NICs of every node on leaf {rails[0].leaves[0]}"
    first, last = rails[0], rails[-1]
    shown = [f"NIC {r.nic} (accelerator {_listed(r.accelerators)}) on leaf {_listed(r.leaves)}" for r in (first, last)]
    return f"{len(rails)}: {shown[0]}; ... {shown[1]}"


def _listed(numbers: tuple[int, ...]) -> str:
    """Numbers, a long row shortened."""
    shown = [str(n) for n in numbers[:4]]
    return ", ".join([*shown, "..."] if len(numbers) > len(shown) else shown)


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


def _files(
    design: FabricDesign, networks: tuple[Network, ...], plot: Path | None, cable_list: Path | None
) -> dict[Path, str | bytes]:
    from clusterwright.drawing import cabling, cluster
    from clusterwright.drawing import fabric as drawing
    from clusterwright.drawing.picture import picture

    files: dict[Path, str | bytes] = {}
    if plot is not None:
        svg = cluster.draw_cluster(networks, design.nodes, _title(design)) if networks else drawing.draw_svg(design)
        files[plot] = picture(svg, plot)
    if cable_list is not None:
        files[cable_list] = cabling.list_all_cables(networks) if networks else drawing.list_cables(design)
    return files


def _title(design: FabricDesign) -> str:
    nodes = f"{design.nodes:,} node{'' if design.nodes == 1 else 's'}"
    return f"{nodes} of {design.nics} ports of {design.nic_bits_per_s / 1e9:g} Gb/s"


def _document(design: FabricDesign, parts: FabricParts, planes: int, manager_ports: int) -> dict[str, object]:
    from clusterwright.estimators.fabric import explain_fabric
    from clusterwright.estimators.networks import capex_by_part, network_of

    return {
        **design.model_dump(mode="json"),
        "switches": design.switches,
        "transceivers": network_of("compute", design, parts).transceivers,
        "capex_parts": [line.model_dump(mode="json") for line in capex_by_part(design, parts)],
        "planes": planes,
        "planes_switches": planes * design.switches,
        "planes_capex_usd": planes * (design.capex_usd or 0.0),
        "manager_ports": manager_ports,
        "terms": explain_fabric(design, parts).model_dump(mode="json"),
        "sources": list(parts.sources),
    }


def _text(design: FabricDesign, networks: tuple[Network, ...], parts: FabricParts, planes: int) -> str:
    from clusterwright.drawing.cluster import draw_cluster_text
    from clusterwright.drawing.fabric import draw_text
    from clusterwright.estimators.networks import network_of
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
        draw_cluster_text(networks, design.nodes, _title(design)) if networks else draw_text(design),
        "",
        f"switches      {design.switches:,} (leaf {design.leaf:,}, spine {design.spine:,}, core {design.core:,})",
        f"cables        {design.cables:,} ({kinds})",
        f"optics        {network_of('compute', design, parts).transceivers:,} modules, of nodes and of switches",
        f"bisection     {rate} one direction, over all rails",
        f"longest path  {design.most_hops} switch{'' if design.most_hops == 1 else 'es'}",
        f"grows to      {design.max_nodes:,} nodes in {design.tiers} tier{'s' if design.tiers > 1 else ''}",
        f"cost          {show_money(design.capex_usd or 0.0)} (switches, cables, optics)",
        f"power         {(design.power_w or 0.0) / 1e3:,.1f} kW at most",
    ]
    if planes > 1:
        total = planes * (design.capex_usd or 0.0)
        lines.append(f"planes        {planes}: {planes * design.switches:,} switches, {show_money(total)} together")
    return "\n".join(lines)
