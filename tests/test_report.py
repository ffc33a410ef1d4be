"""Plans and terms as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright import report
from clusterwright.search.design import Known, design
from clusterwright.term import Term
from tests.search.conftest import known, wish

if TYPE_CHECKING:
    from clusterwright.plan import Plan

__all__ = ["known"]


@pytest.fixture(scope="module")
def plan(known: Known) -> Plan:
    return design(wish(constraints={"max_accelerators": 64}), known)


def page(plan: Plan, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    text = io.TextIOWrapper(raw, encoding=encoding)
    report.show_plan(plan, text)
    text.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_a_page_fits_a_hundred_columns_in_any_encoding(plan: Plan, encoding: str) -> None:
    assert max(len(line) for line in page(plan, encoding).splitlines()) <= report.WIDTH


def test_the_page_shows_every_reason_warning_and_miss(plan: Plan) -> None:
    words = " ".join(page(plan).split())
    for text in (*plan.reasons, *plan.warnings, *plan.assumptions, *(r.why for r in plan.rejected)):
        assert text in words


def test_the_chosen_point_of_the_front_is_marked(plan: Plan) -> None:
    assert plan.chosen is not None
    marked = [line for line in page(plan).splitlines() if line.strip().startswith(">")]
    assert len(marked) == 1
    assert f"{plan.chosen.accelerators} {plan.chosen.accelerator}" in marked[0]


def test_an_infeasible_plan_says_so_first_and_why(known: Known) -> None:
    text = page(design(wish(constraints={"deadline": "1 hour"}), known))
    assert text.startswith("Nothing satisfies this workload")
    assert "on the fastest; deadline 60.0 minutes" in " ".join(text.split())


def test_a_node_without_a_price_costs_nothing_that_is_known(plan: Plan) -> None:
    assert plan.chosen is not None
    offer = plan.chosen.offer.model_copy(update={"provider": "none", "source": "no offer is known"})
    text = io.StringIO()
    report.show_candidate(plan.chosen.model_copy(update={"offer": offer}), text, title="asked")
    assert "no offer is known" in text.getvalue()
    assert "cost not counted" in text.getvalue()
    assert "$" not in text.getvalue()


def test_an_interval_names_its_unit_once_where_it_is_one(plan: Plan) -> None:
    assert plan.chosen is not None
    found = plan.chosen.estimate.model_copy(update={"step_time_s": 600.0, "interval": (480.0, 720.0)})
    text = io.StringIO()
    report.show_candidate(plan.chosen.model_copy(update={"estimate": found}), text, title="asked")
    assert "10.0 minutes (8.0 to 12.0 minutes, 80%)" in text.getvalue()


def test_a_tree_leaves_out_only_what_is_negligible_in_a_sum() -> None:
    parts = (Term(name="large", value=1.0, unit="s"), Term(name="tiny", value=1e-9, unit="s"))
    sums = Term(name="whole", value=1.0 + 1e-9, unit="s", parts=parts)
    product = Term(name="product", value=1e9, unit="s", parts=parts)
    shown = []
    for term in (sums, product):
        out = io.StringIO()
        report.show_term(term, ["https://example.org"], out)
        shown.append(out.getvalue())
    assert ["tiny" in text for text in shown] == [False, True]
    assert all("https://example.org" in text for text in shown)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (7200.0, "s", "2.0 hours"),
        (1.5e6, "USD", "$1.50M"),
        (8e10, "B", "80.0 GB"),
        (12.0, "1", "12"),
        (19.71, "USD/h", "19.71 USD/h"),
    ],
)
def test_a_value_is_shown_in_its_unit(value: float, unit: str, text: str) -> None:
    assert text == report.show_value(value, unit)
