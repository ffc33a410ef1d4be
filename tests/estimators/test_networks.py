"""The networks of a whole cluster, and what each part of them costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts, load_site_figures
from clusterwright.estimators import networks

if TYPE_CHECKING:
    from clusterwright.hardware import Node

PARTS, FIGURES = load_fabric_parts(), load_site_figures()


@pytest.mark.parametrize("nodes", [2, 17, 64, 300, 2048])
def test_the_parts_of_a_network_add_up_to_what_the_design_costs(node: Node, nodes: int) -> None:
    for found in (
        networks.compute_network(node, nodes, 1.0, PARTS), networks.storage_network(nodes, 1e10, 4, FIGURES, PARTS)
    ):  # fmt: skip
        assert found is not None
        assert found.design.capex_usd == pytest.approx(found.capex_usd)
        assert found.capex_usd == pytest.approx(sum(line.usd or 0.0 for line in found.parts))


@pytest.mark.parametrize("nodes", [6000, 20_000])
def test_a_storage_network_beyond_two_tiers_has_three(nodes: int) -> None:
    found = networks.storage_network(nodes, 1e11, 300, FIGURES, PARTS)
    assert found is not None
    design = found.design
    assert 3 == design.tiers
    ends = design.node_leaf_cables + design.device_leaf_cables
    assert 2 * nodes + 304 == ends
    assert ends + design.leaf_spine_cables <= design.leaf * design.radix
    assert design.cables == ends + design.leaf_spine_cables + design.spine_core_cables


def test_one_node_needs_no_compute_network(node: Node) -> None:
    assert networks.compute_network(node, 1, 1.0, PARTS) is None


@pytest.mark.parametrize("nodes", [1, 2])
def test_nodes_without_nics_have_no_compute_network(nodes: int) -> None:
    assert networks.compute_network(catalog.load().node("pc-rtx-4090"), nodes, 1.0, PARTS) is None


def test_what_has_no_price_is_named_and_never_guessed() -> None:
    found = networks.management_network(100, 30, FIGURES)
    assert found.capex_usd is None
    assert ("management switches", "copper cables") == found.unpriced
    assert 3 == found.design.leaf


def test_the_optics_of_the_published_cluster_come_out() -> None:
    # RA-11333-001 V11, table 8: 508 modules in the nodes and 1,536 in the switches (all cages, used or not).
    node = catalog.load().node("dgx-h100")
    found = networks.compute_network(node, 127, 1.0, PARTS)
    assert found is not None
    assert found.transceivers == pytest.approx(508 + 1536, abs=6)


@pytest.mark.parametrize(("name", "ports"), [("dgx-h100", 64), ("dgx-b300", 144)])
def test_a_fabric_is_built_of_the_switch_that_is_made_for_its_speed(name: str, ports: int) -> None:
    assert ports == networks.radix_for(catalog.load().node(name), PARTS)


def test_a_switch_whose_ports_are_divided_costs_what_it_costs_whole() -> None:
    whole, halves = networks.price_of_switch(64, 400e9, PARTS), networks.price_of_switch(128, 200e9, PARTS)
    assert whole.usd == halves.usd == PARTS.switch_usd
    assert "divided into 128" in halves.source


def test_a_switch_without_a_price_is_scaled_and_says_so() -> None:
    found = networks.price_of_switch(144, 800e9, PARTS)
    assert "Q3400" in found.name
    assert "no public price" in found.source
    assert found.usd == pytest.approx(PARTS.switch_usd * 144 * 800 / (64 * 400))


@given(st.integers(2, 3000), st.integers(1, 60))
def test_every_node_and_every_port_of_storage_has_its_place(nodes: int, devices: int) -> None:
    design = networks.design_storage_fabric(nodes, 2, 200e9, 128, devices, 4 / 3, PARTS)
    assert design is not None
    ends = design.node_leaf_cables + design.device_leaf_cables
    assert ends == 2 * nodes + devices
    assert ends + design.leaf_spine_cables <= design.leaf * design.radix
    assert design.leaf_spine_cables <= design.spine * design.radix
    assert design.max_nodes >= nodes


def test_a_rail_is_the_leaves_of_one_nic_and_all_rails_are_all_leaves(node: Node) -> None:
    found = networks.compute_network(node, 70, 1.0, PARTS)
    assert found is not None
    rails = networks.rails_of(node, found.design)
    assert [(0,), (1,)] == [rails[0].accelerators, rails[1].accelerators]
    assert (0, 8, 16) == rails[0].leaves
    assert list(range(found.design.leaf)) == sorted(leaf for rail in rails for leaf in rail.leaves)


def test_fewer_nics_than_accelerators_serve_several_each(node: Node) -> None:
    half = node.model_copy(update={"nics": 4})
    found = networks.compute_network(half, 70, 1.0, PARTS)
    assert found is not None
    assert [(0, 1), (2, 3), (4, 5), (6, 7)] == [r.accelerators for r in networks.rails_of(half, found.design)]


@pytest.mark.parametrize(("nodes", "radix"), [(100, 128), (40, 64), (200, 64)])
def test_a_storage_network_grows_as_far_as_it_says(nodes: int, radix: int) -> None:
    design = networks.design_storage_fabric(nodes, 2, 200e9, radix, 16, 4 / 3, PARTS)
    assert design is not None
    most = networks.design_storage_fabric(design.max_nodes, 2, 200e9, radix, 16, 4 / 3, PARTS)
    beyond = networks.design_storage_fabric(design.max_nodes + 1, 2, 200e9, radix, 16, 4 / 3, PARTS)
    assert most is not None
    assert most.tiers == design.tiers
    assert beyond is None or beyond.tiers > design.tiers
