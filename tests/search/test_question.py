"""What one layout would do, and why a layout cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.errors import InputError
from clusterwright.search.design import design
from clusterwright.search.question import Answer, Asked, ask
from tests.search.conftest import model, wish

if TYPE_CHECKING:
    from clusterwright.search.design import Known


def answer(known: Known, *, training: dict[str, Any] | None = None, **layout: Any) -> Answer:  # noqa: ANN401 - the fields of Asked
    asked = {"accelerator": "h100-sxm", "accelerators": 32, "tp": 2, "pp": 4, "recompute": "full", **layout}
    return ask(Asked(**asked), wish(training=training or {}), known)


def part(found: Answer, name: str) -> float:
    term = found.terms.find(name)
    assert term is not None
    return term.value


def test_a_zero_bubble_schedule_shortens_the_bubble_and_nothing_else(known: Known) -> None:
    plain, zero = answer(known), answer(known, schedule="zero-bubble")
    assert 0 < part(zero, "pipeline bubble") < part(plain, "pipeline bubble")
    assert part(zero, "matrix products") == part(plain, "matrix products")
    bubbles = [found.terms.find("pipeline bubble") for found in (plain, zero)]
    assert ["pipeline.one_forward_one_backward", "pipeline.zero_bubble"] == [b.source for b in bubbles if b]
    assert zero.candidate.layout.schedule == "zero-bubble"


def test_tensor_parallelism_over_nodes_is_slow_but_no_fault(known: Known) -> None:
    inside, outside = answer(known, tp=8, pp=1), answer(known, tp=16, pp=1)
    name = "tensor-parallel communication"
    assert part(outside, name) > part(inside, name)


@pytest.mark.parametrize(
    ("layout", "training", "words"),
    [
        ({"pp": 1, "schedule": "zero-bubble"}, {}, ["zero-bubble needs pp > 1"]),
        ({}, {"framework": "fsdp"}, ["splits the batch alone (tp = 2, pp = 4)"]),
        ({"sharding": "distopt"}, {"framework": "torchtitan"}, ["optimizer alone (sharding = distopt)"]),
        ({"precision": "fp8"}, {"method": "qlora"}, ["qlora computes", "bf16", "precision = fp8"]),
        ({"precision": "nvfp4"}, {}, ["h100-sxm has no products in fp4"]),
        ({"tp": 3}, {}, ["tp does not divide the heads", "--accelerators 32: tp x cp x pp = 3 x 1 x 4"]),
    ],
)
def test_what_cannot_be_is_named(
    known: Known, layout: dict[str, Any], training: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        answer(known, training=training, **layout)
    for word in words:
        assert word in str(caught.value)


def test_accelerators_that_do_not_divide_are_no_fault_of_the_batch(known: Known) -> None:
    with pytest.raises(InputError) as caught:
        answer(known, accelerators=44, tp=2, pp=4)
    assert "global_batch" not in str(caught.value)


OPEN = {"training": {"framework": "any"}}
CLUSTER = {
    "node": "dgx-h100", "nodes": 4, "nic_gbps": 200, "oversubscription": 2.0, "storage_write": "2 GB/s",
    "usd_per_hour": 640.0,
}  # fmt: skip
WISHES: dict[str, dict[str, Any]] = {
    "rented": OPEN,
    "rented on demand, the quickest": {
        **OPEN, "constraints": {"terms": ["on-demand"], "budget": "100k USD"}, "prefer": {"objective": "time"},
    },
    "rented, precision open": {"training": {"framework": "any", "precision": "any"}},
    "of torchtitan": {"training": {"framework": "torchtitan"}},
    "owned": {
        **OPEN, "constraints": {
            "own": True, "horizon": "3 years", "utilisation": 0.9, "terms": ["reserved"], "accelerators": ["b200-sxm"],
        },
    },
    "a cluster": {**OPEN, "constraints": {"accelerators": None, "max_accelerators": None}, "cluster": CLUSTER},
}  # fmt: skip


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("which", WISHES)
def test_the_estimate_of_what_a_plan_chose_is_what_the_plan_says(known: Known, which: str, *, named: bool) -> None:
    asked = wish(**WISHES[which])
    plan = design(asked, known)
    chosen = plan.chosen
    assert chosen is not None
    assert ("owned" in which, "cluster" in which) == (chosen.offer.term == "owned", chosen.offer.term == "own")
    names = ("tp", "cp", "pp", "vpp", "ep", "micro_batch", "recompute", "sharding")
    found = ask(
        Asked(
            chosen.accelerator, chosen.accelerators, **{name: getattr(chosen.layout, name) for name in names},
            node=chosen.node if named else None,
        ),
        asked,
        known,
    )  # fmt: skip
    assert found.fits
    assert found.framework == plan.workload["training"]["framework"]
    assert found.candidate == chosen
    assert found.terms == plan.terms


def test_the_framework_asked_for_is_the_one_that_is_estimated(known: Known) -> None:
    several = [answer(known, accelerators=16, pp=1, tp=1, framework=name) for name in ("megatron", "torchtitan")]
    assert ["megatron", "torchtitan"] == [one.framework for one in several]
    assert several[0].candidate.estimate.step_time_s != several[1].candidate.estimate.step_time_s
    assert ["distopt", "hsdp"] == [one.candidate.layout.sharding for one in several]


def test_a_layout_of_one_framework_alone_is_taken_for_its(known: Known) -> None:
    found = answer(known, training={"framework": "any"}, accelerators=16, pp=1, tp=1, sharding="zero3")
    assert "deepspeed" == found.framework


def test_where_no_usual_sharding_fits_another_that_does_is_taken(known: Known) -> None:
    layout = Asked("h100-sxm", 16, recompute="full")
    found = ask(layout, wish(model=model(96), training={"framework": "any"}), known)
    assert found.fits
    usual = ask(replace(layout, framework="megatron"), wish(model=model(96)), known)
    assert ("distopt", False) == (usual.candidate.layout.sharding, usual.fits)


def test_a_price_that_the_constraints_allow_goes_before_a_cheaper_one(known: Known) -> None:
    layout = Asked("h100-sxm", 32, tp=2, pp=4, recompute="full")
    cheap, dear, none = (
        ask(layout, wish(constraints=limits), known)
        for limits in ({}, {"terms": ["on-demand"]}, {"terms": ["on-demand"], "providers": ["runpod"]})
    )
    assert "on-demand" == dear.candidate.offer.term
    assert cheap.candidate.estimate.cost_usd < dear.candidate.estimate.cost_usd
    assert "is allowed" in dear.priced
    assert "allow none" in none.priced


def test_another_node_than_the_clusters_has_neither_its_price_nor_its_network(known: Known) -> None:
    asked = wish(constraints={"accelerators": None, "max_accelerators": None}, cluster=CLUSTER)
    own, other = (
        ask(Asked("h100-sxm", 32, tp=2, pp=4, recompute="full", node=node), asked, known)
        for node in ("dgx-h100", "a3-megagpu-8g")
    )
    assert ["own", False] == [own.candidate.offer.provider, other.candidate.offer.provider == "own"]
    assert 200e9 == own.candidate.fabric.nic_bits_per_s
    alone = ask(Asked("h100-sxm", 32, tp=2, pp=4, recompute="full", node="a3-megagpu-8g"), wish(), known)
    assert alone.candidate == other.candidate


def test_more_accelerators_than_the_cluster_has_are_refused_with_its_size(known: Known) -> None:
    asked = wish(constraints={"accelerators": None, "max_accelerators": None}, cluster=CLUSTER)
    with pytest.raises(InputError, match=r"--accelerators 64: \[cluster\] has 4 x 8"):
        ask(Asked("h100-sxm", 64, tp=8, pp=4), asked, known)


def test_an_accelerator_that_the_cluster_lacks_is_named(known: Known) -> None:
    asked = wish(constraints={"accelerators": None, "max_accelerators": None}, cluster=CLUSTER)
    with pytest.raises(InputError, match=r"b200-sxm.*dgx-h100 has h100-sxm"):
        ask(Asked("b200-sxm", 32), asked, known)
