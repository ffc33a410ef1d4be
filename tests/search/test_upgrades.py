"""What one more dollar would buy is what a plan of the better cluster says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright.report import upgrade_words
from clusterwright.search.design import design
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.plan import Plan, Upgrade
    from clusterwright.search.design import Known

CLUSTER = {
    "node": "dgx-h100", "nodes": 24, "nic_gbps": 200, "oversubscription": 2.0, "storage_write": "1 GB/s",
    "usd_per_hour": 100.0,
}  # fmt: skip


def planned(known: Known, **cluster: object) -> Plan:
    limits = {"accelerators": None, "max_accelerators": None}
    lines = {**CLUSTER, **cluster}
    return design(wish(training={"global_batch": 384}, constraints=limits, cluster=lines), known)


@pytest.fixture(scope="module")
def plan(known: Known) -> Plan:
    return planned(known)


def time_of(plan: Plan) -> float:
    assert plan.chosen is not None
    return plan.chosen.estimate.train_time_s


def upgrade(plan: Plan, word: str) -> Upgrade:
    return next(one for one in plan.upgrades if word in one.what)


@pytest.mark.parametrize(
    ("word", "change"),
    [("400 Gb/s", {"nic_gbps": 400}), ("not oversubscribed", {"oversubscription": 1.0})],
)
def test_a_better_network_does_what_is_said(known: Known, plan: Plan, word: str, change: dict[str, object]) -> None:
    one = upgrade(plan, word)
    assert time_of(planned(known, **change)) == pytest.approx(one.train_time_s, rel=0.02)
    assert one.train_time_s < time_of(plan)
    assert one.price_usd is not None
    assert one.price_usd > 0


def test_more_nodes_do_what_is_said(known: Known, plan: Plan) -> None:
    one = upgrade(plan, "in all")
    nodes = int(one.what.split("(")[1].split()[0])
    assert nodes > 24
    bigger = planned(known, nodes=nodes)
    assert time_of(bigger) == pytest.approx(one.train_time_s, rel=0.02)
    assert one.price_usd is not None
    assert one.price_usd > (nodes - 24) * 250_000


def test_what_is_free_comes_first_and_then_the_most_time_for_a_dollar(plan: Plan) -> None:
    now = time_of(plan)
    here = [one for one in plan.upgrades if not one.what.startswith("rent")]
    assert here[0].price_usd == 0
    paid = [(now - one.train_time_s) / one.price_usd for one in here if one.price_usd]
    assert paid == sorted(paid, reverse=True)


def test_renting_as_quick_a_cluster_costs_what_is_said(known: Known, plan: Plan) -> None:
    one = upgrade(plan, "rent instead")
    limits = {"accelerators": ["h100-sxm"], "max_accelerators": None, "deadline": f"{time_of(plan)} s"}
    rented = design(wish(training={"global_batch": 384}, constraints=limits), known)
    assert rented.chosen is not None
    assert rented.chosen.estimate.cost_usd == pytest.approx(one.price_usd, rel=0.01)


def test_an_upgrade_is_told_with_what_it_gains_and_costs(plan: Plan) -> None:
    assert plan.chosen is not None
    for one in plan.upgrades:
        text = upgrade_words(one, plan.chosen)
        assert one.what in text
        assert "$" in text or "nothing to pay" in text or "not known" in text


def test_a_plan_of_rented_nodes_has_no_upgrades(known: Known) -> None:
    assert design(wish(), known).upgrades == ()


def on_a_pc(known: Known, method: str, precision: str = "bf16") -> Plan:
    lines = {
        "framework": "megatron",
        "method": method,
        "precision": precision,
        "tokens": "50M",
        "sequence_length": 2048,
    }
    limits = {"accelerators": None, "max_accelerators": None}
    return design(wish(training=lines, constraints=limits, cluster={"node": "pc-rtx-4090", "nodes": 1}), known)


def test_four_bit_weights_are_offered_no_fp8(known: Known) -> None:
    assert not [one for one in on_a_pc(known, "qlora").upgrades if "fp8" in one.what]


def test_fp8_quickens_only_the_products_and_those_by_no_more_than_the_peaks(known: Known) -> None:
    wide, narrow = on_a_pc(known, "lora"), on_a_pc(known, "lora", "fp8")
    assert time_of(narrow) == pytest.approx(upgrade(wide, "fp8").train_time_s, rel=1e-6)
    assert wide.hardware_accelerator is not None
    peaks = wide.hardware_accelerator.peak_flop_per_s
    assert peaks["fp8"] / peaks["bf16"] == pytest.approx(2.0, rel=0.01)
    assert 1 < time_of(wide) / time_of(narrow) < peaks["fp8"] / peaks["bf16"]
