"""The networks of a whole cluster (compute, storage, management), and what each costs, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clusterwright.errors import InfeasibleError
from clusterwright.estimators.fabric import Topology, design_fabric, fabric_power, join_nodes
from clusterwright.facility import CapexPart, Network, Rail
from clusterwright.hardware import FabricDesign
from clusterwright.laws import fabric as laws

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusterwright.facility import FacilityFigures
    from clusterwright.hardware import FabricParts, Node, SwitchPart

SIZES_AT_ONCE = 512
"""Numbers of nodes that are tried together when looking how far a network grows. [1]"""
SAME = 1e-6
"""Share by which two bandwidths may differ and still be the same switch. [1]"""


class Priced(NamedTuple):
    """A switch as it goes into a sum: its price, and where that is from."""

    name: str
    usd: float | None
    source: str


def compute_network(node: Node, nodes: int, oversubscription: float, parts: FabricParts) -> Network | None:
    """The scale-out network of some nodes; none where a single node needs none, or no three tiers hold them.

    Args:
        node: What is joined.
        nodes: Spares included [1].
        oversubscription: Leaf bandwidth down over up [1].
        parts: Switches, prices and power.
    """
    if not node.scales_out:
        return None
    design = join_nodes(node, nodes, radix_for(node, parts), oversubscription, parts)
    return None if design is None else network_of("compute", design, parts)


def radix_for(node: Node, parts: FabricParts) -> int:
    """Ports of a switch at the speed of the node's NICs: the switch made for it, else the priced one divided."""
    made = [s for s in parts.switches if s.bits_per_s == node.nic_bits_per_s and s.fabric is node.fabric]
    if made:
        return max(s.ports for s in made)
    return max(2, int(parts.switch_ports * parts.bits_per_s / node.nic_bits_per_s)) // 2 * 2


def storage_network(
    nodes: int, bytes_per_s: float, uplinks: int, figures: FacilityFigures, parts: FabricParts
) -> Network | None:
    """The network of nodes, storage and in-band management.

    Args:
        nodes: Spares included [1].
        bytes_per_s: That storage must give or take at once [B/s]; it has at least two ports.
        uplinks: From the management network [1].
        figures: Ports of a node, their speed, oversubscription.
        parts: Switches, prices and power.
    """
    speed = figures.storage_bits_per_s
    devices = max(2, int(np.ceil(8.0 * bytes_per_s / speed))) + uplinks
    radix = max(2, int(parts.switch_ports * parts.bits_per_s / speed)) // 2 * 2
    ratio = figures.storage_oversubscription
    design = design_storage_fabric(nodes, figures.storage_nics, speed, radix, devices, ratio, parts)
    if design is None:
        design = _one_tree(nodes, figures.storage_nics, speed, radix, devices, ratio, parts)
    return None if design is None else network_of("storage", design, parts)


