"""What is said about a choice's robustness is what a new search finds."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clusterwright.market import PricePerNodeHour
from clusterwright.report import threshold_words
from clusterwright.search.design import Known, design
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.plan import Candidate, Case, Plan, Swing, Threshold

LIMITS = {"accelerators": ["h100-sxm", "h200-sxm", "b200-sxm"], "terms": ["on-demand"], "deadline": "40 days"}


@pytest.fixture(scope="module")
def plan(known: Known) -> Plan:
    return design(wish(constraints=LIMITS), known)


def chosen(plan: Plan) -> Candidate:
    assert plan.chosen is not None
    return plan.chosen


def words(plan: Plan) -> str:
    one = chosen(plan)
    return f"{one.accelerators} {one.accelerator} ({one.offer.provider}, {one.offer.term})"


def swing(plan: Plan, what: str) -> Swing:
    return next(one for one in plan.robustness.swings if one.what.startswith(what))


def ends(one: Swing) -> tuple[Case, Case]:
    return one.low, one.high


def priced(known: Known, one: Threshold, factor: float) -> Known:
    """The catalogue with other prices for the offers of a threshold."""
    offers = tuple(
        o.model_copy(update={"price": PricePerNodeHour(usd=o.price.usd * factor)})
        if (o.provider, o.accelerator, o.term) == (one.provider, one.accelerator, one.term)
        else o
        for o in known.catalogue.offers
    )
    other = copy.copy(known.catalogue)
    other.offers = offers
    return replace(known, catalogue=other)


def test_more_or_fewer_tokens_lead_where_a_new_search_leads(known: Known, plan: Plan) -> None:
    for case in ends(swing(plan, "tokens")):
        again = design(wish(constraints=LIMITS, training={"tokens": case.factor * 20e9}), known)
        assert words(again) == case.choice
        assert chosen(plan).estimate.train_time_s * case.factor == pytest.approx(case.train_time_s, rel=1e-3)


def test_more_or_fewer_failures_lead_where_a_new_search_leads(known: Known, plan: Plan) -> None:
    for case in ends(swing(plan, "failures")):
        rates = known.rates.model_copy(update={"mtbf_s": known.rates.mtbf_s / case.factor})
        assert words(design(wish(constraints=LIMITS), replace(known, rates=rates))) == case.choice


def test_more_failures_never_take_less_time(plan: Plan) -> None:
    low, high = ends(swing(plan, "failures"))
    assert low.train_time_s <= chosen(plan).estimate.train_time_s <= high.train_time_s


def test_step_times_vary_over_their_interval(plan: Plan) -> None:
    estimate = chosen(plan).estimate
    for what in ("step time of all", "step time of"):
        low, high = ends(swing(plan, what))
        assert estimate.interval == pytest.approx(
            (low.factor * estimate.step_time_s, high.factor * estimate.step_time_s)
        )
        assert estimate.train_time_s * low.factor == pytest.approx(low.train_time_s)


def test_the_choice_changes_at_the_price_that_is_said(known: Known, plan: Plan) -> None:
    assert plan.robustness.thresholds
    for one in plan.robustness.thresholds:
        change = one.changes_at_usd / one.usd_per_accelerator_hour
        falls = change < 1
        beyond, before = (0.998, 1.002) if falls else (1.002, 0.998)
        assert one.choice == words(design(wish(constraints=LIMITS), priced(known, one, change * beyond)))
        unchanged = chosen(design(wish(constraints=LIMITS), priced(known, one, change * before)))
        assert (unchanged.accelerator, unchanged.offer.provider) == (
            chosen(plan).accelerator, chosen(plan).offer.provider,
        )  # fmt: skip


def test_a_threshold_is_a_sentence_with_both_prices(plan: Plan) -> None:
    for one in plan.robustness.thresholds:
        text = threshold_words(one)
        assert f"${one.changes_at_usd:.2f}" in text
        assert f"${one.usd_per_accelerator_hour:.2f}" in text
        assert one.provider in text


def test_a_cluster_that_costs_nothing_has_no_prices_to_change(known: Known) -> None:
    plan = design(wish(constraints={"accelerators": None}, cluster={"node": "dgx-h100", "nodes": 2}), known)
    assert plan.robustness.thresholds == ()
    assert all("price" not in one.what for one in plan.robustness.swings)
    assert plan.robustness.swings
