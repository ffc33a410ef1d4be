"""Framework and precision where they are left open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright.errors import InputError
from clusterwright.search.candidate import ANY
from clusterwright.search.design import design
from clusterwright.search.evaluate import ANOTHER_FRAMEWORK, TIE
from tests.search.conftest import wish
from tests.search.test_propose import MIXTURE

if TYPE_CHECKING:
    from clusterwright.plan import Plan
    from clusterwright.search.design import Known

LIMITS = {"terms": ["on-demand"], "providers": ["aws"], "max_accelerators": 64}


def planned(known: Known, accelerator: str = "h100-sxm", **training: object) -> Plan:
    return design(wish(training=training, constraints={**LIMITS, "accelerators": [accelerator]}), known)


def cost(plan: Plan) -> float:
    assert plan.chosen is not None
    return plan.chosen.estimate.cost_usd


def test_any_framework_is_the_best_of_those_that_are_known(known: Known) -> None:
    least = min(cost(planned(known, framework=name)) for name in ANY["full"])
    any_of_them = cost(planned(known, framework="any"))
    assert least * (1 - 1e-9) <= any_of_them <= least * (1 + TIE) ** 2 * ANOTHER_FRAMEWORK
    assert any_of_them <= cost(planned(known, framework="megatron")) * (1 + TIE)


def test_the_plan_holds_the_framework_that_was_chosen_and_says_what_the_others_would_do(known: Known) -> None:
    plan = planned(known, framework="any")
    assert plan.workload["training"]["framework"] in ANY["full"]
    reason = next(r for r in plan.reasons if "at their best" in r)
    assert all(name in reason for name in ANY["full"])
    again = planned(known, framework=plan.workload["training"]["framework"])
    assert again.chosen == plan.chosen


def test_a_framework_that_is_asked_for_is_kept_and_not_argued_about(known: Known) -> None:
    plan = planned(known, framework="torchtitan")
    assert plan.workload["training"]["framework"] == "torchtitan"
    assert not any("at their best" in r for r in plan.reasons)


@pytest.mark.parametrize(("accelerator", "precision"), [("h100-sxm", "fp8"), ("a100-80gb-sxm", "bf16")])
def test_any_precision_is_fp8_where_the_accelerator_has_it(known: Known, accelerator: str, precision: str) -> None:
    plan = planned(known, accelerator, precision="any")
    assert plan.chosen is not None
    assert plan.chosen.layout.precision == precision
    assert plan.workload["training"]["precision"] == precision
    assert cost(plan) <= cost(planned(known, accelerator)) * (1 + TIE)


def test_bf16_is_planned_unless_the_precision_is_left_open_and_the_plan_says_so(known: Known) -> None:
    plan = planned(known)
    assert plan.chosen is not None
    assert plan.chosen.layout.precision == "bf16"
    assert any('precision = "any"' in text for text in plan.assumptions)


def test_what_is_pinned_decides_which_frameworks_are_tried(known: Known) -> None:
    limits = {**LIMITS, "accelerators": ["h100-sxm"]}
    one = design(wish(training={"framework": "any"}, constraints=limits, pins={"sharding": "zero3"}), known)
    assert one.workload["training"]["framework"] == "deepspeed"
    split = design(wish(training={"framework": "any"}, constraints=limits, pins={"pp": 2}), known)
    assert split.workload["training"]["framework"] in {"megatron", "torchtitan"}


def test_adapters_are_planned_with_a_framework_that_trains_them(known: Known) -> None:
    plan = planned(known, framework="any", method="lora")
    assert plan.workload["training"]["framework"] in ANY["adapters"]


def test_a_mixture_is_not_planned_with_a_framework_that_no_published_run_of_one_used(known: Known) -> None:
    one = wish(model=MIXTURE, training={"framework": "any"}, constraints={**LIMITS, "accelerators": ["h100-sxm"]})
    plan = design(one, known)
    assert plan.workload["training"]["framework"] == "megatron"
    assert not any("torchtitan" in reason for reason in plan.reasons)


def test_four_bit_weights_are_computed_with_in_bf16_whatever_the_accelerator_has(known: Known) -> None:
    plan = planned(known, precision="any", framework="any", method="qlora")
    assert plan.chosen is not None
    assert "bf16" == plan.chosen.layout.precision
    assert not [line for line in (*plan.reasons, *plan.assumptions) if "fp8" in line]


def test_four_bit_weights_are_refused_in_fp8(known: Known) -> None:
    with pytest.raises(InputError, match="qlora"):
        planned(known, precision="fp8", method="qlora")
