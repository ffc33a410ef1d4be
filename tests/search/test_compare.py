"""Rent, reserve or own: what useful work costs each way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from clusterwright.errors import InfeasibleError, InputError
from clusterwright.search.compare import Comparison, compare
from clusterwright.search.design import design
from clusterwright.search.ways import UTILISATION
from clusterwright.units import HOUR, YEAR
from tests.search.conftest import SMALL, wish

if TYPE_CHECKING:
    from clusterwright.search.design import Known

H200 = {"accelerators": ["h200-sxm"], "horizon": "3 years", "utilisation": 0.5}
"""On demand, spot, reserved and capacity blocks are all known of it, on nodes whose network is known."""


@pytest.fixture(scope="module")
def found(known: Known) -> Comparison:
    """Sixteen H200 at most, kept three years."""
    return compare(wish(constraints=H200, training={"tokens": "200B"}, pins={"accelerators": 16}), known)


def by_the_hour(found: Comparison) -> list[int]:
    return [i for i, one in enumerate(found.offers) if one.billed == "by the hour"]


def test_all_terms_are_compared_whatever_the_workload_allows(found: Comparison) -> None:
    assert {"on-demand", "spot", "reserved", "capacity-block"} == {one.term for one in found.offers}


def test_at_the_break_even_a_useful_hour_costs_the_same_either_way(found: Comparison) -> None:
    assert found.owned is not None
    assert found.own is not None
    some = [one for one in found.offers if one.break_even_utilisation]
    assert some
    for one in some:
        share = one.break_even_utilisation
        assert share is not None
        assert one.at(share) == pytest.approx(found.owned.at(share))


def test_above_the_break_even_owning_is_cheaper_and_below_it_is_not(found: Comparison) -> None:
    assert found.owned is not None
    for one in found.offers:
        if one.break_even_utilisation:
            more, less = min(1.0, one.break_even_utilisation * 1.1), one.break_even_utilisation * 0.9
            assert found.owned.at(more) <= one.at(more)
            assert found.owned.at(less) > one.at(less)


def test_against_a_reservation_utilisation_cancels_and_says_so(found: Comparison) -> None:
    assert found.owned is not None
    firm = [one for one in found.offers if one.billed == "round the clock"]
    assert firm
    for one in firm:
        assert one.break_even_utilisation is None
        assert "utilisation cancels" in one.break_even_reason
        assert one.break_even_interval is None
        ratios = [
            ours / theirs
            for ours, theirs in zip(
                found.owned.usd_per_useful_accelerator_hour, one.usd_per_useful_accelerator_hour, strict=True
            )
        ]
        assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=0.02)
    assert any("utilisation cancels" in line for line in found.reasons)


def test_where_owning_is_dearer_even_at_full_use_there_is_no_break_even(known: Known) -> None:
    cheap = compare(wish(constraints={**H200, "horizon": "6 months"}, pins={"accelerators": 16}), known)
    never = [one for one in cheap.offers if one.break_even_utilisation is None and one.billed == "by the hour"]
    assert never
    assert all("dearer even if used all the time" in one.break_even_reason for one in never)


def test_the_interval_holds_the_break_even(found: Comparison) -> None:
    for one in (found.offers[i] for i in by_the_hour(found)):
        assert one.break_even_interval is not None
        low, high = one.break_even_interval
        assert 0 <= low < high
        if one.break_even_utilisation is not None:
            assert low < one.break_even_utilisation < high


def test_a_job_a_year_and_an_hour_say_the_same(found: Comparison) -> None:
    for one in found.offers:
        hours = {round(job / hour, 3) for job, hour in zip(
            one.usd_per_job, one.usd_per_useful_accelerator_hour, strict=True)}  # fmt: skip
        assert 1 == len(hours)
    jobs = 0.5 * YEAR / found.train_time_s
    half = UTILISATION.index(0.5)
    for one in found.offers:
        assert one.usd_per_job[half] * jobs == pytest.approx(one.usd_per_year[half])


def test_owning_costs_the_same_every_year_however_much_it_is_used(found: Comparison) -> None:
    assert found.owned is not None
    assert found.own is not None
    year = found.own.usd_per_hour * YEAR / HOUR
    assert [pytest.approx(year)] * len(UTILISATION) == list(found.owned.usd_per_year)
    assert year == pytest.approx(sum(found.own.usd_per_year.values()))


def test_the_plan_charges_what_the_comparison_says_a_job_costs(known: Known) -> None:
    asked = wish(constraints={**H200, "own": True, "terms": ["reserved"], "providers": ["azure"]})
    plan = design(asked, known)
    assert plan.chosen is not None
    assert "owned" == plan.chosen.offer.term
    found = compare(asked, known, plan)
    assert found.owned is not None
    assert plan.chosen.estimate.cost_usd == pytest.approx(found.owned.usd_per_job[UTILISATION.index(0.5)], rel=1e-6)


def test_rent_pays_back_sooner_the_more_is_used_and_finance_never_makes_it_sooner(found: Comparison) -> None:
    paid = 0
    for one in found.offers:
        months = [float("inf") if m is None else m for m in one.pay_back_months]
        with_finance = [float("inf") if m is None else m for m in one.pay_back_months_with_finance]
        assert sorted(months, reverse=True) == pytest.approx(months)
        assert all(a <= b for a, b in zip(months, with_finance, strict=True))
        paid += months[-1] < float("inf")
    assert paid


def test_spot_nodes_are_taken_away_and_that_is_in_their_price(found: Comparison) -> None:
    spot = next(one for one in found.offers if one.term == "spot")
    firm = next(one for one in found.offers if one.instance == spot.instance and one.term == "on-demand")
    assert spot.goodput < firm.goodput
    assert any(line.startswith("spot:") for line in found.warnings)


def test_what_is_left_out_of_owning_makes_it_cheaper_and_is_told(known: Known, found: Comparison) -> None:
    asked = wish(constraints=H200, training={"tokens": "200B"}, pins={"accelerators": 16})
    less = compare(asked, known, without=["colocation", "support"])
    assert less.own is not None
    assert found.own is not None
    assert ("colocation", "support") == less.own.left_out
    assert less.own.usd_per_hour < found.own.usd_per_hour
    assert any("without colocation, support" in line for line in less.warnings)


def test_an_unknown_part_is_refused_with_the_nearest(known: Known) -> None:
    with pytest.raises(InputError, match="did you mean colocation"):
        compare(wish(constraints=H200), known, without=["colocatoin"])


def test_providers_are_kept_and_the_others_counted(known: Known) -> None:
    only = compare(wish(constraints={**H200, "providers": ["azure"]}, pins={"accelerators": 16}), known)
    assert {"azure"} == {one.provider for one in only.offers}
    assert only.left_out["another provider or region"] > 0


def test_what_has_no_price_to_buy_is_compared_by_rent_alone(known: Known) -> None:
    rents = compare(wish(constraints={"accelerators": ["mi300x"]}), known)
    assert rents.own is None
    assert rents.offers
    assert {None} == set(rents.break_even_utilisation.values())
    assert all("owning.toml" in one.break_even_reason for one in rents.offers)


def test_a_cluster_that_is_there_is_compared_as_a_whole(known: Known) -> None:
    there = {"node": "dgx-h100", "nodes": 4, "usd_per_hour": 40.0}
    found = compare(wish(cluster=there), known)
    assert found.own is not None
    assert 4 == found.own.nodes
    ours = next(one for one in found.offers if one.provider == "own")
    assert ("round the clock", 4) == (ours.billed, ours.nodes)


def test_offers_have_names_of_their_own(found: Comparison) -> None:
    assert len(found.offers) == len(found.break_even_utilisation)


def test_nothing_to_compare_says_where_to_look(known: Known) -> None:
    with pytest.raises(InfeasibleError, match="clusterwright plan"):
        compare(wish(constraints={"deadline": "1 min"}), known)


def test_a_plan_of_another_model_is_refused(known: Known) -> None:
    plan = design(wish(), known)
    other = replace(wish(), model=SMALL.model_copy(update={"name": "other"}))
    with pytest.raises(InputError, match="is of small"):
        compare(other, known, plan)


def test_a_node_that_the_job_does_not_fill_is_not_compared(known: Known) -> None:
    found = compare(
        wish(constraints={"max_accelerators": 1}, training={"method": "lora", "sequence_length": 1024}), known
    )
    assert 1 == found.accelerators
    assert {1} == {one.nodes for one in found.offers}
    assert any(why == "1 accelerators are not whole nodes of 8" for why in found.left_out)


def test_owning_fewer_cables_is_compared_as_it_is_planned(known: Known) -> None:
    only = {**H200, "own": True, "terms": ["reserved"], "providers": ["azure"], "max_accelerators": 16}
    plan = design(wish(constraints=only), known)
    assert plan.chosen is not None
    found = compare(wish(constraints=only), known, plan)
    assert plan.chosen.node == found.node
    assert found.own is not None
    assert plan.chosen.nodes + plan.chosen.spares == found.own.nodes
