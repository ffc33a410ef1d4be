"""Rent, commitments, and what owning costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws.money import (
    annuity,
    break_even_utilisation,
    commitment_share,
    energy_cost,
    net_present_value,
    pay_back,
    rent,
    residual_value,
    storage_rent,
)

AMOUNT = st.floats(0, 1e9)
PRICE = st.floats(1, 1e9)
SHARE = st.floats(0.01, 1)
RATE = st.floats(1e-4, 0.5)
PERIODS = st.integers(1, 120)


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


@given(PRICE, PRICE, SHARE)
def test_a_job_never_bears_more_than_the_whole_commitment(time: float, kept: float, utilisation: float) -> None:
    assert 0.0 < float(commitment_share(time, kept, utilisation)) <= 1.0


@given(SHARE, SHARE, PRICE)
def test_jobs_that_fill_the_useful_time_bear_the_whole_together(part: float, utilisation: float, kept: float) -> None:
    first = float(commitment_share(part * utilisation * kept, kept, utilisation))
    rest = float(commitment_share((1 - part) * utilisation * kept, kept, utilisation))
    assert first + rest == pytest.approx(1.0)


@given(PRICE, AMOUNT, AMOUNT, SHARE)
def test_the_older_never_sells_for_more_and_never_for_less_than_nothing(
    price: float, age: float, more: float, share: float
) -> None:
    younger, older = (float(residual_value(price, a, share, 1e8)) for a in (age, age + more))
    assert 0.0 <= older <= younger <= price


@given(PRICE, SHARE)
def test_at_the_known_age_the_known_share_is_left(price: float, share: float) -> None:
    assert float(residual_value(price, 3.0, share, 3.0)) == pytest.approx(share * price)


@given(PRICE, SHARE, RATE, PERIODS)
def test_an_annuity_pays_price_and_capital_exactly(price: float, left: float, rate: float, periods: int) -> None:
    level = float(annuity(price, left * price, rate, periods))
    flows = np.full(periods + 1, level)
    flows[0], flows[-1] = -price, level + left * price
    assert float(net_present_value(flows, rate)) == pytest.approx(0.0, abs=1e-6 * price)


@given(PRICE, SHARE, PERIODS)
def test_without_cost_of_capital_an_annuity_is_straight_line_depreciation(
    price: float, left: float, periods: int
) -> None:
    assert float(annuity(price, left * price, 0.0, periods)) == pytest.approx(
        price * (1 - left) / periods, abs=1e-9 * price
    )
    assert float(annuity(price, left * price, 1e-9, periods)) == pytest.approx(
        price * (1 - left) / periods, abs=1e-6 * price
    )


@given(PRICE, SHARE, RATE, RATE, PERIODS)
def test_dearer_capital_never_makes_owning_cheaper(
    price: float, left: float, rate: float, more: float, periods: int
) -> None:
    less, greater = (float(annuity(price, left * price, r, periods)) for r in (rate, rate + more))
    assert less <= greater * (1 + 1e-9)


@given(PRICE, PRICE)
def test_at_the_break_even_an_owned_hour_costs_what_a_rented_one_does(owned: float, rented: float) -> None:
    share = float(break_even_utilisation(owned, rented))
    assert owned / share == pytest.approx(rented)


def test_against_what_is_free_owning_never_breaks_even() -> None:
    assert math.inf == float(break_even_utilisation(1.0, 0.0))


@given(PRICE, PRICE, RATE)
def test_what_pays_back_is_worth_nothing_more_at_that_time(price: float, saving: float, rate: float) -> None:
    periods = float(pay_back(price, saving, rate))
    if math.isinf(periods):
        assert saving <= rate * price * (1 + 1e-9)
    else:
        worth = saving * -math.expm1(-periods * math.log1p(rate)) / rate
        assert worth == pytest.approx(price, rel=1e-6)


@given(PRICE, PRICE)
def test_cost_of_capital_never_pays_back_sooner(price: float, saving: float) -> None:
    assert float(pay_back(price, saving)) <= float(pay_back(price, saving, 0.01)) * (1 + 1e-9)


def test_what_saves_nothing_is_never_paid_back() -> None:
    assert [math.inf, math.inf] == pay_back(1.0, np.array([0.0, -5.0])).tolist()


@given(AMOUNT, AMOUNT, SHARE)
def test_energy_and_storage_cost_in_proportion_to_time(amount: float, time: float, price: float) -> None:
    for law in (energy_cost, storage_rent):
        once = float(law(amount, time, price) if law is energy_cost else law(amount, price, time))
        twice = float(law(amount, 2 * time, price) if law is energy_cost else law(amount, price, 2 * time))
        assert twice == pytest.approx(2 * once)
