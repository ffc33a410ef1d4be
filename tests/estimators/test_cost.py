"""What a candidate costs and draws."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from clusterwright.estimators.cost import Quote, explain_rent, node_power, rent_cost, run_power, usual_power_ratio
from clusterwright.hardware import Accelerator, FabricKind, Node
from clusterwright.market import Offer, PricePerNodeHour

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
    assert term.value == pytest.approx(np.prod([part.value for part in term.parts]))
    assert "p i, on-demand, seen 2026-11-01: https://example.org" == term.parts[1].source


def test_an_unknown_draw_is_the_accelerators_times_the_usual_ratio() -> None:
    unknown = NODE.model_copy(update={"power_w": None})
    ratio = usual_power_ratio([(NODE, ACCELERATOR), (unknown, ACCELERATOR)])
    assert ratio == pytest.approx(10_000 / 5_600)
    assert node_power(NODE, ACCELERATOR, 9.9) == 10_000
    assert node_power(unknown, ACCELERATOR, ratio) == pytest.approx(10_000)
    assert usual_power_ratio([]) == 1.0


def test_the_run_draws_what_its_nodes_and_its_fabric_draw() -> None:
    assert [21_000.0, 41_000.0] == run_power(np.array([2, 4]), 10_000.0, 1_000.0).tolist()
