"""The rest of a planned cluster, in the plan and in its terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts, load_failure_rates, load_site_figures
from clusterwright.estimators import facility
from clusterwright.estimators.facility_terms import terms_of
from clusterwright.plan import Plan
from clusterwright.search.design import Known, design
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.facility import Facility

FIGURES, PARTS, RATES = load_site_figures(), load_fabric_parts(), load_failure_rates()


@pytest.fixture(scope="module")
def plan() -> Plan:
    known = Known(catalog.load(), PARTS, RATES, FIGURES)
    asked = {"power": "100 kW", "deadline": "6 days", "terms": ["on-demand"]}
    return design(wish(constraints=asked, training={"tokens": "200B"}), known)


@pytest.fixture(scope="module")
def rest(plan: Plan) -> Facility:
    assert plan.facility is not None
    return plan.facility


def test_a_plan_holds_all_of_its_cluster(rest: Facility) -> None:
    assert rest.storage is not None
    assert rest.failures is not None
    assert rest.choices
    assert rest.network("management") is not None


def test_a_plan_is_read_again_with_its_facility_and_one_without_still_reads(plan: Plan) -> None:
    assert plan == Plan.model_validate_json(plan.to_json())
    old = plan.model_dump(mode="json")
    del old["facility"]
    assert Plan.model_validate(old).facility is None


def test_a_plan_written_without_it_gets_the_same(plan: Plan, rest: Facility) -> None:
    bare = plan.model_copy(update={"facility": None})
    assert bare.chosen is not None
    assert rest == facility.facility_of(bare, bare.chosen, FIGURES, PARTS, RATES)


@pytest.mark.parametrize(
    "name",
    ["networks", "management network", "network needed", "storage bandwidth", "storage capacity",
     "interruptions in the run", "interval by Daly", "site power", "cooling", "energy of the run"],
)  # fmt: skip
def test_every_part_explains_itself(plan: Plan, name: str) -> None:
    assert plan.terms is not None
    assert plan.terms.find(name) is not None


def test_the_terms_say_what_the_values_say(plan: Plan, rest: Facility) -> None:
    assert plan.terms is not None
    power, networks = plan.terms.find("site power"), plan.terms.find("networks")
    assert power is not None
    assert power.value == rest.power.site_power_w
    assert networks is not None
    assert networks.value == pytest.approx(sum(n.capex_usd or 0.0 for n in rest.networks))


def test_goodput_and_spares_are_those_of_the_choice(plan: Plan, rest: Facility) -> None:
    assert plan.chosen is not None
    assert rest.failures is not None
    assert rest.failures.goodput == pytest.approx(plan.chosen.estimate.goodput, abs=1e-9)
    assert rest.failures.spares == plan.chosen.spares
    low, high = rest.failures.goodput_interval
    assert low - 0.002 <= rest.failures.goodput <= high + 0.002


def test_synchronous_saves_are_never_better_than_those_in_memory(rest: Facility) -> None:
    assert rest.storage is not None
    by_mode = {way.mode: way for way in rest.storage.ways}
    assert by_mode["sync"].goodput <= by_mode["async"].goodput <= by_mode["memory"].goodput
    assert by_mode["sync"].stall_s > by_mode["memory"].stall_s


def test_nothing_that_helps_costs_money(rest: Facility) -> None:
    assert rest.failures is not None
    assert all(i.saves_usd >= 0 for i in rest.failures.improvements)
    assert any("hot spares" in i.change for i in rest.failures.improvements)


def test_power_within_the_limit_but_not_with_cooling_is_a_warning(plan: Plan, rest: Facility) -> None:
    tight = rest.power.it_power_w * 1.1
    power = rest.power.model_copy(update={"limit_w": tight, "within_limit": True, "within_limit_with_cooling": False})
    told = facility.warnings_of(rest.model_copy(update={"power": power}))
    assert any("with cooling at PUE 1.54" in text for text in told)
    assert plan.chosen is not None
    assert 100e3 == rest.power.limit_w


def test_a_storage_network_that_cannot_be_designed_is_told(rest: Facility) -> None:
    left = tuple(n for n in rest.networks if n.purpose != "storage")
    told = facility.warnings_of(rest.model_copy(update={"networks": left}))
    assert any("storage network" in text for text in told)


def test_a_single_node_has_no_networks_of_its_own(plan: Plan) -> None:
    assert plan.chosen is not None
    one = plan.chosen.model_copy(update={"nodes": 1, "spares": 0})
    alone = facility.facility_of(plan, one, FIGURES, PARTS, RATES)
    assert [] == [*alone.networks, *alone.choices, *alone.needs]
    assert "network needed" not in {term.name for term in terms_of(alone)}
    assert not any("storage network" in text for text in facility.warnings_of(alone))


def test_the_network_of_the_plan_is_one_of_those_weighed(plan: Plan, rest: Facility) -> None:
    assert plan.hardware_node is not None
    assert rest.own in rest.choices
    assert rest.own is not None
    assert plan.hardware_node.nics * plan.hardware_node.nic_bits_per_s == rest.own.node_bits_per_s


def test_a_plan_that_chose_nothing_has_no_facility(plan: Plan) -> None:
    nothing = plan.model_copy(update={"chosen": None, "facility": None})
    assert nothing == facility.with_facility(nothing, FIGURES, PARTS, RATES)
