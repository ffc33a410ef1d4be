"""What software stacks take from their year and their accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.catalog import load
from clusterwright.estimators.efficiency import Stack, shipped

if TYPE_CHECKING:
    from clusterwright.hardware import Accelerator

YEARS = st.floats(2015, 2035)
GAINS = st.floats(0, 0.5)
BRIDGE = pytest.mark.parametrize("framework", ["megatron-bridge", "NeMo", "megatron", "any"])
OF_2022 = ("any", "megatron", "megatron-lm", "megatron-deepspeed", "nemo", "deepspeed", "fsdp", "maxtext", "pytorch")


def stack_of(framework: str, year: float) -> Stack:
    return shipped().stack_of(framework, year)


def gaining(until: float) -> Stack:
    """A stack whose factor holds in that year."""
    return stack_of("megatron-bridge", 2026.0).model_copy(update={"gain_until": until})


def known(name: str) -> Accelerator:
    return load().accelerators[name]


@given(YEARS, YEARS, YEARS, GAINS)
def test_an_older_stack_is_never_faster(until: float, year: float, other: float, gain: float) -> None:
    older, newer = sorted((year, other))
    assert gaining(until).aged(gain, older) >= gaining(until).aged(gain, newer) >= 1.0


@given(YEARS, st.floats(0, 10), GAINS)
def test_at_most_four_years_count(until: float, earlier: float, gain: float) -> None:
    assert gaining(until).aged(gain, until - 4 - earlier) == pytest.approx((1 + gain) ** 4)


@given(YEARS, st.floats(0, 10), GAINS)
def test_a_factor_holds_in_its_year_and_after_it(until: float, later: float, gain: float) -> None:
    assert 1.0 == gaining(until).aged(gain, until + later)


@given(YEARS, YEARS)
def test_a_stack_that_gains_nothing_does_not_age(until: float, year: float) -> None:
    assert 1.0 == gaining(until).aged(0.0, year)


@BRIDGE
@pytest.mark.parametrize(
    ("accelerator", "since"), [("gb200", 2026.4), ("gb300", 2026.4), ("b200-sxm", 2026.5), ("b300", 2026.5)]
)
def test_mixtures_in_mxfp8_run_as_a_graph_since_a_release(framework: str, accelerator: str, since: float) -> None:
    found = [stack_of(framework, year).graphed(accelerator, "mxfp8", year) for year in (since - 0.01, since, 2027.0)]
    assert [False, True, True] == found


@pytest.mark.parametrize("precision", ["bf16", "fp8", "nvfp4"])
def test_no_other_number_format_runs_as_a_graph(precision: str) -> None:
    stack = stack_of("megatron-bridge", 2026.9)
    assert not any(stack.graphed(name, precision, 2026.9) for name in load().accelerators)


@pytest.mark.parametrize("accelerator", ["h100-sxm", "h200-sxm", "gh200", "a100-80gb-sxm", "mi300x"])
def test_no_older_accelerator_runs_mixtures_as_a_graph(accelerator: str) -> None:
    assert not stack_of("megatron-bridge", 2026.9).graphed(accelerator, "mxfp8", 2026.9)


def test_no_other_stack_runs_mixtures_as_a_graph() -> None:
    others = [stack for stack in shipped().stack if "bridge" not in stack.match]
    assert [] == [stack.name for stack in others if stack.graphed("gb200", "mxfp8", 2026.9)]


@pytest.mark.parametrize("accelerator", ["h100-sxm", "h200-sxm", "gh200"])
def test_recipes_hide_experts_on_hopper(accelerator: str) -> None:
    stack = stack_of("megatron-bridge", 2026.5)
    assert stack.hidden.ep > 0.0
    assert stack.hidden.ep == stack.hides_experts(known(accelerator), "bf16", 2026.5)


@pytest.mark.parametrize("accelerator", ["b200-sxm", "gb200"])
def test_recipes_hide_experts_on_blackwell_where_they_run_as_a_graph_and_nowhere_else(accelerator: str) -> None:
    stack = stack_of("megatron-bridge", 2026.5)
    assert stack.graphs_hide == stack.hides_experts(known(accelerator), "mxfp8", 2026.5) > 0.0
    assert 0.0 == stack.hides_experts(known(accelerator), "bf16", 2026.5)
    assert 0.0 == stack.hides_experts(known(accelerator), "mxfp8", 2026.3)


@pytest.mark.parametrize("accelerator", ["h100-sxm", "b200-sxm", "mi300x"])
@pytest.mark.parametrize("framework", ["megatron-lm", "maxtext", "fsdp"])
def test_a_stack_of_one_recipe_for_all_hides_experts_alike_everywhere(framework: str, accelerator: str) -> None:
    stack = stack_of(framework, 2026.0)
    assert stack.hidden.ep == stack.hides_experts(known(accelerator), "bf16", 2026.0)


@pytest.mark.parametrize("year", [2019.0, 2022.0, 2022.99])
@pytest.mark.parametrize("framework", OF_2022)
def test_a_run_before_2023_has_no_flash_attention(framework: str, year: float) -> None:
    assert not stack_of(framework, year).flash


@pytest.mark.parametrize("framework", sorted(set(OF_2022) - {"megatron-deepspeed"}))
def test_a_run_of_today_has_flash_attention(framework: str) -> None:
    assert stack_of(framework, 2026.0).flash


@pytest.mark.parametrize("framework", [*OF_2022, "nanotron", "torchtitan", "torchtune", "something new"])
@given(year=YEARS)
def test_every_framework_has_a_stack_in_every_year(framework: str, year: float) -> None:
    stack = stack_of(framework, year)
    assert stack.since <= year < stack.until
    assert any(word in framework for word in stack.match) or framework in {"any", "megatron"}
