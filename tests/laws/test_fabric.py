"""Counts of switches and cables: published designs exactly, and what must hold of any network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import fabric

if TYPE_CHECKING:
    from collections.abc import Callable

LAWS = [fabric.shared_spine, fabric.independent_rails]
RADIX = st.sampled_from([8, 16, 32, 36, 40, 63, 64, 96, 128, 144])
NICS = st.sampled_from([1, 2, 4, 8])
RATIO = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 7.0])
law = pytest.mark.parametrize("count", LAWS, ids=lambda f: f.__name__)


def counts_of(found: fabric.ClosCounts) -> tuple[int, int, int, int]:
    return int(found.leaf), int(found.spine), int(found.core), int(found.leaf_spine_cables)


# DGX H100 SuperPOD, RA-11333-001 V11: tables 4 (one node's ports less, kept for the fabric manager) and 3.
# DGX B300 SuperPOD with Quantum-X800, 144 ports of 800 Gb/s.
@pytest.mark.parametrize(
    ("nodes", "radix", "expected"),
    [
        (31, 64, (8, 4, 0, 256)),
        (63, 64, (16, 8, 0, 512)),
        (95, 64, (24, 16, 0, 768)),
        (127, 64, (32, 16, 0, 1024)),
        (256, 64, (64, 32, 0, 2048)),
        (512, 64, (128, 128, 64, 4096)),
        (1024, 64, (256, 256, 128, 8192)),
        (2048, 64, (512, 512, 256, 16384)),
        (72, 144, (8, 4, 0, 576)),
        (288, 144, (32, 18, 0, 2304)),
        (576, 144, (64, 36, 0, 4608)),
        (1296, 144, (144, 72, 0, 10368)),
        (1024, 128, (128, 64, 0, 8192)),
    ],
)
def test_superpods_come_out_as_published(nodes: int, radix: int, expected: tuple[int, int, int, int]) -> None:
    assert expected == counts_of(fabric.shared_spine(nodes, 8, radix, 1.0))


# "H100 Freakonomics" sheet, 2024-08: total of switches by nodes, 8 NICs, radix 64.
@pytest.mark.parametrize(
    ("nodes", "switches"),
    [(64, 8), (128, 48), (256, 96), (512, 192), (1024, 384), (2048, 768), (4096, 2560), (8192, 5120)],
)
def test_independent_rails_have_the_switches_of_the_published_sheet(nodes: int, switches: int) -> None:
    assert switches == int(fabric.independent_rails(nodes, 8, 64, 1.0).switches)


# Published by the number of leaves alone. ByteDance MegaScale: eight for 64 servers of 8 x 200 Gb/s, ports of 400 Gb/s
# halved towards them. Alibaba HPN 7.0: sixteen for 128 nodes of 8 x 2 x 200 Gb/s in two planes, 1.067:1.
@pytest.mark.parametrize(
    ("nodes", "radix", "ratio", "leaves"), [(64, 128, 1.0, 8), (128, 128 + 120, 128 / 120, 16 // 2)]
)
def test_one_group_of_a_published_network_has_its_leaves(nodes: int, radix: int, ratio: float, leaves: int) -> None:
    found = fabric.shared_spine(np.array([nodes, nodes + 1]), 8, radix, ratio)
    assert [leaves, 2 * leaves] == list(found.leaf)


def test_the_two_rules_differ_for_the_same_nodes() -> None:
    shared, rails = (f(2048, 8, 64, 1.0).switches for f in LAWS)
    assert (1280, 768) == (int(shared), int(rails))


@law
@given(nics=NICS, radix=RADIX, ratio=RATIO, start=st.integers(1, 9000))
def test_more_nodes_never_need_fewer_switches(
    count: Callable[..., fabric.ClosCounts], nics: int, radix: int, ratio: float, start: int
) -> None:
    found = count(np.arange(start, start + 300), nics, radix, ratio)
    switches = found.switches[found.tiers > 0]
    assert bool(np.all(np.diff(switches) >= 0))


@law
@given(nics=NICS, radix=RADIX, ratio=RATIO, nodes=st.integers(1, 20_000))
def test_no_switch_has_more_cables_than_ports(
    count: Callable[..., fabric.ClosCounts], nics: int, radix: int, ratio: float, nodes: int
) -> None:
    found = count(nodes, nics, radix, ratio)
    assert found.node_leaf_cables + found.leaf_spine_cables <= found.leaf * radix
    assert found.leaf_spine_cables + found.spine_core_cables <= found.spine * radix
    assert found.spine_core_cables <= found.core * radix


@law
@given(nics=NICS, radix=RADIX, ratio=st.sampled_from([1.0, 2.0, 7.0]), nodes=st.integers(1, 20_000))
def test_uplinks_carry_what_the_oversubscription_promises(
    count: Callable[..., fabric.ClosCounts], nics: int, radix: int, ratio: float, nodes: int
) -> None:
    found = count(nodes, nics, radix, ratio)
    if found.tiers > 1:
        assert found.leaf_spine_cables * ratio >= found.node_leaf_cables - 1e-6
    if found.tiers > 2:
        assert found.spine_core_cables >= min(found.leaf_spine_cables, found.node_leaf_cables / ratio) - 1e-6


@law
@given(nics=NICS, radix=RADIX, ratio=RATIO, nodes=st.integers(1, 3000))
def test_a_design_grows_to_its_largest_size_with_the_same_tiers_and_no_further(
    count: Callable[..., fabric.ClosCounts], nics: int, radix: int, ratio: float, nodes: int
) -> None:
    found = count(nodes, nics, radix, ratio)
    if found.tiers > 0:
        assert found.max_nodes >= nodes
        edge, beyond = (count(int(found.max_nodes) + more, nics, radix, ratio) for more in (0, 1))
        assert found.tiers == edge.tiers
        assert beyond.tiers == 0 or beyond.switches > edge.switches


@law
def test_one_node_needs_no_spine(count: Callable[..., fabric.ClosCounts]) -> None:
    found = count(1, 8, 64, 1.0)
    assert (1, 0, 0) == (int(found.tiers), int(found.spine), int(found.core))


@law
def test_twice_the_oversubscription_halves_the_cables_where_ports_split_evenly(
    count: Callable[..., fabric.ClosCounts],
) -> None:
    full, half = (count(192, 8, 96, ratio).leaf_spine_cables for ratio in (1.0, 2.0))
    assert int(full) == 2 * int(half)


@law
def test_an_array_gives_what_its_elements_give(count: Callable[..., fabric.ClosCounts]) -> None:
    nodes = np.array([1, 8, 9, 31, 64, 257, 2048, 8193])
    together = count(nodes, 8, 64, 1.0)
    alone = [count(int(n), 8, 64, 1.0) for n in nodes]
    assert [int(a.switches) for a in alone] == together.switches.tolist()
    assert [int(a.cables) for a in alone] == together.cables.tolist()


def test_nodes_beyond_three_tiers_are_no_network() -> None:
    found = fabric.shared_spine(8193, 8, 64, 1.0)
    assert (0, 0, 0) == (int(found.tiers), int(found.switches), int(found.cables))


def test_a_ratio_that_no_leaf_can_split_has_no_ports() -> None:
    assert (0, 0) == tuple(int(ports) for ports in fabric.leaf_ports(4, 0.01))


@given(st.integers(1, 10_000), st.floats(1.0, 16.0))
def test_oversubscription_never_adds_bisection_bandwidth(endpoints: int, ratio: float) -> None:
    assert fabric.bisection_bandwidth(endpoints, 50e9, ratio) <= fabric.bisection_bandwidth(endpoints, 50e9, 1.0)


@given(st.integers(1, 4000), st.integers(1, 4), st.integers(1, 64), st.sampled_from([32, 64, 128]))
def test_a_storage_network_never_uses_more_ports_than_there_are(
    nodes: int, nics: int, devices: int, radix: int
) -> None:
    found = fabric.storage_fabric(nodes, nics, devices, radix, 4 / 3)
    if int(found.tiers) == 0:
        return
    ends = int(found.node_leaf_cables + found.device_leaf_cables)
    assert ends == nodes * nics + devices
    assert ends + int(found.leaf_spine_cables) <= int(found.leaf) * radix
    assert int(found.leaf_spine_cables) <= int(found.spine) * radix


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_more_nodes_never_need_fewer_storage_leaves(nodes: int, more: int) -> None:
    few, many = (fabric.storage_fabric(n, 2, 16, 128, 4 / 3) for n in (nodes, nodes + more))
    if int(many.tiers):
        assert int(few.leaf) <= int(many.leaf)


@given(st.integers(1, 10_000), st.integers(1, 96))
def test_access_switches_give_everyone_a_port_and_none_is_idle(endpoints: int, radix: int) -> None:
    count = int(fabric.access_switches(endpoints, radix))
    assert (count - 1) * radix < endpoints <= count * radix


def test_one_module_serves_two_ports() -> None:
    assert [1, 1, 2] == [int(fabric.transceivers(ports, 2)) for ports in (1, 2, 3)]
