"""Plans and terms as text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright import catalog, report
from clusterwright.catalog.cluster_parts import load_fabric_parts, load_failure_rates, load_site_figures
from clusterwright.facility import NetworkChoice, NetworkNeed, RackPlan, Rail
from clusterwright.hardware import FabricKind
from clusterwright.search.design import Known, design
from clusterwright.term import Term
from tests.search.conftest import known, wish

if TYPE_CHECKING:
    from clusterwright.facility import Facility
    from clusterwright.plan import Plan

__all__ = ["known"]


@pytest.fixture(scope="module")
def plan(known: Known) -> Plan:
    return design(wish(constraints={"max_accelerators": 64}), known)


@pytest.fixture(scope="module")
def facility() -> Facility:
    known = Known(catalog.load(), load_fabric_parts(), load_failure_rates(), load_site_figures())
    plan = design(wish(constraints={"max_accelerators": 64}), known)
    assert plan.facility is not None
    return plan.facility


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


def choice(gbps: float, share: float) -> NetworkChoice:
    return NetworkChoice(
        fabric=FabricKind.ROCE, node_bits_per_s=gbps * 1e9, oversubscription=1.0, step_time_s=1.0,
        exposed_communication_s=0.1, cost_share=share,
    )  # fmt: skip


SMALL, MIDDLE, LARGE = choice(800, 0.05), choice(1600, 0.01), choice(3200, 0.002)


@pytest.mark.parametrize(
    ("own", "adequate", "expected"),
    [
        (MIDDLE, MIDDLE, "1,600 Gb/s a node at 1:1 over roce cost 1.0% of a step; 3,200 Gb/s would save $500"),
        (SMALL, MIDDLE, ("1,600 Gb/s a node at 1:1 over roce cost 1.0% of a step; the 800 Gb/s a node at 1:1 of this "
                        "cluster cost 5.0%; 3,200 Gb/s would save $500")),
        (LARGE, MIDDLE, ("1,600 Gb/s a node at 1:1 over roce cost 1.0% of a step; the 3,200 Gb/s a node at 1:1 of this "
                        "cluster cost 0.2%")),
        (SMALL, None, ("nothing that was weighed over roce is enough; the 800 Gb/s a node at 1:1 of this cluster cost "
                      "5.0%")),
    ],
)  # fmt: skip
def test_the_network_of_a_plan_is_held_against_the_least_that_is_adequate(
    facility: Facility, own: NetworkChoice, adequate: NetworkChoice | None, expected: str
) -> None:
    larger = {"next_up": LARGE, "next_up_saves_s": 0.008, "next_up_saves_usd": 500.0} if adequate else {}
    need = NetworkNeed.model_validate({"fabric": FabricKind.ROCE, "adequate": adequate, **larger})
    shown = facility.model_copy(
        update={"own": own, "needs": (need,), "rails": (Rail(nic=0, accelerators=(0,), leaves=(0,)),)}
    )
    assert expected == dict(report.facility_lines(shown))["needs"]


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        (
            {"it_power_w": 820.0, "energy_j": 3.6e7},
            "nodes and networks 0.8 kW, 1.2 kW with cooling; racks: 1 of 10 kW; 10 kWh, $1",
        ),
        (
            {"it_power_w": 264e3, "energy_j": 3.6e11},
            "nodes and networks 264 kW, 1.2 kW with cooling; racks: 2 of 132 kW; 100 MWh, $1",
        ),
    ],
)
def test_power_is_told_with_two_digits_and_racks_up_to_the_first_that_holds_all(
    facility: Facility, power: dict[str, float], expected: str
) -> None:
    watts, counts = ((10e3, 1), (20e3, 1)), ((10e3, None), (132e3, 2))
    racks = [
        RackPlan(rack_power_w=w, nodes_a_rack=1, racks=n) for w, n in (watts if power["it_power_w"] < 1e4 else counts)
    ]
    changed = {**power, "site_power_w": 1200.0, "energy_usd": 1.0, "racks": tuple(racks), "limit_w": None}
    shown = facility.model_copy(update={"power": facility.power.model_copy(update=changed)})
    assert expected == dict(report.facility_lines(shown))["power"]


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
