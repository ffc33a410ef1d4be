r"""Counts of a folded Clos (fat-tree) network: leaves, spines, cores and cables.

Symbols: nodes :math:`N`, NICs a node :math:`K`, ports a switch (radix) :math:`R`, oversubscription :math:`x` (down
to up), leaf ports down :math:`d` and up :math:`u`, leaves :math:`L`, parallel links of one leaf to one spine
:math:`m`.

Two rules are in use, and they give different counts for the same nodes, so each is a function of its own:

- :func:`shared_spine`: rail-aligned leaves (NIC *k* of a group of :math:`d` nodes on leaf *k*) under common spines,
  as in the NVIDIA DGX SuperPOD reference architectures.
- :func:`independent_rails`: each rail is a Clos of its own, without a path between rails; the reading that gives
  the counts of the "H100 Freakonomics" sheet (2024).

The rule of parallel links. Every leaf has the same uplinks, spread evenly over all spines. A spine of :math:`R`
ports under :math:`L` leaves has room for :math:`m = \lfloor R / L \rfloor` links to each, so
:math:`S = \lceil u / m \rceil` spines; :math:`m` is lowered until :math:`m S` links fit the leaf. This is why 24
leaves need 16 spines, not 12, and 32 leaves of 144 ports need 18, not 16.

Leaves are cabled in full (a cluster of 31 nodes has the cables of 32) unless one group of leaves holds the whole
cluster: then only the uplinks its nodes need are there.

A storage network is a fat tree of its own (:func:`storage_fabric`), in which nodes are oversubscribed and storage is
not; management ports need switches of their own (:func:`access_switches`).

Source: switch and cable tables of the DGX SuperPOD reference architectures for H100 (RA-11333-001 V11, tables 3 and
4; its storage network: tables 7 and 8), B200 and B300, https://docs.nvidia.com/dgx-superpod/; fat trees: Al-Fares,
Loukissas, Vahdat, "A scalable, commodity data center network architecture", SIGCOMM 2008, section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.units import BytesPerSecond, Count, Share

    Integers = NDArray[np.int64]

_SLACK = 1e-9
"""Against the rounding of a ratio such as 64 * 2 / 3; far below one port."""


class ClosCounts(NamedTuple):
    """Switches and cables of a network; each field has the broadcast shape of the arguments.

    ``tiers`` is 0, and every other count 0, where the nodes do not fit in three tiers.
    """

    tiers: Integers
    leaf: Integers
    spine: Integers
    core: Integers
    node_leaf_cables: Integers
    leaf_spine_cables: Integers
    spine_core_cables: Integers
    max_nodes: Integers
    """Most nodes the design grows to with the same number of tiers."""

    @property
    def switches(self) -> Integers:
        """Leaf, spine and core switches together."""
        return self.leaf + self.spine + self.core

    @property
    def cables(self) -> Integers:
        """Cables of all kinds together."""
        return self.node_leaf_cables + self.leaf_spine_cables + self.spine_core_cables


class StorageCounts(NamedTuple):
    """Switches and cables of a storage network; each field has the broadcast shape of the arguments.

    ``tiers`` is 0, and every other count 0, where nodes and storage do not fit in two tiers.
    """

    tiers: Integers
    leaf: Integers
    """Leaves of nodes and of storage together."""
    device_leaf: Integers
    """Of them, those of storage."""
    spine: Integers
    node_leaf_cables: Integers
    device_leaf_cables: Integers
    leaf_spine_cables: Integers


def leaf_ports(radix: Count, oversubscription: Share) -> tuple[Integers, Integers]:
    r"""Ports of a leaf towards nodes and towards spines.

    .. math:: d = \lfloor R x / (1 + x) \rfloor, \quad u = \lceil d / x \rceil

    Args:
        radix: Ports of a switch at the speed of the NIC [1], any shape.
        oversubscription: Bandwidth down over bandwidth up [1]; 1 is non-blocking.

    Returns:
        Ports down and up [1]; both 0 where no such split exists (``d + u`` would exceed the radix).

    >>> down, up = leaf_ports(64, 1.0)
    >>> int(down), int(up)
    (32, 32)
    >>> down, up = leaf_ports(64, 2.0)
    >>> int(down), int(up)
    (42, 21)
    """
    ports, ratio = np.broadcast_arrays(
        np.asarray(radix, dtype=np.int64), np.asarray(oversubscription, dtype=np.float64)
    )
    down = np.clip(np.floor(ports * ratio / (1.0 + ratio) + _SLACK), 1, np.maximum(ports - 1, 1)).astype(np.int64)
    up = np.minimum(np.ceil(down / ratio - _SLACK), 2.0**62).astype(np.int64)
    fits = (down + up <= ports) & (up >= 1)
    return np.where(fits, down, 0), np.where(fits, up, 0)


def parallel_links(lower: Count, uplinks: Count, ports_above: Count, ports_free: Count) -> Integers:
    r"""Parallel links between each lower and each upper switch: the most that spread the uplinks evenly.

    .. math:: m = \max \{ m : m L \le R,\; m \lceil u / m \rceil \le f \}

    Args:
        lower: Lower switches that each upper switch must reach, :math:`L` [1].
        uplinks: Uplinks that a lower switch needs, :math:`u` [1].
        ports_above: Ports of an upper switch towards the lower ones, :math:`R` [1].
        ports_free: Ports that a lower switch has for uplinks, :math:`f` [1].

    Returns:
        Links a pair [1]; 0 where even one link to each does not fit.

    >>> int(parallel_links(24, 32, 64, 32)), int(parallel_links(32, 72, 144, 72))
    (2, 4)
    """
    below, up, above, free = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.int64) for a in (lower, uplinks, ports_above, ports_free))
    )
    room = np.minimum(above // np.maximum(below, 1), up)
    best = np.zeros(room.shape, dtype=np.int64)
    for links in range(1, int(room.max(initial=0)) + 1):
        fits = (links <= room) & (links * -(-up // links) <= free)
        best = np.where(fits, links, best)
    return best


def shared_spine(nodes: Count, nics: Count, radix: Count, oversubscription: Share) -> ClosCounts:
    r"""Rail-aligned leaves under common spines: one fat tree.

    One switch holds :math:`N K \le R`. Otherwise :math:`L = K \lceil N / d \rceil` leaves.

    Args:
        nodes: Nodes [1], any shape.
        nics: NICs a node on this network [1].
        radix: Ports of a switch at the speed of the NIC [1].
        oversubscription: Leaf bandwidth down over up [1].

    Returns:
        The counts, of the broadcast shape.

    >>> counts = shared_spine(95, 8, 64, 1.0)
    >>> int(counts.leaf), int(counts.spine), int(counts.leaf_spine_cables)
    (24, 16, 768)
    """
    return _clos(nodes, nics, radix, oversubscription)


def independent_rails(nodes: Count, nics: Count, radix: Count, oversubscription: Share) -> ClosCounts:
    r"""A Clos a rail: :math:`K` networks of :math:`N` endpoints each, without a path between them.

    Arguments and returns as :func:`shared_spine`.

    >>> counts = independent_rails(2048, 8, 64, 1.0)
    >>> int(counts.leaf), int(counts.spine), int(counts.switches)
    (512, 256, 768)
    """
    one = _clos(nodes, np.ones_like(np.asarray(nics, dtype=np.int64)), radix, oversubscription)
    rails = np.broadcast_to(np.asarray(nics, dtype=np.int64), one.tiers.shape)
    return ClosCounts(one.tiers, one.leaf * rails, one.spine * rails, one.core * rails, one.node_leaf_cables * rails,
                      one.leaf_spine_cables * rails, one.spine_core_cables * rails, one.max_nodes)  # fmt: skip


def storage_fabric(
    nodes: Count, nics: Count, devices: Count, radix: Count, oversubscription: Share, device_leaves: Count = 0
) -> StorageCounts:
    r"""The network of nodes and storage: nodes on oversubscribed leaves, storage on leaves that are not.

    One switch holds :math:`N K + D \le R`. Otherwise the nodes fill :math:`G = \lceil N / d \rceil` groups of
    :math:`K` leaves evenly, each leaf with :math:`\lceil \lceil N / G \rceil / x \rceil` uplinks; :math:`D` ports of
    storage stand evenly on :math:`\lceil D / (R / 2) \rceil` leaves, at least two, with an uplink a port. The
    spines are the fewest that take every leaf's uplinks spread evenly.

    Args:
        nodes: Nodes, :math:`N` [1], any shape.
        nics: Ports of a node on this network, :math:`K` [1].
        devices: Ports of storage, :math:`D` [1].
        radix: Ports of a switch, :math:`R` [1].
        oversubscription: Of the nodes' leaves, bandwidth down over up, :math:`x` [1].
        device_leaves: Leaves that storage is to stand on [1]; 0: as many as its ports need.

    Returns:
        The counts, of the broadcast shape.

    The network of the reference architecture for 127 nodes, whose storage stands on four leaves:

    >>> counts = storage_fabric(127, 2, 48, 64, 4 / 3, device_leaves=4)
    >>> int(counts.leaf + counts.spine), int(counts.leaf_spine_cables)
    (16, 240)
    """
    n, k, ports, r, own = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.int64) for a in (nodes, nics, devices, radix, device_leaves))
    )
    x = np.broadcast_to(np.asarray(oversubscription, dtype=np.float64), n.shape)
    down, _ = leaf_ports(r, x)
    groups = np.maximum(-(-n // np.maximum(down, 1)), 1)
    up = np.maximum(np.ceil(-(-n // groups) / x - _SLACK), 1).astype(np.int64)
    leaves = groups * k
    storage = np.where(own > 0, own, np.maximum(-(-ports // np.maximum(r // 2, 1)), 2)) * (ports > 0)
    up_storage = -(-ports // np.maximum(storage, 1))
    spine = np.zeros(n.shape, dtype=np.int64)
    for count in range(1, int(np.max(r, initial=1)) + 1):
        each, each_storage = -(-up // count), -(-up_storage // count)
        room = (-(-n // groups) + count * each <= r) & (up_storage + count * each_storage <= r)
        fewest = (spine == 0) & room & (leaves * each + storage * each_storage <= r)
        spine = np.where(fewest, count, spine)
        if spine.all():
            break
    one = n * k + ports <= r
    two = ~one & (down > 0) & (spine > 0)
    spread = spine * (leaves * -(-up // np.maximum(spine, 1)) + storage * -(-up_storage // np.maximum(spine, 1)))
    fits = one | two
    return StorageCounts(
        tiers=np.select([one, two], [1, 2], 0).astype(np.int64),
        leaf=np.select([one, two], [1, leaves + storage], 0).astype(np.int64),
        device_leaf=np.where(two, storage, 0),
        spine=np.where(two, spine, 0),
        node_leaf_cables=np.where(fits, n * k, 0),
        device_leaf_cables=np.where(fits, ports, 0),
        leaf_spine_cables=np.where(two, spread, 0),
    )


def access_switches(endpoints: Count, radix: Count) -> Integers:
    r"""Switches that give every endpoint a port: :math:`\lceil E / R \rceil`.

    Args:
        endpoints: Ports of management controllers and switches, :math:`E` [1], any shape.
        radix: Ports of a switch, :math:`R` [1].

    Returns:
        [1], the broadcast shape.

    >>> int(access_switches(317, 48))  # 127 nodes, 82 other devices and 108 power strips
    7
    """
    return -(-np.asarray(endpoints, dtype=np.int64) // np.asarray(radix, dtype=np.int64))


def transceivers(ports: Count, ports_each: Count) -> Integers:
    r"""Optical modules for some ports, where one module serves several: :math:`\lceil P / t \rceil`.

    Args:
        ports: With an optical cable, :math:`P` [1], any shape.
        ports_each: Ports that one module serves, :math:`t` [1]; two for the twin-port modules of 400 Gb/s ports.

    Returns:
        [1], the broadcast shape.

    Source: RA-11333-001 V11, table 8: 508 modules in 127 nodes of 8 ports, and 1,536 in the switches.

    >>> int(transceivers(127 * 8, 2)), int(transceivers(127 * 8 + 4 + 2 * 1024, 2))
    (508, 1534)
    """
    return -(-np.asarray(ports, dtype=np.int64) // np.asarray(ports_each, dtype=np.int64))


def _clos(nodes: Count, leaves_per_group: Count, radix: Count, oversubscription: Share) -> ClosCounts:
    """One fat tree: a group of ``d`` nodes hangs on ``leaves_per_group`` leaves, one NIC of each node on each."""
    n, k, r, x = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.int64) for a in (nodes, leaves_per_group, radix)),
        np.asarray(oversubscription, dtype=np.float64),
    )
    down, up = leaf_ports(r, x)
    splits = down > 0
    groups = -(-n // np.maximum(down, 1))
    leaf = groups * k
    limit = _limits(k, r, down)
    tiers = np.select([n <= limit[0], splits & (n <= limit[1]), splits & (n <= limit[2])], [1, 2, 3], 0)
    needed = np.where(groups == 1, np.maximum(np.ceil(n / x - _SLACK), 1).astype(np.int64), up)
    links = parallel_links(np.where(tiers == 2, leaf, r), needed, r, r - np.minimum(n, down))  # noqa: PLR2004 - two tiers
    two_spine = -(-needed // np.maximum(links, 1))
    spread = -(-needed // np.maximum(two_spine, 1))
    half = r // 2
    pods = -(-leaf // np.maximum(half, 1))
    three = tiers == 3  # noqa: PLR2004 - three tiers
    core_links = np.maximum(_even_divisor(half, r // np.maximum(pods, 1)), 1) if three.any() else half
    by_tier = [tiers == 1, tiers == 2, three]  # noqa: PLR2004 - two tiers

    def pick(one: Integers | int, two: Integers | int, three: Integers | int) -> Integers:
        return np.select(by_tier, [one, two, three], 0).astype(np.int64)

    return ClosCounts(
        tiers=tiers.astype(np.int64),
        leaf=pick(1, leaf, leaf),
        spine=pick(0, two_spine, pods * up),
        core=pick(0, 0, up * (half // np.maximum(core_links, 1))),
        node_leaf_cables=pick(n * k, n * k, n * k),
        leaf_spine_cables=pick(0, leaf * two_spine * spread, leaf * up),
        spine_core_cables=pick(0, 0, pods * up * half),
        max_nodes=pick(*limit),
    )


def _limits(leaves_per_group: Integers, radix: Integers, down: Integers) -> tuple[Integers, Integers, Integers]:
    """Most nodes in one, two and three tiers: leaves are at most R in two, R * (R // 2) in three."""
    return (
        radix // leaves_per_group,
        down * (radix // leaves_per_group),
        down * (radix * (radix // 2) // leaves_per_group),
    )


def _even_divisor(uplinks: Integers, most: Integers) -> Integers:
    """The largest divisor of ``uplinks`` that is at most ``most``: links of one spine to one core of its group."""
    best = np.ones(np.broadcast(uplinks, most).shape, dtype=np.int64)
    for links in range(2, int(np.max(uplinks, initial=0)) + 1):
        best = np.where((uplinks % links == 0) & (links <= most), links, best)
    return best


def bisection_bandwidth(
    endpoints: Count, endpoint_bandwidth: BytesPerSecond, oversubscription: Share
) -> NDArray[np.float64]:
    r"""Bandwidth between the two halves of a fat tree, one direction.

    .. math:: B = \frac{E b}{2 \max(x, 1)}

    Args:
        endpoints: NICs on one network, :math:`E` [1].
        endpoint_bandwidth: Of one NIC, :math:`b` [B/s].
        oversubscription: Bandwidth down over up, :math:`x` [1].

    Returns:
        [B/s], the broadcast shape.

    >>> float(bisection_bandwidth(1024, 50e9, 1.0))
    25600000000000.0
    """
    rate: NDArray[np.float64] = np.asarray(endpoints) * np.asarray(endpoint_bandwidth, dtype=np.float64)
    return rate / 2.0 / np.maximum(oversubscription, 1.0)


def most_hops(tiers: Count) -> Integers:
    r"""Switches on the longest path between two endpoints: :math:`2 t - 1`.

    >>> int(most_hops(3))
    5
    """
    return 2 * np.asarray(tiers, dtype=np.int64) - 1
