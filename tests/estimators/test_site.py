"""What a cluster asks of its site."""

import pytest

from clusterwright.estimators.site import estimate_site, within_limit


def test_cooling_is_on_top_and_energy_includes_it() -> None:
    need = estimate_site(100, 10_000.0, 1.0e6, 3600.0, 1.5)
    assert 1.5e6 == need.site_power_w
    assert 0.5e6 == need.cooling_power_w
    assert 1500.0 == need.energy_j / 3.6e6


def test_a_node_that_no_rack_can_feed_has_no_racks() -> None:
    need = estimate_site(4, 15_000.0, 60_000.0, 1.0, 1.5)
    assert ((10e3, None), (20e3, 4), (40e3, 2), (130e3, 1)) == need.racks


@pytest.mark.parametrize(("limit", "expected"), [(None, True), (1.6e6, True), (1.4e6, False)])
def test_the_limit_of_a_site_is_held_against_all_of_its_power(limit: float | None, expected: bool) -> None:  # noqa: FBT001
    assert expected == within_limit(estimate_site(100, 10_000.0, 1.0e6, 1.0, 1.5), limit)
