"""Laws of failures and checkpoints meet their limits, and one another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import lambertw
from scipy.stats import binom, poisson

from clusterwright.laws import reliability

STALL = st.floats(0.01, 3000.0)
MTBF = st.floats(600.0, 1e7)


@given(STALL, MTBF)
def test_the_exact_optimum_is_that_of_lambert(stall: float, mtbf: float) -> None:
    expected = mtbf * (1.0 + lambertw(-np.exp(-1.0 - stall / mtbf)).real)
    assert float(reliability.checkpoint_interval_exact(stall, mtbf)) == pytest.approx(expected, rel=1e-5)


@given(STALL, MTBF)
def test_no_interval_gives_more_goodput_than_the_exact_optimum(stall: float, mtbf: float) -> None:
    best = float(reliability.checkpoint_interval_exact(stall, mtbf))
    top = float(reliability.goodput(best, stall, 300.0, 0.0, mtbf))
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert float(reliability.goodput(best * factor, stall, 300.0, 0.0, mtbf)) <= top * (1.0 + 1e-12)


def test_a_numerical_search_finds_the_same_optimum() -> None:
    found = minimize_scalar(
        lambda tau: -float(reliability.goodput(tau, 60.0, 300.0, 0.0, 10_800.0)),
        bounds=(10.0, 10_000.0),
        method="bounded",
    )
    assert float(reliability.checkpoint_interval_exact(60.0, 10_800.0)) == pytest.approx(found.x, rel=1e-3)


@given(st.floats(1e-4, 0.02), MTBF)
def test_young_and_daly_approach_the_exact_optimum_where_the_stall_is_short(share: float, mtbf: float) -> None:
    exact = float(reliability.checkpoint_interval_exact(share * mtbf, mtbf))
    young = float(reliability.checkpoint_interval_young_1974(share * mtbf, mtbf))
    daly = float(reliability.checkpoint_interval_daly_2006(share * mtbf, mtbf))
    assert exact == pytest.approx(young, rel=np.sqrt(share))
    assert exact == pytest.approx(daly, rel=share)


@given(STALL, st.floats(0.0, 3000.0), st.floats(0.0, 600.0), MTBF, st.floats(30.0, 1e5))
def test_goodput_is_a_share_and_falls_with_every_loss(
    stall: float, restart: float, lag: float, mtbf: float, interval: float
) -> None:
    base = float(reliability.goodput(interval, stall, restart, lag, mtbf))
    assert 0.0 <= base < 1.0
    worse = [
        reliability.goodput(interval, 2 * stall, restart, lag, mtbf),
        reliability.goodput(interval, stall, restart + 60.0, lag, mtbf),
        reliability.goodput(interval, stall, restart, lag + 60.0, mtbf),
        reliability.goodput(interval, stall, restart, lag, mtbf / 2),
    ]
    assert all(float(w) <= base for w in worse)


def test_without_failures_only_the_stall_is_lost() -> None:
    assert float(reliability.goodput(900.0, 100.0, 600.0, 0.0, 1e12)) == pytest.approx(0.9, rel=1e-6)


def test_a_save_that_costs_nothing_is_made_all_the_time() -> None:
    interval = reliability.checkpoint_interval_exact(0.0, 3600.0)
    assert 0.0 == float(interval)
    assert float(reliability.goodput(interval, 0.0, 360.0, 0.0, 3600.0)) == pytest.approx(np.exp(-0.1))


def test_the_run_of_16384_accelerators_stops_every_three_hours() -> None:
    assert float(reliability.job_mtbf(16384, 16384 * 1296 / 419 * 3600)) == pytest.approx(1296 / 419 * 3600)


@given(st.floats(0.0, 500.0), st.floats(0.5, 0.999))
def test_more_confidence_never_needs_fewer_spares(mean: float, confidence: float) -> None:
    assert int(reliability.spares_needed(mean, confidence)) <= int(reliability.spares_needed(mean, 0.9999))


def test_nothing_down_needs_no_spare() -> None:
    assert 0 == int(reliability.spares_needed(0.0, 0.99))


def test_the_slowest_sets_the_pace() -> None:
    kinds = np.concatenate([np.full(8, 1.0), np.full(8, 0.5)])
    assert float(reliability.synchronous_share(kinds)) == pytest.approx(0.5 / 0.75)


@given(st.floats(0.0, 1e5), st.sampled_from([0.5, 0.9, 0.99, 0.9999]))
def test_spares_are_the_quantile_of_an_independent_program(mean: float, confidence: float) -> None:
    assert max(int(poisson.ppf(confidence, mean)), 0) == int(reliability.spares_needed(mean, confidence))


@given(st.floats(1.0, 1e8), st.floats(0.0, 1e8))
def test_availability_is_a_share_that_falls_with_the_repair(mtbf: float, repair: float) -> None:
    share = float(reliability.availability(mtbf, repair))
    assert 0 < share <= 1
    assert float(reliability.availability(mtbf, 2 * repair)) <= share
    assert 1.0 == float(reliability.availability(mtbf, 0.0))


def test_a_job_that_waits_for_repairs_runs_as_long_as_availability_says() -> None:
    random = np.random.default_rng(3)
    up, fails = random.exponential(9.0, 200_000), random.random(200_000) < 0.75
    wait = np.where(fails, random.exponential(4.0, 200_000), 0.0)
    assert up.sum() / (up + wait).sum() == pytest.approx(float(reliability.availability(9.0, 0.75 * 4.0)), rel=0.005)


@given(st.integers(0, 100_000), st.integers(0, 1000), st.floats(0.0, 1.0))
def test_a_bad_node_is_never_less_likely_among_more_nodes(nodes: int, more: int, share: float) -> None:
    assert 0.0 <= float(reliability.any_bad(nodes, share)) <= float(reliability.any_bad(nodes + more, share)) <= 1.0


@given(st.integers(0, 10_000), st.floats(1e-6, 0.5))
def test_any_bad_node_is_the_binomial_of_an_independent_program(nodes: int, share: float) -> None:
    assert float(binom.sf(0, nodes, share)) == pytest.approx(float(reliability.any_bad(nodes, share)), abs=1e-12)


def test_no_node_is_bad_where_none_are() -> None:
    assert 0.0 == float(reliability.any_bad(512, 0.0))
    assert 0.0 == float(reliability.any_bad(0, 0.5))
