"""The choice: within the constraints, by the objective, with words for what was left."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.errors import InputError
from clusterwright.search.design import design, trainable, whole_batch
from clusterwright.workload import Training
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.plan import Candidate, Plan
    from clusterwright.search.design import Known


def chosen(plan: Plan) -> Candidate:
    assert plan.chosen is not None
    return plan.chosen


def bindings(plan: Plan) -> set[str]:
    return {r.binding_constraint for r in plan.rejected}


def test_the_fastest_is_not_slower_and_the_cheapest_not_dearer_than_the_knee(known: Known) -> None:
    fast, cheap, knee = (
        chosen(design(wish(constraints={"max_accelerators": 64}, prefer={"objective": o}), known)).estimate
        for o in ("time", "cost", "balanced")
    )
    assert fast.train_time_s <= knee.train_time_s <= cheap.train_time_s
    assert cheap.cost_usd <= knee.cost_usd <= fast.cost_usd


def test_the_choice_lies_on_the_front(known: Known) -> None:
    plan = design(wish(), known)
    assert plan.chosen in plan.front


@pytest.mark.parametrize(("key", "value"), [("deadline", "1 hour"), ("budget", "10 USD"), ("power", "1 kW")])
def test_an_impossible_constraint_names_itself_and_the_nearest_miss(known: Known, key: str, value: str) -> None:
    plan = design(wish(constraints={key: value}), known)
    miss = next(r for r in plan.rejected if r.binding_constraint == key)
    assert plan.chosen is None
    assert miss.candidate is not None
    assert miss.why.startswith("needs ")
    assert f"; {key} " in miss.why


def test_constraints_that_only_bind_together_are_all_named(known: Known) -> None:
    slow = chosen(design(wish(prefer={"objective": "cost"}), known)).estimate
    fast = chosen(design(wish(prefer={"objective": "time"}), known)).estimate
    limits = {"budget": f"{slow.cost_usd * 0.999} USD", "deadline": f"{fast.train_time_s * 0.999} s"}
    plan = design(wish(constraints=limits), known)
    assert plan.chosen is None
    assert {"budget", "deadline"} <= bindings(plan)
    assert "together" in next(r.why for r in plan.rejected if r.binding_constraint == "budget")


def test_a_node_above_the_limit_of_accelerators_names_the_limit(known: Known) -> None:
    limits = {"max_accelerators": 4, "providers": ["oci"], "terms": ["on-demand"]}
    plan = design(wish(constraints=limits), known)
    assert plan.chosen is None
    assert "max_accelerators" in bindings(plan)


def test_a_cheaper_cluster_that_misses_the_deadline_is_among_the_rejected(known: Known) -> None:
    free = chosen(design(wish(), known)).estimate
    plan = design(wish(constraints={"deadline": f"{free.train_time_s * 0.9} s"}), known)
    assert chosen(plan).estimate.train_time_s <= free.train_time_s * 0.9
    miss = next(r for r in plan.rejected if r.binding_constraint == "deadline")
    assert miss.candidate is not None
    assert miss.candidate.estimate.cost_usd < chosen(plan).estimate.cost_usd
    assert "cheaper" in miss.why


def test_offers_of_unknown_network_are_counted_and_never_joined(known: Known) -> None:
    plan = design(wish(), known)
    assert next(r.count for r in plan.rejected if r.binding_constraint == "unknown-network") > 0
    for one in plan.front:
        assert one.nodes == 1 or one.fabric.tiers > 0


def test_an_old_price_is_a_warning_that_names_provider_term_and_day(known: Known) -> None:
    asked = wish()
    later = type(asked)(asked.workload, asked.model, asked.document, date(2028, 1, 1))
    plan = design(later, known)
    offer = chosen(plan).offer
    assert offer.seen is not None
    words = next(w for w in plan.warnings if "days ago" in w)
    assert all(word in words for word in (offer.provider, offer.term, offer.seen.isoformat()))


@pytest.mark.parametrize(
    ("key", "value", "near"),
    [
        ("providers", ["lamda"], "lambda"),
        ("accelerators", ["h100-sxn"], "h100-sxm"),
        ("regions", ["us-esat"], "us-east"),
    ],
)
def test_an_unknown_word_is_told_with_the_nearest_right_one(
    known: Known, key: str, value: list[str], near: str
) -> None:
    with pytest.raises(InputError, match=near):
        design(wish(constraints={key: value}), known)


@pytest.mark.parametrize(
    ("lines", "word"), [({"tokens": "1e30"}, "tokens"), ({"sequence_length": 2**40}, "sequence_length")]
)
def test_a_figure_beyond_all_sense_is_refused_by_name(known: Known, lines: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        design(wish(training=lines), known)


def test_serving_alone_is_refused_in_words(known: Known) -> None:
    document = {"model": {"name": "small"}, "serving": {"requests_per_s": 1.0}}
    asked = wish()
    alone = type(asked.workload).model_validate(document)
    assert known.catalogue is not None
    with pytest.raises(InputError, match="serving"):
        trainable(alone)


def test_pins_that_leave_nothing_name_the_rule(known: Known) -> None:
    with pytest.raises(InputError, match=r"tp=3.*heads"):
        design(wish(pins={"tp": 3}), known)


def test_a_pin_is_kept(known: Known) -> None:
    assert chosen(design(wish(pins={"tp": 2, "pp": 2}), known)).layout.tp == 2


def test_on_a_cluster_that_is_there_the_whole_is_paid(known: Known) -> None:
    plan = design(
        wish(constraints={"accelerators": None}, cluster={"node": "dgx-h100", "nodes": 2, "usd_per_hour": 50.0}), known
    )
    one = chosen(plan)
    assert one.node == "dgx-h100"
    assert one.estimate.cost_usd == pytest.approx(50.0 * one.estimate.train_time_s / 3600)
    assert one.nodes + one.spares <= 2


def test_constraints_that_leave_no_offer_are_bad_news_and_named(known: Known) -> None:
    plan = design(wish(constraints={"providers": ["lambda"], "terms": ["spot"]}), known)
    assert plan.chosen is None
    assert bindings(plan) <= {"providers", "terms", "accelerators"}
    assert {"providers", "terms"} <= bindings(plan)
    assert all("no offer is left" in r.why for r in plan.rejected)


def test_a_cluster_and_accelerators_that_contradict_are_both_named(known: Known) -> None:
    asked = wish(constraints={"accelerators": ["b200-sxm"]}, cluster={"node": "dgx-h100", "nodes": 2})
    with pytest.raises(InputError, match=r"dgx-h100.*accelerators.*b200-sxm"):
        design(asked, known)


def test_a_cluster_that_costs_nothing_is_used_as_fast_as_it_can_be(known: Known) -> None:
    plan = design(wish(constraints={"accelerators": None}, cluster={"node": "dgx-h100", "nodes": 2}), known)
    assert chosen(plan).estimate.cost_usd == 0
    assert chosen(plan).estimate.train_time_s == min(p.estimate.train_time_s for p in plan.front)


@pytest.mark.parametrize(
    ("asked", "sequence_length", "batch"),
    [
        ("4M tokens", 8192, 512),
        ("1M tokens", 8192, 128),
        ("16M tokens", 8192, 2048),
        (488, 8192, 488),
        ("3 tokens", 2, 2),
    ],
)
def test_a_batch_in_tokens_becomes_a_number_of_sequences_that_divides(
    asked: str | int, sequence_length: int, batch: int
) -> None:
    lines = {"tokens": "1B", "sequence_length": sequence_length, "global_batch": asked}
    assert batch == whole_batch(Training.model_validate(lines))


def test_a_plan_survives_being_written_and_read(known: Known) -> None:
    plan = design(wish(), known)
    assert plan == type(plan).model_validate_json(plan.to_json())


def test_every_term_of_the_tree_is_there_and_the_roots_are_the_estimate(known: Known) -> None:
    plan = design(wish(), known)
    assert plan.terms is not None
    for name, value in (
        ("train time", chosen(plan).estimate.train_time_s), ("cost", chosen(plan).estimate.cost_usd),
        ("memory", chosen(plan).estimate.memory_bytes), ("step time", chosen(plan).estimate.step_time_s),
        ("goodput", chosen(plan).estimate.goodput),
    ):  # fmt: skip
        term = plan.terms.find(name)
        assert term is not None
        assert term.value == pytest.approx(value, rel=1e-9)
