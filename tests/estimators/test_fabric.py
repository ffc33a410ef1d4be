"""One design, and the same over arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.errors import InfeasibleError, InputError
from clusterwright.estimators import fabric
from clusterwright.hardware import FabricParts

PARTS = FabricParts(
    switch_ports=64,
    bits_per_s=400e9,
    switch_usd=36_000,
    switch_w=1720,
    node_link_usd=1320,
    switch_link_usd=1240,
    node_optics_w=9,
    sources=("a price list",),
)


# Totals of the "H100 Freakonomics" sheet (2024-08): switches and cables with optics, by nodes.
@pytest.mark.parametrize(
    ("nodes", "usd"),
    [(64, 288_000 + 675_840), (128, 1_728_000 + 2_621_440), (4096, 2560 * 36_000 + 124_518_400)],
)
def test_independent_rails_cost_what_the_published_sheet_says(nodes: int, usd: float) -> None:
    design = fabric.design_fabric(nodes, 8, 400e9, 64, "independent-rails", 1.0, PARTS)
    assert usd == design.capex_usd


@given(st.lists(st.integers(1, 8192), min_size=1, max_size=20), st.sampled_from(list(fabric.Topology)))
def test_arrays_give_what_single_designs_give(nodes: list[int], topology: fabric.Topology) -> None:
    counts = fabric.fabric_counts(np.array(nodes), 8, 64, topology)
    capex = fabric.fabric_capex(counts, 400e9, 64, PARTS)
    power = fabric.fabric_power(counts, 400e9, 64, PARTS)
    designs = [fabric.design_fabric(n, 8, 400e9, 64, topology, 1.0, PARTS) for n in nodes]
    assert [d.switches for d in designs] == counts.switches.tolist()
    assert [d.capex_usd for d in designs] == pytest.approx(capex.tolist())
    assert [d.power_w for d in designs] == pytest.approx(power.tolist())


def test_the_terms_add_up_to_the_cost() -> None:
    design = fabric.design_fabric(512, 8, 400e9, 64, "shared-spine", 1.0, PARTS)
    tree = fabric.explain_fabric(design, PARTS)
    assert tree.value == pytest.approx(design.capex_usd)
    leaf = tree.find("number of leaf switches")
    assert leaf is not None
    assert 128 == leaf.value


def test_ports_kept_for_the_manager_take_the_place_of_a_node() -> None:
    with_manager = fabric.design_fabric(31, 8, 400e9, 64, "shared-spine", 1.0, PARTS, manager_ports=4)
    full = fabric.design_fabric(32, 8, 400e9, 64, "shared-spine", 1.0, PARTS)
    assert full.switches == with_manager.switches
    assert 252 + 256 == with_manager.cables
    assert 248 == with_manager.node_leaf_cables
    assert full.max_nodes - 1 == with_manager.max_nodes


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nics": -8}, "nics"),
        ({"radix": 1}, "radix"),
        ({"radix": 10**9}, "radix"),
        ({"nic_bits_per_s": float("nan")}, "nic_bits_per_s"),
        ({"oversubscription": 0.0}, "oversubscription"),
        ({"oversubscription": 1e-6}, "oversubscription"),
        ({"nodes": 10**30}, "nodes"),
    ],
)
def test_what_no_network_has_is_refused_by_name(change: dict[str, float], word: str) -> None:
    given_ = {"nodes": 64, "nics": 8, "nic_bits_per_s": 400e9, "radix": 64, "oversubscription": 1.0} | change
    with pytest.raises(InputError, match=word):
        fabric.design_fabric(topology="shared-spine", parts=PARTS, **given_)  # type: ignore[arg-type]


def test_too_many_nodes_are_bad_news_that_says_what_would_help() -> None:
    with pytest.raises(InfeasibleError, match="larger radix"):
        fabric.design_fabric(10_000, 8, 400e9, 64, "shared-spine", 1.0, PARTS)


def test_an_oversubscribed_network_costs_less_and_carries_less() -> None:
    full, half = (fabric.design_fabric(192, 8, 400e9, 96, "shared-spine", x, PARTS) for x in (1.0, 2.0))
    assert half.capex_usd is not None
    assert full.capex_usd is not None
    assert half.capex_usd < full.capex_usd
    assert full.bisection_bytes_per_s == 2 * half.bisection_bytes_per_s
