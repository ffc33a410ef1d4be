"""The scale-out bandwidth of a node as a choice: what an owner cables, and what an unknown network would have to be.

A rented node has the network that its offer says. Where an offer says nothing, several of its nodes are never planned;
but the plan says which network would make it the choice, so that one can ask.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clusterwright.hardware import FabricKind
from clusterwright.plan import Rejected
from clusterwright.search.choice import choose
from clusterwright.search.evaluate import TIE
from clusterwright.search.propose import MAX_ACCELERATORS
from clusterwright.search.table import Group, evaluate, tabulate
from clusterwright.units import show_duration, show_money

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clusterwright.hardware import Node
    from clusterwright.search.offers import Kind, Market
    from clusterwright.search.table import Table
    from clusterwright.workload import Workload

CABLED = (1, 4, 8)
"""NICs of a node that are tried."""
PORT_BITS_PER_S = 400e9
"""Of one NIC whose speed is not known. [bit/s]"""


def cabled(node: Node) -> tuple[Node, ...]:
    """A node that is bought, with all of its NICs on the network or with fewer; the server costs the same."""
    fewer = (
        node.model_copy(update={"nics": nics, "name": f"{node.name}-{nics}x{node.nic_bits_per_s / 1e9:.0f}g"})
        for nics in CABLED
        if node.scales_out and nics < node.nics
    )
    return (node, *fewer)


def unknown_networks(
    table: Table, offered: Market, workload: Workload, chosen: int | None, pins: Mapping[str, int | str]
) -> tuple[Rejected, ...]:
    """What several nodes of unknown network would be worth if it were like that of known ones, and the least that does.

    Args:
        table: Every cluster.
        offered: What the market left.
        workload: With its constraints and its objective.
        chosen: Row of the choice; none where nothing satisfies the constraints.
        pins: Choices that are fixed.
    """
    groups = tuple(_supposed(table, offered, workload, pins if chosen is None else None))
    supposed = tabulate(table, groups=groups) if groups else None
    if supposed is None or not supposed.rows:
        return ()
    _, index = choose(supposed, workload.constraints, workload.prefer.objective)
    if index is None or not _better(supposed, index, table, chosen, workload):
        return ()
    kind, network = supposed.rows[index].kind, ""
    for nics in CABLED:
        node = kind.node.model_copy(update={"nics": nics, "nic_bits_per_s": PORT_BITS_PER_S})
        if node.network_bytes_per_s >= kind.node.network_bytes_per_s:
            break
        one = replace(kind, node=node, quotes=(supposed.rows[index].quote,))
        pinned = {**pins, "nodes": int(supposed.nodes[index])}
        less = evaluate(table.setting, [one], int(supposed.nodes[index]) * node.accelerators, pinned)
        _, found = choose(less, workload.constraints, workload.prefer.objective)
        if found is not None and _better(less, found, table, chosen, workload):
            supposed, index, network = less, found, f"{nics} x {PORT_BITS_PER_S / 1e9:.0f}"
            break
    node = supposed.rows[index].kind.node
    network = network or f"{node.nics} x {node.nic_bits_per_s / 1e9:.0f}"
    why = (
        f"{_gain(supposed, index, table, chosen, workload)} if its nodes had at least {network} Gb/s between them: ask"
    )
    return (Rejected(candidate=supposed.candidate(index), binding_constraint="unknown-network", why=why),)


def _supposed(
    table: Table, offered: Market, workload: Workload, pins: Mapping[str, int | str] | None
) -> Iterator[Group]:
    """Kinds of unknown network, with the best network that a like node is known to have.

    Nothing is evaluated again for them. With ``pins`` given (nothing satisfies the constraints) also those that are
    like no known one, with a port for each accelerator.
    """
    for kind in offered.kinds:
        if kind.node.scales_out or kind.node.fabric is not FabricKind.UNKNOWN or kind.there is not None:
            continue
        size = (kind.accelerator.name, kind.node.accelerators, kind.node.scale_up_domain)
        like = [
            group for group in table.groups
            if size == group.kinds[0].alike[:3] and group.kinds[0].node.scales_out and group.kinds[0].there is None
        ]  # fmt: skip
        if like:
            best = max(like, key=lambda group: group.kinds[0].node.network_bytes_per_s)
            yield Group((_with_network(kind, best.kinds[0].node),), best.best, best.useful, best.software)
        elif pins is not None and kind.node.accelerators >= max(CABLED):
            ports = {"nics": kind.node.accelerators, "nic_bits_per_s": PORT_BITS_PER_S, "fabric": FabricKind.ROCE}
            most = workload.constraints.max_accelerators or MAX_ACCELERATORS
            one = replace(kind, node=kind.node.model_copy(update=ports))
            yield from evaluate(table.setting, [one], most, pins).groups


def _with_network(kind: Kind, other: Node) -> Kind:
    names = ("nics", "nic_bits_per_s", "fabric")
    return replace(kind, node=kind.node.model_copy(update={name: getattr(other, name) for name in names}))


def _better(other: Table, index: int, table: Table, chosen: int | None, workload: Workload) -> bool:
    """Whether a row of one table would be preferred to the choice of another by more than a tie."""
    if chosen is None:
        return True
    fast = workload.prefer.objective == "time"
    ours, theirs = (t.time_s if fast else t.cost_usd for t in (table, other))
    return bool(theirs[index] * (1 + TIE) < ours[chosen])


def _gain(other: Table, index: int, table: Table, chosen: int | None, workload: Workload) -> str:
    if chosen is None:
        return "would do"
    if workload.prefer.objective == "time":
        return f"would be {show_duration(float(table.time_s[chosen] - other.time_s[index]))} sooner"
    return f"would be {show_money(float(table.cost_usd[chosen] - other.cost_usd[index]))} cheaper"
