"""Power, racks and energy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import power


@given(st.floats(1.0, 1e9), st.floats(1.0, 3.0))
def test_a_site_draws_its_computers_and_their_cooling(it_power: float, pue: float) -> None:
    whole = float(power.site_power(it_power, pue))
    assert whole >= it_power
    assert np.isclose(whole, it_power + float(power.cooling_power(it_power, pue)))


@given(st.integers(1, 5000), st.floats(500.0, 15_000.0), st.floats(5_000.0, 140_000.0))
def test_racks_hold_all_nodes_within_their_power(nodes: int, node_power: float, rack_power: float) -> None:
    each, racks = (
        int(power.nodes_per_rack(node_power, rack_power)),
        float(power.racks_needed(nodes, node_power, rack_power)),
    )
    assert each * node_power <= rack_power * (1 + 1e-12)
    assert racks == np.inf if each == 0 else (racks - 1) * each < nodes <= racks * each


def test_more_power_a_rack_never_needs_more_racks() -> None:
    racks = power.racks_needed(127, 10_200.0, np.array([20e3, 40e3, 130e3]))
    assert [127.0, 43.0, 11.0] == racks.tolist()


def test_a_kilowatt_for_an_hour_is_a_kilowatt_hour() -> None:
    assert 3.6e6 == float(power.energy(1000.0, 3600.0))
