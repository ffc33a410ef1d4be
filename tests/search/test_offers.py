"""Which prices count: owning, storage, spot nodes that are taken away, and prices that are too old."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from clusterwright.search.design import Wish, deal_of, design, offered_by, setting_of, trainable
from clusterwright.search.offers import day_of
from clusterwright.units import YEAR
from tests.search.conftest import TODAY, wish

if TYPE_CHECKING:
    from clusterwright.estimators.cost import Quote
    from clusterwright.search.design import Known

ALL = ["on-demand", "spot", "reserved", "capacity-block"]


def quotes(asked: Wish, known: Known) -> list[Quote]:
    setting = setting_of(asked, trainable(asked.workload), known)
    return [quote for kind in offered_by(asked, setting, known).kinds for quote in kind.quotes]


def test_an_old_price_is_not_used_where_a_fresher_one_is(known: Known) -> None:
    asked = wish(constraints={"accelerators": ["h200-sxm"]})
    used = quotes(asked, known)
    assert used
    assert max((TODAY - q.seen).days for q in used if q.seen) <= 365
    old = wish(constraints={"accelerators": ["h200-sxm"], "price_age": "5 years"})
    assert len(quotes(old, known)) > len(used)


def test_what_is_too_old_is_told_with_how_to_allow_it(known: Known) -> None:
    plan = design(wish(constraints={"accelerators": ["h200-sxm"]}), known)
    miss = next(r for r in plan.rejected if r.binding_constraint == "price_age")
    assert "not used" in miss.why
    assert "price_age" in miss.why
    assert any(why.startswith("offers: price older than") for why in plan.exclusions)


def test_where_all_prices_are_old_they_are_used_and_the_plan_warns(known: Known) -> None:
    asked = wish(constraints={"accelerators": ["h100-sxm"]})
    later = Wish(asked.workload, asked.model, asked.document, TODAY + timedelta(days=3650))
    assert quotes(later, known)
    plan = design(later, known)
    assert plan.chosen is not None
    assert any("days ago: ask again" in line for line in plan.warnings)


def test_owning_is_an_offer_only_when_asked_for(known: Known) -> None:
    without = quotes(wish(constraints={"terms": ALL}), known)
    asked = quotes(wish(constraints={"terms": ALL, "own": True}), known)
    assert {q.term for q in asked} - {q.term for q in without} == {"owned"}
    owned = next(q for q in asked if q.owned is not None)
    assert "dgx-h100" == owned.instance
    assert owned.usd_per_accelerator_hour > 0
    assert owned.source


def test_owning_is_kept_as_long_as_the_horizon_says(known: Known) -> None:
    asked = [q for q in quotes(wish(constraints={"own": True, "horizon": "3 years"}), known) if q.owned]
    assert {3 * YEAR} == {q.commitment_s for q in asked}
    usual = [q for q in quotes(wish(constraints={"own": True}), known) if q.owned]
    assert {known.catalogue.owning.life.value * YEAR} == {q.commitment_s for q in usual}


def test_owning_costs_its_whole_life_and_with_utilisation_the_share_of_the_job(known: Known) -> None:
    constraints = {"own": True, "terms": ["reserved"], "providers": ["azure"]}
    alone = design(wish(constraints=constraints), known).chosen
    shared = design(wish(constraints={**constraints, "horizon": "5 years", "utilisation": 0.5}), known).chosen
    assert alone is not None
    assert shared is not None
    assert "owned" == alone.offer.provider == shared.offer.provider
    assert alone.estimate.cost_usd == pytest.approx(alone.estimate.commitment_usd, rel=1e-6)
    assert shared.estimate.commitment_usd is not None
    assert shared.estimate.cost_usd < 0.2 * shared.estimate.commitment_usd
    share = shared.estimate.train_time_s / (0.5 * 5 * YEAR)
    assert shared.estimate.cost_usd == pytest.approx(share * shared.estimate.commitment_usd, rel=1e-3)


def test_a_plan_that_owns_says_both_sums_and_cites_what_it_assumed(known: Known) -> None:
    constraints = {"own": True, "terms": ["reserved"], "providers": ["azure"]}
    plan = design(wish(constraints={**constraints, "horizon": "5 years", "utilisation": 0.5}), known)
    assert any("committed" in line and "share" in line for line in plan.warnings)
    assert any(line.startswith("owning: finance") for line in plan.assumptions)
    assert any("cbre.com" in source for source in plan.sources)
    assert plan.terms is not None
    assert {"owning", "colocation", "network"} <= set(plan.terms.names())


def test_spot_nodes_have_a_rate_and_others_do_not(known: Known) -> None:
    found = quotes(wish(constraints={"accelerators": ["h200-sxm"], "terms": ALL}), known)
    assert {q.term for q in found if math.isfinite(q.node_mtbi_s)} == {"spot"}
    assert all(q.reclaim_source for q in found if q.term == "spot")


def test_spot_nodes_take_longer_and_say_how_often_they_are_taken_away(known: Known) -> None:
    spot = design(wish(constraints={"terms": ["spot"], "providers": ["coreweave"]}), known)
    firm = design(wish(constraints={"terms": ["on-demand"], "providers": ["coreweave"]}, pins=None), known)
    assert spot.chosen is not None
    assert firm.chosen is not None
    assert spot.chosen.estimate.goodput < firm.chosen.estimate.goodput
    (line,) = [line for line in spot.warnings if line.startswith("spot:")]
    assert "taken away within a month" in line
    assert spot.terms is not None
    assert spot.terms.find("between nodes taken away") is not None
    assert firm.terms is not None
    assert firm.terms.find("between nodes taken away") is None


def test_storage_is_paid_as_long_as_the_job_runs(known: Known) -> None:
    little = design(wish(storage={"data": "1 TB", "checkpoints_kept": 1}), known)
    much = design(wish(storage={"data": "100 TB", "checkpoints_kept": 1, "egress": "10 TB"}), known)
    assert little.terms is not None
    assert much.terms is not None
    stored = [plan.terms.find("storage") for plan in (little, much) if plan.terms]
    assert stored[0] is not None
    assert stored[1] is not None
    assert stored[0].value < stored[1].value
    assert little.terms.find("egress") is None
    assert much.terms.find("egress") is not None
    cost = much.terms.find("cost")
    assert cost is not None
    assert cost.value == pytest.approx(sum(part.value for part in cost.parts))
    assert much.chosen is not None
    assert cost.value == pytest.approx(much.chosen.estimate.cost_usd)


def test_what_is_kept_on_storage_is_the_checkpoints_and_the_tokens(known: Known) -> None:
    asked = wish()
    deal = deal_of(asked, setting_of(asked, trainable(asked.workload), known), known)
    more = wish(storage={"checkpoints_kept": 20})
    twice = deal_of(more, setting_of(more, trainable(more.workload), known), known)
    tokens = 20e9 * 2
    assert 2 * (deal.stored_bytes - tokens) == pytest.approx(twice.stored_bytes - tokens)


def test_a_day_is_read_from_what_a_source_says() -> None:
    assert day_of("2026-07") is not None
    assert day_of("undated") is None
    assert day_of("2026-Q1") is None


def test_a_budget_that_only_the_share_keeps_is_told(known: Known) -> None:
    constraints = {"own": True, "terms": ["reserved"], "providers": ["azure"], "horizon": "5 years", "utilisation": 0.5}
    plan = design(wish(constraints={**constraints, "budget": "50K USD"}), known)
    assert plan.chosen is not None
    assert any("covers the share alone" in line for line in plan.warnings)


def test_horizon_and_utilisation_that_nothing_uses_are_told(known: Known) -> None:
    plan = design(wish(constraints={"horizon": "3 years"}), known)
    assert any("only what is committed to uses it" in line for line in plan.warnings)


def test_what_a_cluster_that_is_there_leaves_out_is_told(known: Known) -> None:
    plan = design(wish(cluster={"node": "dgx-h100", "nodes": 2}), known)
    assert any("are not in the cost" in line for line in plan.assumptions)
