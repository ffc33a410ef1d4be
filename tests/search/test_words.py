"""What a plan says of its reasons is so."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright.estimators.adequacy import weigh_networks_of_plan
from clusterwright.estimators.training import USABLE_MEMORY, Layouts, run
from clusterwright.layout import Layout
from clusterwright.report import show_plan
from clusterwright.search.design import deal_of, design, largest, offered_by, setting_of, trainable
from clusterwright.search.neighbours import layout_reasons
from clusterwright.search.offers import Kind
from clusterwright.search.propose import Limits, rules
from clusterwright.units import show_bytes
from tests.search.conftest import model, wish
from tests.search.test_brute_force import layouts

if TYPE_CHECKING:
    from clusterwright.estimators.job import Job
    from clusterwright.plan import Candidate, Plan
    from clusterwright.search.design import Known, Wish

LIMITS = {"accelerators": ["h100-sxm", "h200-sxm", "b200-sxm"], "terms": ["on-demand"], "deadline": "1 day"}


def chosen(plan: Plan) -> Candidate:
    assert plan.chosen is not None
    return plan.chosen


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_best_of_another_accelerator_is_as_far_away_as_is_said(known: Known, objective: str) -> None:
    prefer = {"objective": objective}
    plan = design(wish(constraints=LIMITS, prefer=prefer), known)
    ours = chosen(plan)
    told = [r for r in plan.reasons if r.startswith(("cheaper than", "faster than", "within 1%"))]
    names = {"h100-sxm", "h200-sxm", "b200-sxm"} - {ours.accelerator}
    assert names <= {word for r in told for word in r.split()}
    for name in names:
        rival = chosen(design(wish(constraints={**LIMITS, "accelerators": [name]}, prefer=prefer), known))
        sentence = next(r for r in told if f" {rival.accelerators} {name} ({rival.offer.provider}" in r)
        assert "because" in sentence or "as cheap as" in sentence


@pytest.mark.parametrize(("axis", "name"), [("tp", "tensor parallelism"), ("pp", "a pipeline")])
def test_what_a_layout_would_do_without_a_part_is_what_trying_everything_finds(
    known: Known, axis: str, name: str
) -> None:
    asked = wish()
    setting = setting_of(asked, trainable(asked.workload), known)
    kind = next(k for k in offered_by(asked, setting, known).kinds if k.node.name == "coreweave-hgx-h100")
    given = Layout(tp=2, pp=2, dp=4, micro_batch=1, global_batch=16, sharding="distopt")
    others = [one for one in layouts(kind) if one.accelerators == 16 and getattr(one, axis) == 1]
    found = run(setting.job(kind), Layouts.of(given, *others))
    fits = found.memory_bytes[1:] <= USABLE_MEMORY * kind.accelerator.memory_bytes
    gap = found.step_time_s[1:][fits].min() / found.step_time_s[0] - 1
    assert f"without {name} {gap:+.1%}" in layout_reasons(setting, kind, given, {})[0]


def test_the_storage_that_is_paid_is_told_apart_from_what_lies_on_it(known: Known) -> None:
    asked = wish()
    plan = design(asked, known)
    deal = deal_of(asked, setting_of(asked, trainable(asked.workload), known), known)
    room = known.catalogue.renting.storage_capacity.value
    told = next(line for line in plan.assumptions if line.startswith("storage of"))
    assert told.startswith(f"storage of {show_bytes(room * deal.stored_bytes)} is paid")
    assert f"data take {show_bytes(deal.stored_bytes)} " in told
    assert plan.terms is not None
    paid = plan.terms.find("bytes paid")
    assert paid is not None
    assert paid.value == room * deal.stored_bytes


@pytest.mark.parametrize("limit", [None, 16])
def test_a_limit_of_accelerators_that_nobody_gave_is_named(known: Known, limit: int | None) -> None:
    asked = wish(constraints={"max_accelerators": limit})
    every = rules(asked.model, trainable(asked.workload), Limits(8, 8, largest(asked.workload)))
    why = next(rule.why for rule in every if rule.why.startswith("accelerators exceed"))
    assert ("16,384" in why) == (limit is None)
    assert any("16,384" in line for line in design(asked, known).assumptions) == (limit is None)


def test_a_framework_that_no_layout_fits_under_is_said_not_to_fit(known: Known) -> None:
    lines = {"framework": "any", "method": "lora", "tokens": "50M", "sequence_length": 2048}
    limits = {"accelerators": None, "max_accelerators": None}
    asked = wish(model=model(44), training=lines, constraints=limits, cluster={"node": "pc-rtx-4090", "nodes": 1})
    told = next(line for line in design(asked, known).reasons if "at their best" in line)
    assert "fsdp in bf16 does not fit" in told


def test_the_only_cluster_is_not_the_cheapest_of_itself(known: Known) -> None:
    cluster = {"node": "dgx-h100", "nodes": 1}
    limits = {"accelerators": None, "max_accelerators": None, "deadline": "10 years"}
    plan = design(wish(constraints=limits, cluster=cluster), known)
    assert "the only cluster and price that keeps deadline" == plan.reasons[0]


def test_bought_nodes_that_differ_in_their_nics_alone_are_told_apart(known: Known) -> None:
    limits = {"own": True, "terms": ["reserved"], "accelerators": ["b200-sxm"], "max_accelerators": 64}
    plan = design(wish(constraints=limits), known)
    named = {(one.accelerators, one.nics): one.seller for one in plan.front if one.nodes + one.spares > 1}
    assert {nics for _, nics in named} - {8}
    for (_, nics), seller in named.items():
        assert f"owned, {nics} NIC{'s' if nics != 1 else ''} a node" == seller
    page = io.StringIO()
    show_plan(plan, page)
    assert "owned, owned" not in page.getvalue()
    assert " NIC" in page.getvalue().partition("Front of")[2].partition("How robust")[0]


def test_every_exclusion_is_counted_and_none_twice(known: Known) -> None:
    plan = design(wish(), known)
    layouts = {why: n for why, n in plan.exclusions.items() if not why.startswith("offers")}
    assert 0 < sum(layouts.values()) < plan.candidates


def test_an_objective_of_balance_is_told_against_both_ends_and_the_rivals_that_are_as_fast(known: Known) -> None:
    plan = design(wish(constraints={"max_accelerators": 64}, prefer={"objective": "balanced"}), known)
    text = " ".join(plan.reasons)
    assert "cheaper than the fastest" in text
    assert "sooner than the cheapest" in text


PINS: dict[str, int | str] = {"tp": 2, "pp": 1, "cp": 1, "nodes": 1, "micro_batch": 1}


def job_of(asked: Wish, plan: Plan, known: Known) -> Job:
    assert plan.hardware_node is not None
    assert plan.hardware_accelerator is not None
    kind = Kind(plan.hardware_node, plan.hardware_accelerator, ())
    return setting_of(asked, trainable(asked.workload), known).job(kind)


def test_the_length_of_samples_reaches_the_job_of_a_plan(known: Known) -> None:
    packed, plain = wish(training={"sample_length": 300}, pins=PINS), wish(pins=PINS)
    plan = design(packed, known)
    job = job_of(packed, plan, known)
    assert 300 == job.sample_length == job.attended_length
    assert float(run(job, Layouts.of(chosen(plan).layout)).step_time_s[0]) == chosen(plan).estimate.step_time_s
    whole = design(plain, known)
    assert job_of(plain, whole, known).sample_length is None
    assert chosen(plan).estimate.step_time_s < chosen(whole).estimate.step_time_s
    assert weigh_networks_of_plan(plan)[0].step_time_s < weigh_networks_of_plan(whole)[0].step_time_s


@pytest.mark.parametrize(
    ("what", "part"),
    [("optimizer", "optimizer on the host"), ("activations", "activations to the host")],
)
def test_time_on_the_host_is_in_the_terms_and_said_to_be_estimated(known: Known, what: str, part: str) -> None:
    away, here = design(wish(training={"offload": [what]}, pins=PINS), known), design(wish(pins=PINS), known)
    told = [line for line in away.assumptions if line.startswith(f"offload {what}: ")]
    assert ["bandwidth of link and host memory" in line for line in told] == [True]
    assert not any(line.startswith("offload") for line in here.assumptions)
    assert away.terms is not None
    assert here.terms is not None
    found = away.terms.find(part)
    assert found is not None
    assert found.source
    assert 0.0 < found.value < chosen(away).estimate.step_time_s
    assert here.terms.find(part) is None
