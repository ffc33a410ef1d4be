"""What stragglers, mixed kinds and failures cost, and what would help."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_failure_rates
from clusterwright.errors import InputError
from clusterwright.estimators import worth
from clusterwright.estimators.goodput import SaveMode, estimate_goodput

RATES = load_failure_rates()
KNOWN = catalog.load()


@given(st.integers(8, 100_000), st.sampled_from(list(SaveMode)))
def test_nothing_that_helps_loses_money_and_nothing_saves_more_than_was_lost(accelerators: int, mode: SaveMode) -> None:
    lost = 1e6 * (1 - float(estimate_goodput(accelerators, 1e12, 1e11, RATES, mode=mode).goodput))
    for found in worth.what_would_help(accelerators, 1e12, 1e11, RATES, cost_usd=1e6, mode=mode):
        if mode is SaveMode.MEMORY and found.change == "asynchronous saves":
            continue  # a step back
        assert -1e-6 <= found.saves_usd <= lost + 1e-6


def test_a_change_that_is_already_there_is_not_offered() -> None:
    changes = [i.change for i in worth.what_would_help(64, 1e12, 1e11, RATES, cost_usd=1.0, mode="memory")]
    assert "in-memory checkpoints" not in changes


@given(st.integers(2, 4096), st.floats(0.01, 1.0))
def test_one_slow_accelerator_costs_what_it_is_slow(accelerators: int, slowest: float) -> None:
    found = worth.cost_of_straggler(accelerators, slowest, cost_usd=1.0)
    assert found.lost_usd == pytest.approx(1 - slowest)
    assert slowest - 1e-12 <= found.synchronous_share <= 1.0 + 1e-12


def test_the_straggler_of_a_published_run_costs_what_was_measured() -> None:
    # BLOOM-176B, 28 April 2022: 149 to 140 TFLOP/s with one slow GPU of 384.
    assert worth.cost_of_straggler(384, 140 / 149, cost_usd=149.0).lost_usd == pytest.approx(9.0)


@given(st.integers(1, 512), st.integers(1, 512))
def test_a_mixture_is_never_faster_than_its_parts_together_and_never_slower_than_its_slowest(a: int, b: int) -> None:
    fast, slow = KNOWN.accelerator("h100-sxm"), KNOWN.accelerator("a100-80gb-sxm")
    found = worth.cost_of_mixture([(fast, a), (slow, b)])
    each = [kind.flop_per_s for kind in found.kinds]
    assert found.flop_per_s == pytest.approx((a + b) * min(each))
    assert found.flop_per_s <= a * each[0] + b * each[1] + 1.0
    assert slow.name == found.slowest.accelerator


def test_a_precision_that_a_kind_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(InputError, match="a100-80gb-sxm has no fp8"):
        worth.cost_of_mixture([(KNOWN.accelerator("a100-80gb-sxm"), 8)], precision="fp8")


def test_without_spares_the_job_waits_for_each_repair() -> None:
    found = worth.worth_of_spares(99, 1, 0.98, 10 * 86400.0, RATES, cost_usd=100.0)
    wait = RATES.hardware_share * RATES.repair_s
    assert found.goodput_without == pytest.approx(0.98 * 10 * 86400 / (10 * 86400 + wait))
    assert found.cost_usd == pytest.approx(1.0)
    assert found.saves_usd == pytest.approx(99.0 * wait / (10 * 86400) - 1.0)


def test_spares_of_a_job_that_hardly_fails_cost_more_than_they_save() -> None:
    assert worth.worth_of_spares(2, 1, 0.999, 1e9, RATES, cost_usd=100.0).saves_usd < 0
