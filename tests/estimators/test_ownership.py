"""What owning costs: every part, and published sums made again from their own inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts
from clusterwright.estimators.ownership import (
    CAPITAL,
    OPTIONAL,
    PARTS,
    UNCERTAIN,
    Owned,
    assumptions,
    capital,
    costs,
    explain,
    monthly,
    residual,
    running,
    spread,
)
from clusterwright.market import MONTH_S
from clusterwright.units import HOUR, YEAR

if TYPE_CHECKING:
    from clusterwright.term import Term

KNOWN = catalog.load()


def owned(node: str = "dgx-h100", years: float = 4.0, **changes: object) -> Owned:
    server = KNOWN.owning.server_of(node)
    assert server is not None
    found = KNOWN.node(node)
    made = Owned(found, server, found.power_w or 6_700.0, KNOWN.owning, load_fabric_parts(), 64, years * YEAR)
    return replace(made, **changes)  # type: ignore[arg-type]


def per_accelerator_hour(one: Owned, nodes: int) -> float:
    return float(one.usd_per_hour(nodes)) / (nodes * one.node.accelerators)


def test_the_parts_sum_to_the_hour() -> None:
    one = owned(storage_bytes=1e14)
    whole = sum(float(usd) for usd in costs(one, 64).values())
    assert whole == pytest.approx(float(one.usd_per_hour(64)) * one.kept_s / HOUR)
    assert list(PARTS) == list(costs(one, 64))


def test_every_part_costs_something() -> None:
    assert [] == [key for key, usd in costs(owned(storage_bytes=1e14), 64).items() if not usd > 0]


@pytest.mark.parametrize("part", OPTIONAL)
def test_a_part_that_is_left_out_is_told_and_the_others_stand(part: str) -> None:
    whole, less = owned(storage_bytes=1e14), owned(storage_bytes=1e14, without=frozenset({part}))
    changed = [key for key in PARTS if float(costs(whole, 64)[key]) != float(costs(less, 64)[key])]
    assert changed
    text = " ".join(t.source for t in _leaves(explain(less, 64)))
    assert f"left out (--without {part})" in text
    assert any(f"without {part}" in line for line in assumptions(less))


def test_without_resale_the_whole_price_is_lost() -> None:
    less = owned(without=frozenset({"residual"}))
    assert float(capital(less, 64)["nodes"]) == float(costs(less, 64)["nodes"])
    assert 0.0 == float(residual(less, 64))


def test_the_tree_holds_the_parts_with_a_source_each() -> None:
    term = explain(owned(storage_bytes=1e14), 64)
    assert term.value == pytest.approx(sum(part.value for part in term.parts))
    assert [] == [t.name for t in _leaves(term) if not t.source]


def test_what_is_paid_month_by_month_has_the_present_value_of_all_that_is_bought() -> None:
    one = owned(years=5.0)
    found = costs(one, 64)
    level = sum(float(found[key]) for key in (*CAPITAL, "finance")) / (one.kept_s / MONTH_S)
    rate, months = monthly(one.figures.finance.value), one.kept_s / MONTH_S
    worth = level * -np.expm1(-months * np.log1p(rate)) / rate
    left = float(residual(one, 64)) / (1 + rate) ** months
    assert worth + left == pytest.approx(sum(float(usd) for usd in capital(one, 64).values()))


def test_a_rack_that_is_sold_whole_is_bought_whole() -> None:
    one = owned("gb200-nvl72")
    prices = capital(one, np.array([1, 18, 19]))["nodes"].tolist()
    assert [3.2e6, 3.2e6, 6.4e6] == prices


@settings(max_examples=40)
@given(st.integers(1, 2000), st.integers(1, 200))
def test_more_nodes_never_cost_less(nodes: int, more: int) -> None:
    few, many = owned().usd_per_hour(np.array([nodes, nodes + more]))
    assert few < many


@pytest.mark.parametrize("key", UNCERTAIN)
def test_every_figure_that_is_uncertain_moves_the_result(key: str) -> None:
    one = owned()
    low, high = one.worth(key).span
    assert low < high
    assert float(one.at(key, 1.1 * one.worth(key).value).usd_per_hour(64)) != float(one.usd_per_hour(64))


def test_the_spread_lies_around_the_value() -> None:
    one = owned()
    cheap, dear, names = spread(one, 64)
    value = float(one.usd_per_hour(64))
    assert set(names) <= set(UNCERTAIN)
    assert bool((cheap <= value + 1e-9).all())
    assert bool((dear >= value - 1e-9).all())
    assert dear.max() > cheap.min()


def test_what_is_left_out_is_not_uncertain() -> None:
    names = spread(owned(without=frozenset({"energy", "staff"})), 64)[2]
    assert not {"draw", "pue", "usd_per_kwh", "staff_usd", "staff_accelerators"} & set(names)


def test_a_published_sum_of_three_years_of_one_node_is_made_again() -> None:
    # A node of 8 H200 for three years: 370,000 to buy, 10% support a year, 7 kW at a PUE of 1.6 and 9.77 cents:
    # 510,000 USD (three-year ownership appendix of a public design, October 2026). No resale, no space, no people.
    left_out = frozenset({"residual", "installation", "finance", "staff", "colocation"})
    one = owned("dgx-h200", years=3.0, without=left_out).at("pue", 1.6).at("draw", 7.0 / 10.2)
    assert float(one.usd_per_hour(1)) * 3 * 365.25 * 24 == pytest.approx(510_000, rel=0.01)


def test_three_years_of_a_node_of_eight_h100_lie_in_the_published_range() -> None:
    # 450,000 to 650,000 USD with power and colocation, https://v2-pseo-ai.pages.dev/tools/gpu-tco-analysis
    one = owned("dgx-h100", years=3.0)
    assert 450_000 < float(one.usd_per_hour(64)) / 64 * 3 * 365.25 * 24 < 650_000


def test_an_owned_h100_costs_what_public_analyses_say() -> None:
    # About 1.2 (hardware alone) to 3 USD an hour over three to five years.
    hardware = frozenset(OPTIONAL) - {"residual"}
    assert 0.7 < per_accelerator_hour(owned(years=4.0, without=hardware), 64) < 1.3
    assert 1.5 < per_accelerator_hour(owned(years=4.0), 64) < 3.0


def test_running_costs_do_not_end_when_the_price_is_paid() -> None:
    three, six = (sum(float(v) for v in running(owned(years=y), 64).values()) for y in (3.0, 6.0))
    assert six == pytest.approx(2 * three)


def _leaves(term: Term) -> list[Term]:
    return [term, *(leaf for part in term.parts for leaf in _leaves(part))]


def test_the_network_of_2048_h100_costs_what_a_published_sheet_says() -> None:
    # 256 nodes: 96 switches of 36,000 USD and 5,242,880 USD of cables and optics (H100 Freakonomics, August 2024).
    assert 96 * 36_000 + 5_242_880 == pytest.approx(float(capital(owned(), 256)["fabric"]), rel=1e-3)


def test_one_node_needs_no_network() -> None:
    assert 0.0 == float(capital(owned(), 1)["fabric"])
