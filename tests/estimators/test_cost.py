"""What a candidate costs and draws."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts
from clusterwright.estimators.cost import (
    Beside,
    Quote,
    committed_cost,
    explain_rent,
    node_power,
    rent_cost,
    run_power,
    usual_power_ratio,
)
from clusterwright.estimators.ownership import Owned
from clusterwright.hardware import Accelerator, FabricKind, Node
from clusterwright.market import MONTH_S, Offer, PricePerNodeHour
from clusterwright.units import DAY, HOUR, YEAR

ACCELERATOR = Accelerator(
    name="a", vendor="nvidia", architecture="hopper", memory_bytes=8e10, memory_bytes_per_s=3e12,
    peak_flop_per_s={"bf16": 1e15}, multiprocessors=132, scale_up_bytes_per_s=4.5e11, scale_up_peer_bytes_per_s=4.5e11,
    power_w=700.0,
)  # fmt: skip
NODE = Node(
    name="n", provider="p", accelerator="a", accelerators=8, scale_up_domain=8, nics=8, nic_bits_per_s=4e11,
    fabric=FabricKind.INFINIBAND, power_w=10_000.0,
)  # fmt: skip
OFFER = Offer(
    provider="p", node="n", instance="i", accelerator="a", accelerators=4, term="on-demand",
    price=PricePerNodeHour(usd=8.0), seen=date(2026, 11, 1), source="https://example.org",
)  # fmt: skip


def test_a_part_of_a_node_is_priced_by_the_accelerator() -> None:
    quote = Quote.of(OFFER, 8)
    assert (16.0, 2.0) == (quote.usd_per_node_hour, quote.usd_per_accelerator_hour)


def test_of_a_cluster_that_is_there_the_whole_is_paid() -> None:
    own = Quote("own", "own", "n", usd_per_node_hour=10.0, usd_per_accelerator_hour=1.25, paid_nodes=4)
    assert [40.0, 40.0] == rent_cost(np.array([1, 3]), own, 3600.0).tolist()


def test_the_tree_of_the_rent_multiplies_to_its_root() -> None:
    term = explain_rent(3, 1, Quote.of(OFFER, 8), 7200.0)
    (nodes,) = term.parts
    assert term.value == nodes.value == pytest.approx(np.prod([part.value for part in nodes.parts]))
    assert "p i, on-demand, seen 2026-11-01: https://example.org" == nodes.parts[1].source


def reserved(*, kept_s: float | None = None, utilisation: float | None = None) -> Quote:
    """A year that is committed to."""
    quote = Quote.of(OFFER.model_copy(update={"term": "reserved", "commitment_s": YEAR}), 8)
    return replace(quote, kept_s=kept_s, utilisation=utilisation)


def test_a_commitment_costs_its_whole_term() -> None:
    year = 16.0 * YEAR / HOUR
    assert year == pytest.approx(float(rent_cost(1, reserved(), DAY)))
    assert year == pytest.approx(float(rent_cost(1, reserved(kept_s=YEAR), DAY)))
    assert year == pytest.approx(float(rent_cost(1, reserved(utilisation=0.5), DAY)))


def test_with_horizon_and_utilisation_a_job_bears_its_share() -> None:
    quote = reserved(kept_s=YEAR, utilisation=0.5)
    assert 16.0 * YEAR / HOUR == pytest.approx(float(committed_cost(1, quote, DAY)))
    assert 2 * 16.0 * 24 == pytest.approx(float(rent_cost(1, quote, DAY)))


def test_a_commitment_that_ends_before_the_horizon_is_renewed() -> None:
    quote = reserved(kept_s=2.5 * YEAR, utilisation=1.0)
    assert 3 * 16.0 * YEAR / HOUR == pytest.approx(float(committed_cost(1, quote, DAY)))
    assert 3 / 2.5 * 16.0 * 24 == pytest.approx(float(rent_cost(1, quote, DAY)))


def test_three_years_of_365_days_are_three_years() -> None:
    quote = replace(reserved(kept_s=3 * YEAR, utilisation=1.0), commitment_s=3 * 365 * DAY)
    assert 3 * 365 * DAY == quote.paid_s == quote.used_s


def test_a_horizon_shorter_than_the_commitment_wastes_the_rest() -> None:
    quote = reserved(kept_s=YEAR / 2, utilisation=1.0)
    assert 2 * 16.0 * 24 == pytest.approx(float(rent_cost(1, quote, DAY)))


def test_what_is_billed_by_the_hour_knows_no_horizon() -> None:
    quote = replace(Quote.of(OFFER, 8), kept_s=YEAR, utilisation=0.1)
    assert 16.0 * 24 == pytest.approx(float(rent_cost(1, quote, DAY)))
    assert quote.used_s is None


@pytest.mark.parametrize("quote", [reserved(), reserved(kept_s=3 * YEAR, utilisation=0.6)])
def test_the_tree_of_a_commitment_shows_the_whole_and_the_share(quote: Quote) -> None:
    term = explain_rent(1, 0, quote, DAY)
    assert term.value == pytest.approx(float(rent_cost(1, quote, DAY)))
    assert ("whole commitment" in term.names()) == (quote.used_s is not None)
    if quote.used_s is not None:
        whole = term.find("whole commitment")
        assert whole is not None
        assert whole.value == pytest.approx(float(committed_cost(1, quote, DAY)))


def test_storage_and_data_transfer_are_parts_of_the_cost() -> None:
    beside = Beside(
        storage_bytes=1e13, usd_per_byte_month=1e-10, egress_bytes=1e12, usd_per_gb_egress=0.09,
        storage_source="a", egress_source="b",
    )  # fmt: skip
    plain = Quote.of(OFFER, 8)
    quote = replace(plain, beside=beside)
    more = float(rent_cost(1, quote, MONTH_S)) - float(rent_cost(1, plain, MONTH_S))
    assert 1000.0 + 90.0 == pytest.approx(more)
    term = explain_rent(1, 0, quote, MONTH_S)
    assert ["nodes", "storage", "egress"] == [part.name for part in term.parts]
    assert term.value == pytest.approx(sum(part.value for part in term.parts))


def test_what_is_bought_is_paid_for_as_long_as_it_is_kept() -> None:
    known = catalog.load()
    server = known.owning.server_of("dgx-h100")
    assert server is not None
    bought = Owned(known.node("dgx-h100"), server, 10_200.0, known.owning, load_fabric_parts(), 64, 4 * YEAR)
    quote = Quote("owned", "owned", "dgx-h100", 0.0, 0.0, commitment_s=4 * YEAR, owned=bought)
    whole = float(bought.usd_per_hour(16)) * 4 * YEAR / HOUR
    assert whole == pytest.approx(float(rent_cost(16, quote, DAY)))
    shared = replace(quote, kept_s=4 * YEAR, utilisation=0.5)
    assert whole == pytest.approx(float(committed_cost(16, shared, DAY)))
    assert 2 * 24 * float(bought.usd_per_hour(16)) == pytest.approx(float(rent_cost(16, shared, DAY)))
    assert float(bought.usd_per_hour(16)) / 128 == pytest.approx(quote.per_accelerator_hour(16, 128))
    names = explain_rent(15, 1, shared, DAY).names()
    assert {"whole commitment", "owning", "cost of capital", "share of the job"} <= set(names)


def test_an_unknown_draw_is_the_accelerators_times_the_usual_ratio() -> None:
    unknown = NODE.model_copy(update={"power_w": None})
    ratio = usual_power_ratio([(NODE, ACCELERATOR), (unknown, ACCELERATOR)])
    assert ratio == pytest.approx(10_000 / 5_600)
    assert node_power(NODE, ACCELERATOR, 9.9) == 10_000
    assert node_power(unknown, ACCELERATOR, ratio) == pytest.approx(10_000)
    assert usual_power_ratio([]) == 1.0


def test_what_many_providers_offer_counts_once_for_the_usual_ratio() -> None:
    many = [(NODE.model_copy(update={"power_w": 6_000.0}), ACCELERATOR)] * 9
    others = [(NODE, ACCELERATOR.model_copy(update={"name": name})) for name in ("b", "c")]
    assert usual_power_ratio([*many, *others]) == pytest.approx(10_000 / 5_600)


def test_the_run_draws_what_its_nodes_and_its_fabric_draw() -> None:
    assert [21_000.0, 41_000.0] == run_power(np.array([2, 4]), 10_000.0, 1_000.0).tolist()
