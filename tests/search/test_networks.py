"""Scale-out bandwidth as a choice: cables of an owner, and networks that nobody has told."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clusterwright.estimators.adequacy import weigh_networks, weigh_networks_of_plan
from clusterwright.estimators.networks import compute_network
from clusterwright.hardware import Fabric
from clusterwright.search.candidate import fabric_of
from clusterwright.search.design import design, offered_by, setting_of, trainable
from clusterwright.search.networks import cabled
from clusterwright.search.offers import Kind
from clusterwright.search.table import evaluate
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.plan import Plan, Rejected
    from clusterwright.search.design import Known

LIMITS = {
    "accelerators": ["h100-sxm"], "terms": ["on-demand"], "providers": ["lambda", "aws"], "max_accelerators": 64,
    "deadline": "12 hours",
}  # fmt: skip


def asked(plan: Plan) -> list[Rejected]:
    """What one should ask for the network of."""
    return [r for r in plan.rejected if r.binding_constraint == "unknown-network" and r.candidate is not None]


def test_an_owner_may_cable_fewer_nics(known: Known) -> None:
    node = known.catalogue.node("dgx-h100")
    assert [8, 1, 4] == [one.nics for one in cabled(node)]
    assert len({one.name for one in cabled(node)}) == 3


def test_a_node_without_a_network_has_nothing_to_cable(known: Known) -> None:
    node = known.catalogue.node("dgx-h100").model_copy(update={"nics": 0})
    assert (node,) == cabled(node)


def test_owned_nodes_of_less_bandwidth_take_longer_and_cost_less_an_hour(known: Known) -> None:
    limits = {"own": True, "horizon": "3 years", "utilisation": 0.8}
    one = wish(constraints=limits, pins={"nodes": 4})
    setting = setting_of(one, trainable(one.workload), known)
    table = evaluate(setting, offered_by(one, setting, known).kinds, 64, one.pins)
    owned = [i for i, row in enumerate(table.rows) if row.quote.term == "owned"]
    by_nics = sorted(owned, key=lambda i: table.rows[i].kind.node.nics)
    assert [1, 4, 8] == [table.rows[i].kind.node.nics for i in by_nics]
    assert (np.diff(table.time_s[by_nics]) < 0).all()
    assert (np.diff([float(table.rows[i].quote.usd_per_hour(4)) for i in by_nics]) > 0).all()


def test_the_network_that_would_make_an_offer_the_choice_is_named_and_true(known: Known) -> None:
    plan = design(wish(constraints=LIMITS), known)
    assert plan.chosen is not None
    one = asked(plan)[0]
    assert one.candidate is not None
    assert "cheaper" in one.why
    assert "Gb/s" in one.why
    assert one.candidate.nodes > 1
    assert one.candidate.estimate.cost_usd < plan.chosen.estimate.cost_usd
    known_network = copy.copy(known.catalogue)
    known_network.offers = tuple(
        o.model_copy(update={"node": "coreweave-hgx-h100"})
        if o.provider == one.candidate.offer.provider and o.accelerators == 8
        else o
        for o in known.catalogue.offers
    )
    again = design(wish(constraints=LIMITS), replace(known, catalogue=known_network))
    assert again.chosen is not None
    assert again.chosen.offer.provider == one.candidate.offer.provider
    assert again.chosen.estimate.cost_usd <= one.candidate.estimate.cost_usd * 1.01


def test_nothing_is_asked_where_a_known_network_wins_anyway(known: Known) -> None:
    plan = design(wish(constraints={**LIMITS, "providers": ["aws"]}), known)
    assert asked(plan) == []


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_an_unknown_network_is_never_chosen(known: Known, objective: str) -> None:
    plan = design(wish(constraints=LIMITS, prefer={"objective": objective}), known)
    assert plan.chosen is not None
    assert plan.chosen.nodes == 1 or plan.chosen.fabric.tiers > 0
    assert all(p.nodes == 1 or p.offer.provider != "lambda" for p in plan.front)


def test_where_nothing_else_would_do_the_network_that_would_is_named(known: Known) -> None:
    plan = design(wish(constraints={**LIMITS, "providers": ["lambda"]}), known)
    assert plan.chosen is None
    one = asked(plan)[0]
    assert one.candidate is not None
    assert one.candidate.nodes > 1
    assert one.candidate.estimate.train_time_s <= 12 * 3600
    assert "would do if its nodes had at least" in one.why


def test_nodes_that_nothing_is_known_to_join_are_idle_for_that_reason(known: Known) -> None:
    cluster = {"node": "lambda-8x-h100-sxm", "nodes": 4}
    plan = design(wish(constraints={"accelerators": None, "max_accelerators": None}, cluster=cluster), known)
    assert any("3 of the 4 nodes stay idle" in w and "nic_gbps" in w for w in plan.warnings)


@pytest.mark.parametrize("framework", ["torchtitan", "deepspeed"])
@pytest.mark.parametrize("told", [True, False])
def test_the_networks_of_a_plan_are_weighed_for_the_framework_that_it_chose(
    known: Known, framework: str, *, told: bool
) -> None:
    lines = wish(training={"framework": framework}, constraints={"deadline": "1 day"})
    plan = design(lines, known)
    assert plan.chosen is not None
    assert plan.hardware_node is not None
    assert plan.hardware_accelerator is not None
    kind = Kind(plan.hardware_node, plan.hardware_accelerator, ())
    job = setting_of(lines, trainable(lines.workload), known).job(kind)
    if not told:
        document = {**plan.workload, "training": {**plan.workload["training"], "framework": "any"}}
        plan = plan.model_copy(update={"workload": document})
    assert plan.chosen is not None
    found = weigh_networks_of_plan(plan)
    assert found == weigh_networks(replace(job, year=year_of(plan)), plan.chosen.layout)
    other = weigh_networks(replace(job, framework="megatron"), plan.chosen.layout)
    assert found[0].step_time_s != other[0].step_time_s


def year_of(plan: Plan) -> float:
    """The year of a plan's catalogue, in which its networks are weighed."""
    return plan.catalogue_date.year + (plan.catalogue_date.month - 1) / 12


@pytest.mark.parametrize("nodes", [1, 2, 33, 400, 40_000])
def test_the_network_of_a_candidate_is_the_one_that_its_facility_builds(known: Known, nodes: int) -> None:
    node = known.catalogue.node("dgx-h100")
    built = compute_network(node, nodes, 2.0, known.parts)
    found = fabric_of(node, nodes, 2.0, known.parts)
    if built is None:
        assert found.tiers in {0, 4}
        assert found.cables == 0
    else:
        assert found.model_dump() == {name: getattr(built.design, name) for name in Fabric.model_fields}
