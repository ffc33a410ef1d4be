"""Waiting in a queue."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import queueing


@given(st.floats(0.01, 0.99))
def test_one_server_waits_with_the_probability_that_it_is_busy(load: float) -> None:
    assert float(queueing.waiting_probability_erlang_1917(load, 1)) == pytest.approx(load)


@given(st.floats(0.01, 0.98), st.floats(0.1, 10.0))
def test_one_server_has_the_wait_of_pollaczek_and_khinchine(load: float, service: float) -> None:
    expected = load * service / (1.0 - load) * (1.0 + 0.0) / 2.0
    found = queueing.mean_wait_allen_cunneen_1978(load / service, service, 1, 1.0, 0.0)
    assert float(found) == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.1, 50.0), st.integers(1, 60))
def test_one_more_server_never_waits_longer(load: float, servers: int) -> None:
    few, many = (float(queueing.mean_wait_allen_cunneen_1978(load, 1.0, c)) for c in (servers, servers + 1))
    assert many <= few or np.isinf(few)


def test_an_overloaded_queue_never_ends() -> None:
    assert np.isinf(float(queueing.mean_wait_allen_cunneen_1978(3.0, 1.0, 2)))
