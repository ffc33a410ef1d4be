"""The scale-out network of a cluster: its switches and cables by law, its cost and power from priced parts.

One door for one design, :func:`design_fabric`; the same laws over arrays of node counts, :func:`fabric_counts`,
:func:`fabric_capex` and :func:`fabric_power`, for a search over many clusters.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.errors import InfeasibleError, InputError
from clusterwright.hardware import FabricDesign
from clusterwright.laws import fabric as laws
from clusterwright.term import Kind, Term

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.hardware import FabricParts, Node
    from clusterwright.laws.fabric import ClosCounts
    from clusterwright.units import Count, Share

LARGEST_RADIX = 4096
"""Ports of the largest chassis that the law is asked for; it loops over ports."""

MOST_ENDPOINTS = 2**40
"""Beyond this the integers of the law would overflow; three tiers of the largest radix hold fewer."""


class Topology(StrEnum):
    """The two rules that people build; the first that holds the nodes is taken."""

    SHARED_SPINE = "shared-spine"
    INDEPENDENT_RAILS = "independent-rails"


_LAW = {Topology.SHARED_SPINE: laws.shared_spine, Topology.INDEPENDENT_RAILS: laws.independent_rails}


def fabric_counts(
    nodes: Count, nics: Count, radix: Count, topology: Topology | str, oversubscription: Share = 1.0
) -> ClosCounts:
    """Switches and cables for arrays of node counts.

    Args:
        nodes: Nodes [1], any shape.
        nics: NICs a node on this network [1].
        radix: Ports of a switch at the speed of the NIC [1].
        topology: ``shared-spine`` or ``independent-rails``.
        oversubscription: Leaf bandwidth down over up [1].

    Returns:
        The counts, of the broadcast shape; ``tiers`` is 0 where three tiers do not hold the nodes.

    >>> fabric_counts(np.array([128, 512]), 8, 64, "shared-spine").switches
    array([ 48, 320])
    """
    return _LAW[Topology(topology)](nodes, nics, radix, oversubscription)


def fabric_capex(counts: ClosCounts, nic_bits_per_s: Count, radix: Count, parts: FabricParts) -> NDArray[np.float64]:
    """Price of switches, cables and optics [USD], of the shape of the counts.

    Switches scale with their bandwidth (ports times speed), links with their speed, from the one size priced.
    """
    speed = np.asarray(nic_bits_per_s, dtype=np.float64) / parts.bits_per_s
    switch = parts.switch_usd * speed * np.asarray(radix) / parts.switch_ports
    links = parts.node_link_usd * counts.node_leaf_cables + parts.switch_link_usd * (
        counts.leaf_spine_cables + counts.spine_core_cables
    )
    usd: NDArray[np.float64] = counts.switches * switch + links * speed
    return usd


def fabric_power(counts: ClosCounts, nic_bits_per_s: Count, radix: Count, parts: FabricParts) -> NDArray[np.float64]:
    """Largest draw of switches and of the optics at the nodes [W], of the shape of the counts."""
    speed = np.asarray(nic_bits_per_s, dtype=np.float64) / parts.bits_per_s
    switch = parts.switch_w * speed * np.asarray(radix) / parts.switch_ports
    watts: NDArray[np.float64] = counts.switches * switch + counts.node_leaf_cables * parts.node_optics_w * speed
    return watts


def design_fabric(  # noqa: PLR0917 - one argument for each thing a designer chooses
    nodes: int,
    nics: int,
    nic_bits_per_s: float,
    radix: int,
    topology: Topology | str,
    oversubscription: float,
    parts: FabricParts,
    *,
    manager_ports: int = 0,
) -> FabricDesign:
    """The network that joins these nodes.

    Args:
        nodes: Nodes [1].
        nics: NICs a node on this network [1].
        nic_bits_per_s: Speed of one NIC and of one switch port [bit/s].
        radix: Ports of a switch at that speed [1].
        topology: ``shared-spine`` or ``independent-rails``.
        oversubscription: Leaf bandwidth down over up [1].
        parts: Prices and power.
        manager_ports: Leaf ports kept for the fabric manager; they take the places of whole nodes [1].

    Returns:
        Counts, capex, power, bisection bandwidth; ``cables`` includes those of the fabric manager.

    Raises:
        InputError: an argument that no network has; names it.
        InfeasibleError: three tiers of such switches do not hold the nodes.
    """
    _check(nodes, nics, nic_bits_per_s, radix, oversubscription)
    topology = Topology(topology)
    if int(laws.leaf_ports(radix, oversubscription)[0]) == 0:
        msg = f"oversubscription: {oversubscription:g} leaves no split of the {radix} ports of a leaf into down and up"
        raise InputError(msg)
    taken = -(-manager_ports // nics)
    counts = fabric_counts(nodes + taken, nics, radix, topology, oversubscription)
    if int(counts.tiers) == 0:
        msg = (
            f"nodes: {nodes:,} nodes of {nics} NICs do not fit three tiers of {radix}-port switches with "
            f"{topology}; a larger radix, independent rails or fewer nodes would"
        )
        raise InfeasibleError(msg)
    counts = counts._replace(node_leaf_cables=np.asarray(nodes * nics + manager_ports))
    # Between two halves only the network's own spines carry; in one tier a switch is non-blocking.
    ratio = oversubscription if int(counts.tiers) > 1 else 1.0
    return FabricDesign(
        topology=topology.value,
        tiers=int(counts.tiers),
        leaf=int(counts.leaf),
        spine=int(counts.spine),
        core=int(counts.core),
        nic_bits_per_s=nic_bits_per_s,
        cables=int(counts.cables),
        capex_usd=float(fabric_capex(counts, nic_bits_per_s, radix, parts)),
        power_w=float(fabric_power(counts, nic_bits_per_s, radix, parts)),
        nodes=nodes,
        nics=nics,
        radix=radix,
        oversubscription=oversubscription,
        node_leaf_cables=nodes * nics,
        leaf_spine_cables=int(counts.leaf_spine_cables),
        spine_core_cables=int(counts.spine_core_cables),
        max_nodes=int(counts.max_nodes) - taken,
        bisection_bytes_per_s=float(laws.bisection_bandwidth(nodes * nics, nic_bits_per_s / 8.0, ratio)),
        most_hops=int(laws.most_hops(counts.tiers)),
    )


def join_nodes(node: Node, nodes: int, radix: int, oversubscription: float, parts: FabricParts) -> FabricDesign | None:
    """The network of some nodes by the first topology that holds them; none for a single one, or where none does.

    Args:
        node: What is joined.
        nodes: Spares included [1].
        radix: Ports of a switch at the speed of the node's NICs [1].
        oversubscription: Leaf bandwidth down over up [1].
        parts: Prices and power.
    """
    if nodes <= 1 or not node.scales_out:
        return None
    return first_fabric(nodes, node.nics, node.nic_bits_per_s, radix, oversubscription, parts)


def first_fabric(
    nodes: int, nics: int, nic_bits_per_s: float, radix: int, oversubscription: float, parts: FabricParts
) -> FabricDesign | None:
    """The network by the first topology that holds the nodes; none where none does. Arguments as of `design_fabric`."""
    for topology in Topology:
        try:
            return design_fabric(nodes, nics, nic_bits_per_s, radix, topology, oversubscription, parts)
        except InfeasibleError:
            continue
    return None


def _check(nodes: int, nics: int, nic_bits_per_s: float, radix: int, oversubscription: float) -> None:
    """Refuse what no network has, all faults in one line."""
    faults = [
        f"{name}: {value} is less than {least}"
        for name, value, least in (("nodes", nodes, 1), ("nics", nics, 1), ("radix", radix, 2))
        if value < least
    ]
    if radix > LARGEST_RADIX:
        faults.append(f"radix: {radix} is more than {LARGEST_RADIX} ports")
    if nodes * nics > MOST_ENDPOINTS:
        faults.append(f"nodes: {nodes} is more than any network holds")
    faults += [
        f"{name}: {value} is not a positive finite number"
        for name, value in (("nic_bits_per_s", nic_bits_per_s), ("oversubscription", oversubscription))
        if not (np.isfinite(value) and value > 0)
    ]
    if faults:
        raise InputError("; ".join(faults))


def explain_fabric(design: FabricDesign, parts: FabricParts) -> Term:
    """The cost of a design as a tree: switches by tier, links by kind, each with its price and source."""
    speed = design.nic_bits_per_s / parts.bits_per_s
    switch = parts.switch_usd * speed * design.radix / parts.switch_ports
    same = speed == 1.0 and design.radix == parts.switch_ports
    kind = Kind.MEASURED if same else Kind.ESTIMATED
    source = parts.sources[0] if parts.sources else ""
    law = f"{design.topology} fat tree, parallel-links rule; DGX SuperPOD reference architectures"
    lines = [
        *((f"{name} switches", count, switch) for name, count in
          (("leaf", design.leaf), ("spine", design.spine), ("core", design.core))),
        ("node-leaf links", design.node_leaf_cables, parts.node_link_usd * speed),
        ("leaf-spine links", design.leaf_spine_cables, parts.switch_link_usd * speed),
        ("spine-core links", design.spine_core_cables, parts.switch_link_usd * speed),
    ]  # fmt: skip
    made = tuple(
        Term(
            name=name,
            value=count * price,
            unit="USD",
            kind=kind,
            source=source,
            parts=(
                Term(name=f"number of {name}", value=count, unit="1", source=law),
                Term(name=f"price of one of the {name}", value=price, unit="USD", kind=kind, source=source),
            ),
        )
        for name, count, price in lines
        if count
    )
    return Term(name="fabric capex", value=sum(t.value for t in made), unit="USD", kind=kind, source=law, parts=made)