def _one_tree(  # noqa: PLR0917 - as design_storage_fabric
    nodes: int, nics: int, bits_per_s: float, radix: int, devices: int, oversubscription: float, parts: FabricParts
) -> FabricDesign | None:
    """A storage network that leaves of its own do not hold: one fat tree, in which storage stands as nodes do."""
    more = -(-devices // nics)
    try:
        whole = design_fabric(nodes + more, nics, bits_per_s, radix, Topology.SHARED_SPINE, oversubscription, parts)
    except InfeasibleError:
        return None
    design = whole.model_copy(update={
        "nodes": nodes, "node_leaf_cables": nodes * nics, "device_leaf_cables": devices,
        "cables": whole.cables - more * nics + devices, "max_nodes": whole.max_nodes - more,
    })  # fmt: skip
    return design.model_copy(update={"capex_usd": sum(line.usd or 0.0 for line in capex_by_part(design, parts))})


def design_storage_fabric(  # noqa: PLR0917 - one argument for each thing a designer chooses
    nodes: int, nics: int, bits_per_s: float, radix: int, devices: int, oversubscription: float, parts: FabricParts,
    *, device_leaves: int = 0,
) -> FabricDesign | None:  # fmt: skip
    """The design by `clusterwright.laws.fabric.storage_fabric`; none where two tiers do not hold it.

    Args:
        nodes: Nodes [1].
        nics: Ports of a node on this network [1].
        bits_per_s: Of a port [bit/s].
        radix: Ports of a switch at that speed [1].
        devices: Ports of storage and of what else is no node [1].
        oversubscription: Of the nodes' leaves [1].
        parts: Prices and power.
        device_leaves: Leaves that storage is to stand on [1]; 0: as many as its ports need.
    """
    counts = laws.storage_fabric(nodes, nics, devices, radix, oversubscription, device_leaves)
    tiers, leaf, spine = int(counts.tiers), int(counts.leaf), int(counts.spine)
    if tiers == 0:
        return None
    links = int(counts.leaf_spine_cables)
    ends = nodes * nics + devices
    like = laws.ClosCounts(*(np.asarray(v) for v in (tiers, leaf, spine, 0, ends, links, 0, 0)))
    ratio = oversubscription if tiers > 1 else 1.0
    design = FabricDesign(
        topology="shared-spine", tiers=tiers, leaf=leaf, spine=spine, core=0, nic_bits_per_s=bits_per_s,
        cables=ends + links, power_w=float(fabric_power(like, bits_per_s, radix, parts)), nodes=nodes, nics=nics,
        radix=radix, oversubscription=oversubscription, node_leaf_cables=nodes * nics, leaf_spine_cables=links,
        spine_core_cables=0, max_nodes=_most_nodes(nodes, nics, devices, radix, oversubscription, tiers),
        bisection_bytes_per_s=float(laws.bisection_bandwidth(nodes * nics, bits_per_s / 8.0, ratio)),
        most_hops=int(laws.most_hops(tiers)), device_leaf=int(counts.device_leaf), device_leaf_cables=devices,
    )  # fmt: skip
    return design.model_copy(update={"capex_usd": sum(line.usd or 0.0 for line in capex_by_part(design, parts))})


def _most_nodes(nodes: int, nics: int, devices: int, radix: int, oversubscription: float, tiers: int) -> int:
    """Nodes to which the design grows with the same tiers and storage."""
    if tiers == 1:
        return (radix - devices) // nics
    # Beyond some size one more group of leaves does not spread evenly any more: growth ends at the first that fails.
    least, most = nodes, nodes + radix * radix // nics
    while most - least > 1:
        sizes = np.unique(np.linspace(least, most, SIZES_AT_ONCE, dtype=np.int64))
        holds = laws.storage_fabric(sizes, nics, devices, radix, oversubscription).tiers > 0
        failed = len(sizes) - 1 if holds.all() else int(np.argmin(holds))
        least, most = int(sizes[failed - 1]), int(sizes[failed])
    return least


def management_network(nodes: int, switches: int, figures: FacilityFigures) -> Network:
    """Access switches for the management controller of every node and the management port of every switch.

    Each has uplinks to the storage network, which carries in-band traffic as well, and counts them; copper does,
    without optics.

    Args:
        nodes: Spares included [1].
        switches: Of all other networks [1].
        figures: Ports and uplinks of a management switch.
    """
    count = int(laws.access_switches(nodes + switches, figures.management_ports))
    design = FabricDesign(
        topology="access switches", tiers=1, leaf=count, spine=0, core=0, nic_bits_per_s=figures.management_bits_per_s,
        cables=nodes + switches, nodes=nodes, nics=1,
        radix=figures.management_ports, oversubscription=1.0, node_leaf_cables=nodes, leaf_spine_cables=0,
        spine_core_cables=0, max_nodes=count * figures.management_ports - switches, bisection_bytes_per_s=0.0,
        most_hops=1, device_leaf_cables=switches,
    )  # fmt: skip
    lines = (
        CapexPart(part="management switches", count=count, usd_each=None, usd=None),
        CapexPart(part="copper cables", count=design.cables, usd_each=None, usd=None),
    )
    return Network(
        purpose="management", design=design, transceivers=0, parts=lines, capex_usd=None,
        unpriced=tuple(line.part for line in lines), uplinks=count * figures.management_uplinks,
    )  # fmt: skip


def all_networks(
    compute: Network | None, nodes: int, write_bytes_per_s: float, figures: FacilityFigures, parts: FabricParts
) -> Iterator[Network]:
    """Compute (where there is one), storage and management; storage carries the uplinks of management.

    A single node has none: it keeps its data on its own disks, or in the rent.

    Args:
        compute: Of these nodes; none for a single one.
        nodes: Spares included [1].
        write_bytes_per_s: That storage takes [B/s].
        figures: Of storage and management.
        parts: Switches, prices and power.
    """
    if nodes <= 1:
        return
    switches = compute.design.switches if compute else 0
    if compute:
        yield compute
    uplinks = 0
    for _ in range(3):  # each network counts the other's switches; two rounds settle it
        store = storage_network(nodes, write_bytes_per_s, uplinks, figures, parts)
        manage = management_network(nodes, switches + (store.design.switches if store else 0), figures)
        uplinks = manage.uplinks
    if store:
        yield store
    yield manage


def network_of(purpose: str, design: FabricDesign, parts: FabricParts) -> Network:
    """A design with its optics and its costs."""
    lines = capex_by_part(design, parts)
    between = design.leaf_spine_cables + design.spine_core_cables
    each = parts.ports_a_transceiver
    ends = design.cables - between
    optics = design.nodes * int(laws.transceivers(design.nics, each)) + int(laws.transceivers(ends + 2 * between, each))
    known = [line.usd for line in lines if line.usd is not None]
    return Network.model_validate({
        "purpose": purpose,
        "design": design,
        "transceivers": optics,
        "parts": lines,
        "capex_usd": sum(known) if known else None,
        "unpriced": tuple(line.part for line in lines if line.usd is None),
    })  # fmt: skip


def capex_by_part(design: FabricDesign, parts: FabricParts) -> tuple[CapexPart, ...]:
    """What a designed network costs to buy, part by part: switches by tier, and links by kind with both their ends.

    Args:
        design: The network.
        parts: What was priced.

    Returns:
        A line for each part that the design has; the lines add up to its capex.
    """
    switch = price_of_switch(design.radix, design.nic_bits_per_s, parts)
    speed = design.nic_bits_per_s / parts.bits_per_s
    scaled = "" if abs(speed - 1.0) < SAME else f"; scaled from {parts.bits_per_s / 1e9:g} Gb/s with the speed"
    link = (parts.sources[0] if parts.sources else "") + scaled
    near, far = parts.node_link_usd * speed, parts.switch_link_usd * speed
    lines = (
        *((f"{tier} switches ({switch.name})", count, switch.usd, switch.source)
          for tier, count in (("leaf", design.leaf), ("spine", design.spine), ("core", design.core))),
        ("links node to leaf", design.node_leaf_cables, near, link),
        ("links storage to leaf", design.device_leaf_cables, near, link),
        ("links leaf to spine", design.leaf_spine_cables, far, link),
        ("links spine to core", design.spine_core_cables, far, link),
    )  # fmt: skip
    return tuple(
        CapexPart(part=name, count=count, usd_each=each, usd=None if each is None else count * each, source=source)
        for name, count, each, source in lines
        if count
    )


def price_of_switch(radix: int, bits_per_s: float, parts: FabricParts) -> Priced:
    """The price of a switch of some ports: its own where one was found, else that of the priced one by bandwidth."""
    whole = radix * bits_per_s
    made = [s for s in parts.switches if s.ports == radix and s.bits_per_s == bits_per_s]
    split = [s for s in parts.switches if _split(s, whole, bits_per_s)]
    for switch in (*made, *split):
        if switch.usd is not None:
            halves = "" if switch.ports == radix else f", its ports divided into {radix}"
            return Priced(switch.name, switch.usd, f"{switch.source}{halves}")
    name = made[0].name if made else f"{radix} ports of {bits_per_s / 1e9:g} Gb/s"
    usd = parts.switch_usd * whole / (parts.switch_ports * parts.bits_per_s)
    source = parts.sources[0] if parts.sources else ""
    return Priced(name, usd, f"no public price was found; scaled with the bandwidth from {source}")


def _split(switch: SwitchPart, whole_bits_per_s: float, bits_per_s: float) -> bool:
    """Whether the ports of a switch can be divided into those asked for."""
    same = abs(switch.ports * switch.bits_per_s / whole_bits_per_s - 1.0) < SAME
    return same and switch.bits_per_s > bits_per_s


def rails_of(node: Node, design: FabricDesign) -> tuple[Rail, ...]:
    """Which leaves each NIC of a node goes to, and which accelerators are nearest to it.

    NIC and accelerators are numbered along the node: with as many NICs as accelerators, NIC *k* serves accelerator *k*.
    """
    networks = design.nics if design.topology == Topology.INDEPENDENT_RAILS else 1
    found = []
    for nic in range(design.nics):
        first, last = (round(node.accelerators * end / design.nics) for end in (nic, nic + 1))
        nearest = range(first, last) if last > first else range(first, first + 1)
        if design.leaf == 1:
            leaves = range(1)
        elif networks > 1:
            each = design.leaf // design.nics
            leaves = range(nic * each, (nic + 1) * each)
        else:
            leaves = range(nic, design.leaf, design.nics)
        found.append(Rail(nic=nic, accelerators=tuple(nearest), leaves=tuple(leaves)))
    return tuple(found)
