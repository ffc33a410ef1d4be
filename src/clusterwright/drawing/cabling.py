"""Every cable of a whole cluster as rows of CSV: compute, storage and management."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from clusterwright.drawing.fabric import Cable, cables_of, leaf_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clusterwright.facility import Network
    from clusterwright.hardware import FabricDesign


def list_all_cables(networks: Sequence[Network]) -> str:
    """Every cable as CSV: kind, lower end with its port, upper end, network."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Cable._fields)
    writer.writerows(all_cables(networks))
    return text.getvalue()


def all_cables(networks: Sequence[Network]) -> Iterator[Cable]:
    """Every cable of the networks, each once: an uplink of management is among those of storage.

    Switches of the storage network are ``storage-leaf0`` and so on, those of management ``management0``; switches have
    their names in the list of the management network too.
    """
    by_purpose = {n.purpose: n for n in networks}
    compute, storage, management = (by_purpose.get(p) for p in ("compute", "storage", "management"))
    if compute:
        yield from cables_of(compute.design)
    if storage:
        yield from _storage(storage.design, management)
    if management:
        yield from _management(management.design, switch_names(compute, storage))


def switch_names(compute: Network | None, storage: Network | None) -> list[str]:
    """All switches that have a management port."""
    found = []
    for network, before in ((compute, ""), (storage, "storage-")):
        if network:
            tiers = (("leaf", network.design.leaf), ("spine", network.design.spine), ("core", network.design.core))
            found += [f"{before}{tier}{number}" for tier, count in tiers for number in range(count)]
    return found


def _storage(design: FabricDesign, management: Network | None) -> Iterator[Cable]:
    """Nodes, storage and the uplinks of management on leaves, leaves on spines."""
    for node in range(design.nodes):
        for port in range(design.nics):
            leaf = f"storage-leaf{storage_leaf(design, node, port)}"
            yield Cable("node-leaf", f"node{node}", f"storage{port}", leaf, "storage")
    uplinks = management.uplinks if management else 0
    for number in range(design.device_leaf_cables):
        leaf = f"storage-leaf{device_leaf(design, number)}"
        if number < uplinks and management:
            each = uplinks // management.design.leaf
            yield Cable("management-leaf", f"management{number // each}", f"up{number % each}", leaf, "storage")
        else:
            yield Cable("storage-leaf", "storage", f"port{number - uplinks}", leaf, "storage")
    if is_one_tree(design):
        above = (cable for cable in cables_of(as_one_tree(design)) if cable.kind != "node-leaf")
        for cable in above:
            lower, upper = f"storage-{cable.lower}", f"storage-{cable.upper}"
            yield Cable(cable.kind, lower, cable.lower_port, upper, "storage")
    elif design.spine:
        for number, ports in enumerate(uplinks_of(design)):
            for port in range(ports):
                upper = f"storage-spine{port % design.spine}"
                yield Cable("leaf-spine", f"storage-leaf{number}", f"up{port}", upper, "storage")


def uplinks_of(design: FabricDesign) -> list[int]:
    """Uplinks of each leaf of a storage network: leaves of nodes, then those of storage; spread evenly over spines."""
    own, spines = design.leaf - design.device_leaf, design.spine
    groups = own // design.nics
    fullest = -(-design.nodes // groups)
    up = -(-int(fullest / design.oversubscription + 1 - 1e-9) // spines) * spines
    rest = design.leaf_spine_cables - own * up
    return [up] * own + [rest // design.device_leaf] * design.device_leaf


def _management(design: FabricDesign, switches: Sequence[str]) -> Iterator[Cable]:
    """The management controller of every node and the management port of every switch, filling switch by switch."""
    ends = [*(f"node{node}" for node in range(design.nodes)), *switches]
    for number, end in enumerate(ends):
        yield Cable("management", end, "management", f"management{number // design.radix}", "management")


def is_one_tree(design: FabricDesign) -> bool:
    """Whether storage stands on the same leaves as nodes: a storage network that two tiers with its own do not hold."""
    return design.spine > 0 and design.device_leaf == 0


def as_one_tree(design: FabricDesign) -> FabricDesign:
    """Such a network as the tree that it is: storage stands on its leaves as further nodes do."""
    return design.model_copy(update={"nodes": design.nodes + -(-design.device_leaf_cables // design.nics)})


def device_leaf(design: FabricDesign, number: int) -> int:
    """The leaf of a port of storage, by its number."""
    if is_one_tree(design):
        return leaf_of(as_one_tree(design), design.nodes + number // design.nics, number % design.nics)
    own = design.leaf - design.device_leaf
    return own + number % design.device_leaf if design.device_leaf else 0


def storage_leaf(design: FabricDesign, node: int, port: int) -> int:
    """The storage leaf of a port of a node: nodes fill groups of leaves evenly."""
    if is_one_tree(design):
        return leaf_of(as_one_tree(design), node, port)
    own = design.leaf - design.device_leaf
    if own <= 1:
        return 0
    groups = own // design.nics
    return node // -(-design.nodes // groups) * design.nics + port
