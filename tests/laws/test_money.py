"""Rent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws.money import rent

AMOUNT = st.floats(0, 1e9)


@given(st.integers(1, 10_000), AMOUNT, AMOUNT, AMOUNT)
def test_a_longer_time_is_never_cheaper(nodes: int, price: float, time: float, more: float) -> None:
    assert rent(nodes, price, time) <= rent(nodes, price, time + more)


@given(st.integers(1, 10_000), AMOUNT, AMOUNT, AMOUNT)
def test_a_commitment_costs_its_whole_term_and_never_less(
    nodes: int, price: float, time: float, commitment: float
) -> None:
    assert float(rent(nodes, price, max(time, commitment))) == float(rent(nodes, price, time, commitment))


@given(AMOUNT, AMOUNT)
def test_no_nodes_cost_nothing(price: float, time: float) -> None:
    assert float(rent(0, price, time)) == 0.0
