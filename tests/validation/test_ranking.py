"""Ranking: which layout would be chosen, and what that choice costs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from clusterwright.validation.ranking import kendall_tau, pick_regret, rank, summarise
from tests.validation.runs import scored

FEW = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]), min_size=2, max_size=9)


def test_a_job_needs_four_layouts_to_be_ranked() -> None:
    runs = [scored(t, t, tp=tp) for tp, t in ((1, 1.0), (2, 2.0), (4, 3.0))]
    assert [] == rank(runs)
    (job,) = rank([*runs, scored(4.0, 4.0, tp=8)])
    assert (4, 1.0, 0.0) == (job.n, job.kendall_tau, job.pick_regret)


def test_the_regret_is_how_much_longer_the_pick_took_than_the_best() -> None:
    (job,) = rank([scored(m, e, tp=tp) for tp, m, e in ((1, 1.0, 2.0), (2, 1.25, 1.0), (4, 3.0, 3.0), (8, 4.0, 4.0))])
    assert job.pick_regret == pytest.approx(0.25)
    assert job.kendall_tau == pytest.approx(2 / 3)
    assert "tp 2 " in job.picked
    assert "tp 1 " in job.best


def test_runs_of_one_layout_count_once() -> None:
    layouts = [(1, 1.0), (2, 2.0), (4, 3.0), (8, 4.0)]
    (job,) = rank([scored(t * noise, t, tp=tp) for tp, t in layouts for noise in (0.99, 1.0, 1.01)])
    assert job.n == 4


def test_another_batch_is_another_job() -> None:
    runs = [scored(1.0 + tp, 1.0 + tp, tp=tp, gbs=gbs) for tp, gbs in itertools.product((1, 2, 4, 8), (64, 128))]
    assert [4, 4] == [job.n for job in rank(runs)]


def test_jobs_within_a_node_and_across_nodes_are_told_apart() -> None:
    runs = [scored(1.0 + tp, 1.0 + tp, tp=tp, n_gpus=n) for tp, n in itertools.product((1, 2, 4, 8), (8, 64))]
    assert {"single-node", "multi-node"} == {group["nodes"] for group in summarise(rank(runs))}


@given(FEW, st.randoms())
def test_tau_is_that_of_scipy(first: list[float], random: object) -> None:
    second = list(first)
    random.shuffle(second)  # type: ignore[attr-defined] # hypothesis' own random
    found = kendall_tau(np.array(first), np.array(second))
    expected = kendalltau(first, second).statistic
    assert (found is None and np.isnan(expected)) or found == pytest.approx(expected)


@given(FEW)
def test_the_right_order_has_no_regret(measured: list[float]) -> None:
    assert pick_regret(np.array(measured), np.array(measured)) == 0.0
