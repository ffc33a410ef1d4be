"""What a plan asks of its storage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.catalog.cluster_parts import load_site_figures, load_storage_systems
from clusterwright.estimators import storage
from clusterwright.laws import reliability


# Parameters and bytes of measured checkpoints: MLPerf Storage (Llama 3 8B, 70B, 405B), BLOOM-176B.
@pytest.mark.parametrize(
    ("parameters", "measured"), [(8.03e9, 105e9), (70.6e9, 912e9), (405e9, 5.29e12), (176e9, 2.3e12)]
)
def test_a_checkpoint_has_the_bytes_that_were_measured(parameters: float, measured: float) -> None:
    assert float(storage.checkpoint_bytes(parameters)) == pytest.approx(measured, rel=0.02)


@given(st.floats(1e9, 1e14), st.floats(1e3, 1e7), st.sampled_from([0.005, 0.01, 0.05]))
def test_the_bandwidth_asked_for_gives_the_stall_asked_for(size: float, mtbf: float, share: float) -> None:
    stall = size / float(storage.write_bandwidth_for_stall(size, mtbf, share))
    interval = float(reliability.checkpoint_interval_exact(stall, mtbf))
    assert stall / (interval + stall) == pytest.approx(share, rel=1e-6)


def test_a_lower_stall_asks_for_more_bandwidth() -> None:
    found = [float(storage.write_bandwidth_for_stall(1e12, 36_000.0, share)) for share in (0.05, 0.01, 0.001)]
    assert sorted(found) == found


def test_only_systems_of_that_rate_are_named_measured_ones_first_then_the_smallest() -> None:
    able = storage.who_delivers(50e9, load_storage_systems())
    order = [(s.guideline, s.write_bytes_per_s or 0.0) for s in able]
    assert order == sorted(order)
    assert all(rate >= 50e9 for _, rate in order)
    assert "GPFS over NVMe (Jean Zay)" == able[0].name


def test_nobody_is_named_where_nobody_was_measured() -> None:
    assert () == storage.who_delivers(1e15, load_storage_systems())


def test_the_need_of_a_plan_holds_its_checkpoints_and_its_data() -> None:
    need = storage.require_storage(1e12, 36_000.0, 1800.0, load_site_figures(), checkpoints_kept=3, data_bytes=5e12)
    assert 8e12 == need.capacity_bytes
    assert 10e12 == need.room_bytes
    assert need.usd_per_month == pytest.approx(1000.0)
    assert need.capex_usd == pytest.approx(2500.0)
    assert need.async_write_bytes_per_s == pytest.approx(1e12 / 1800.0)
    assert need.async_write_bytes_per_s < need.sync_write_bytes_per_s


def test_text_is_nearly_free_to_feed_and_images_are_not() -> None:
    text = float(storage.read_bandwidth_for_data(3e6, 4.0))
    images = float(storage.read_bandwidth_for_data(100_000, 150e3))
    assert text < 20e6
    assert images > 10e9
