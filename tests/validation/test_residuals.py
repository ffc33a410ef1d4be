"""Residuals: what the steps are made of, and what the error goes with."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from clusterwright.validation.residuals import rank_correlation, residuals
from tests.validation.runs import scored


def test_the_term_that_is_off_is_named() -> None:
    """Communication is estimated at half of what it takes; the work is right."""
    i = np.arange(12.0)
    terms = {"work": 1.0 + 0.5 * np.sin(3 * i), "host": 0.6 + 0.4 * np.cos(5 * i), "talk": np.linspace(0.1, 2.0, 12)}
    truth = [{name: float(seconds[n]) for name, seconds in terms.items()} for n in range(12)]
    parts = [each | {"talk": each["talk"] / 2} for each in truth]
    runs = [scored(sum(t.values()), sum(p.values()), parts=p) for t, p in zip(truth, parts, strict=True)]
    (found,) = residuals(runs)
    assert "talk" == found.goes_with
    assert found.correlation == pytest.approx(-1.0)
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert found.bias < 0


def test_a_few_runs_name_no_term() -> None:
    (found,) = residuals([scored(1.0, 2.0), scored(1.0, 3.0)])
    assert (None, None, 2) == (found.goes_with, found.correlation, found.n)


def test_the_worst_source_comes_first() -> None:
    assert ["bad", "s"] == [r.source for r in residuals([scored(1.0, 1.1), scored(1.0, 2.0, source_group="bad")])]


@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0]), st.floats(0, 1)), min_size=3, max_size=9))
def test_the_correlation_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    first, second = np.array(pairs).T
    if len(set(first)) > 1 and len(set(second)) > 1:
        assert rank_correlation(first, second) == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)
    else:
        assert rank_correlation(first, second) == 0.0
