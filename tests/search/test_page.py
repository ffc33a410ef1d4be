"""What people read of a plan: its robustness, what a dollar would buy, and what was left out."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright.report import show_plan, show_robustness
from clusterwright.search.design import design
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.plan import Plan
    from clusterwright.search.design import Known


def shown(plan: Plan) -> str:
    out = io.StringIO()
    show_plan(plan, out)
    return out.getvalue()


@pytest.fixture(scope="module")
def rented(known: Known) -> Plan:
    return design(wish(constraints={"accelerators": ["h100-sxm", "b200-sxm"], "terms": ["on-demand"]}), known)


def test_the_page_says_how_robust_the_choice_is_and_at_which_prices_it_changes(rented: Plan) -> None:
    text = shown(rented)
    assert "How robust it is" in text
    assert "The choice changes" in text
    for swing in rented.robustness.swings:
        assert swing.what.split()[0] in text
        assert f"x {swing.high.factor:.2f}" in text


def test_what_was_left_out_is_shown_in_per_cent_of_all_candidates(rented: Plan) -> None:
    text = shown(rented)
    assert f"Of {rented.candidates:,} candidates" in text
    worst, count = max(
        ((why, n) for why, n in rented.exclusions.items() if not why.startswith("offers")), key=lambda item: item[1]
    )
    assert f"{count / rented.candidates:.1%} ({count:,}): {worst}" in " ".join(text.split())


def test_explaining_a_plan_ends_with_its_robustness(rented: Plan) -> None:
    out = io.StringIO()
    show_robustness(rented, out)
    assert out.getvalue().strip().startswith("How robust it is")


def test_a_cluster_that_is_there_is_told_what_would_help(known: Known) -> None:
    plan = design(wish(constraints={"accelerators": None}, cluster={"node": "dgx-h100", "nodes": 2}), known)
    assert "What one more dollar would buy" in shown(plan)
    assert "fp8 instead of bf16" in shown(plan)


def test_a_plan_that_found_nothing_shows_neither(known: Known) -> None:
    text = shown(design(wish(constraints={"deadline": "1 hour"}), known))
    assert "How robust" not in text
    assert "dollar" not in text


def test_nodes_that_stay_idle_are_told(known: Known) -> None:
    plan = design(
        wish(constraints={"accelerators": None, "max_accelerators": None}, cluster={"node": "dgx-h100", "nodes": 19}),
        known,
    )
    assert plan.chosen is not None
    idle = 19 - plan.chosen.nodes - plan.chosen.spares
    assert idle > 0
    assert any(f"{idle} of the 19 nodes stay idle" in w for w in plan.warnings)
