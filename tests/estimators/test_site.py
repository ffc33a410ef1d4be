"""What a cluster asks of its site."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.catalog.cluster_parts import load_site_figures
from clusterwright.estimators.site import estimate_site, plan_racks, within_limit

FIGURES = load_site_figures().model_copy(update={"pue": 1.5})


def test_cooling_is_on_top_and_energy_includes_it() -> None:
    need = estimate_site(100, 10_000.0, 1.0e6, 3600.0, FIGURES)
    assert 1.5e6 == need.site_power_w
    assert 0.5e6 == need.cooling_power_w
    assert 1500.0 == need.energy_j / 3.6e6
    assert need.energy_usd == pytest.approx(1500.0 * FIGURES.usd_per_kwh)


def test_a_node_that_no_rack_can_feed_has_no_racks() -> None:
    need = estimate_site(4, 15_000.0, 60_000.0, 1.0, FIGURES)
    assert [(10e3, None), (20e3, 4), (40e3, 2), (130e3, 1)] == [(r.rack_power_w, r.racks) for r in need.racks]


def test_a_domain_of_many_nodes_stands_in_one_rack_its_own_where_no_usual_one_carries_it() -> None:
    need = estimate_site(37, 7_500.0, 300e3, 1.0, FIGURES, together=18)
    assert [None, None, None, None, 3] == [r.racks for r in need.racks]
    assert (135e3, 18) == (need.racks[-1].rack_power_w, need.racks[-1].nodes_a_rack)


def test_a_domain_that_a_usual_rack_carries_needs_none_of_its_own() -> None:
    need = estimate_site(37, 7_000.0, 300e3, 1.0, FIGURES, together=18)
    assert [(10e3, None), (20e3, None), (40e3, None), (130e3, 3)] == [(r.rack_power_w, r.racks) for r in need.racks]


@given(st.integers(1, 10_000), st.floats(100.0, 2e5), st.floats(1e3, 2e5))
def test_racks_hold_all_nodes_and_no_rack_too_many(nodes: int, node_w: float, rack_w: float) -> None:
    racks = plan_racks(nodes, node_w, rack_w)
    assert racks.nodes_a_rack * node_w <= rack_w * (1 + 1e-9)
    if racks.racks is not None:
        assert (racks.racks - 1) * racks.nodes_a_rack < nodes <= racks.racks * racks.nodes_a_rack


@pytest.mark.parametrize(("limit", "expected"), [(None, True), (1.6e6, True), (1.4e6, False)])
def test_a_limit_holds_from_its_own_value_on(limit: float | None, expected: bool) -> None:  # noqa: FBT001
    assert expected == within_limit(1.5e6, limit)


def test_the_limit_is_held_against_the_computers_and_against_all_of_the_site() -> None:
    need = estimate_site(100, 10_000.0, 1.0e6, 1.0, FIGURES, limit_w=1.2e6)
    assert need.within_limit
    assert not need.within_limit_with_cooling
