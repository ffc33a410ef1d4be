"""Which network a job needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright.estimators import adequacy
from clusterwright.facility import NetworkChoice
from clusterwright.hardware import FabricKind
from clusterwright.layout import Layout

if TYPE_CHECKING:
    from clusterwright.estimators.job import Job

WIDE = Layout(tp=8, cp=1, pp=1, vpp=1, ep=1, dp=8, sharding="distopt", micro_batch=1, global_batch=64, recompute="full")
ALONE = Layout(
    tp=8, cp=1, pp=1, vpp=1, ep=1, dp=1, sharding="distopt", micro_batch=1, global_batch=64, recompute="full"
)


@pytest.fixture
def choices(job: Job) -> tuple[NetworkChoice, ...]:
    return adequacy.weigh_networks(job, WIDE)


def test_every_combination_is_weighed(choices: tuple[NetworkChoice, ...]) -> None:
    assert 4 * 7 * 3 == len({(c.fabric, c.node_bits_per_s, c.oversubscription) for c in choices})


def test_more_bandwidth_or_less_oversubscription_is_never_slower(choices: tuple[NetworkChoice, ...]) -> None:
    for one in choices:
        for other in choices:
            same = one.fabric is other.fabric
            better = one.node_bits_per_s >= other.node_bits_per_s and one.oversubscription <= other.oversubscription
            if same and better:
                assert one.step_time_s <= other.step_time_s * (1 + 1e-12)


def test_tcp_is_never_faster_than_infiniband(choices: tuple[NetworkChoice, ...]) -> None:
    by_kind = {
        kind: [c.step_time_s for c in choices if c.fabric is kind] for kind in (FabricKind.INFINIBAND, FabricKind.TCP)
    }
    assert all(a <= b for a, b in zip(by_kind[FabricKind.INFINIBAND], by_kind[FabricKind.TCP], strict=True))


def test_the_smallest_adequate_network_is_adequate_and_every_slower_one_is_not(
    choices: tuple[NetworkChoice, ...],
) -> None:
    found = adequacy.smallest_adequate(choices, FabricKind.INFINIBAND, 0.05)
    assert found is not None
    assert found.cost_share <= 0.05
    slower = [c for c in choices if c.fabric is found.fabric and c.node_bits_per_s < found.node_bits_per_s]
    assert slower
    assert all(c.cost_share > 0.05 for c in slower)


def test_a_size_up_never_costs_more(choices: tuple[NetworkChoice, ...]) -> None:
    found = next(c for c in choices if c.node_bits_per_s == 100e9)
    larger = adequacy.next_larger(choices, found)
    assert larger is not None
    assert 200e9 == larger.node_bits_per_s
    assert larger.cost_share <= found.cost_share
    assert adequacy.next_larger(choices, next(c for c in choices if c.node_bits_per_s == 6400e9)) is None


def choice(gbps: float, ratio: float, step: float, share: float) -> NetworkChoice:
    return NetworkChoice(
        fabric=FabricKind.ROCE, node_bits_per_s=gbps * 1e9, oversubscription=ratio, step_time_s=step,
        exposed_communication_s=0.0, cost_share=share,
    )  # fmt: skip


def test_the_need_is_the_slowest_that_costs_little_and_a_size_up_is_worth_its_share_of_the_run() -> None:
    weighed = (choice(400, 1, 10.6, 0.05), choice(800, 1, 10.1, 0.01), choice(800, 2, 10.2, 0.02),
               choice(1600, 2, 10.1, 0.01), choice(1600, 1, 10.0, 0.0))  # fmt: skip
    (need,) = adequacy.needs_of(weighed, 1e6, 10.2)
    assert need.adequate == weighed[2]
    assert need.next_up == weighed[3]
    assert need.next_up_saves_s == pytest.approx(0.1)
    assert need.next_up_saves_usd == pytest.approx(1e6 * 0.1 / 10.2)


def test_where_none_costs_little_none_is_named() -> None:
    (need,) = adequacy.needs_of((choice(400, 1, 10.6, 0.05),), 1e6, 10.0)
    assert need.adequate is None
    assert need.next_up_saves_usd is None


def test_a_job_inside_one_node_needs_no_network(job: Job) -> None:
    assert {0.0} == {c.cost_share for c in adequacy.weigh_networks(job, ALONE)}
