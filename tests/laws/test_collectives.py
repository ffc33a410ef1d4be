"""Collectives meet their limits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import collectives

LAWS = (collectives.all_gather_ring, collectives.all_reduce_ring, collectives.all_to_all_pairwise)
RANKS = st.sampled_from([2, 4, 8, 16, 64, 512])
BYTES = st.floats(1.0, 1e11)


@given(BYTES)
def test_one_rank_costs_nothing(message: float) -> None:
    for law in LAWS:
        assert float(law(message, 1, 1, up=4e11, out=5e10, start=1e-5)) == 0.0


@given(BYTES, RANKS)
def test_more_bytes_never_take_less_time(message: float, ranks: int) -> None:
    local = min(ranks, 8)
    for law in LAWS:
        once = float(law(message, ranks, local, up=4e11, out=5e10, start=1e-5))
        assert float(law(2 * message, ranks, local, up=4e11, out=5e10, start=1e-5)) >= once


@given(BYTES, RANKS)
def test_more_bandwidth_is_never_slower(message: float, ranks: int) -> None:
    local = min(ranks, 8)
    for law in LAWS:
        slow = float(law(message, ranks, local, up=4e11, out=5e10, start=1e-5))
        assert float(law(message, ranks, local, up=8e11, out=1e11, start=1e-5)) <= slow


@given(BYTES, RANKS)
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(message: float, ranks: int) -> None:
    local = min(ranks, 8)
    once = float(collectives.all_gather_ring(message, ranks, local, up=4e11, out=5e10, start=0.0))
    both = float(collectives.all_reduce_ring(message, ranks, local, up=4e11, out=5e10, start=0.0))
    assert np.isclose(both, 2 * once)


def test_a_measured_sweep_is_met_within_a_tenth() -> None:
    # all-reduce of 8 H100 over NVLink 4 with in-switch reduction, aiconfigurator-core 0.12.0, NCCL 2.27: ms by bytes
    for message, milliseconds in ((16777216, 0.12191), (67108864, 0.32453), (268435456, 1.0921), (536870912, 2.11106)):
        start = float(collectives.start_up(message, latency=16e-6, fill=60e-6))
        time = float(collectives.all_reduce_ring(message, 8, 8, up=450e9 * 1.05, out=5e10, start=start))
        assert abs(time / (milliseconds * 1e-3) - 1) < 0.1


@given(st.integers(1, 4096), st.integers(1, 4096), st.sampled_from([1, 4, 8, 72]))
def test_local_ranks_are_at_least_one_and_at_most_all(ranks: int, stride: int, domain: int) -> None:
    local = int(collectives.local_ranks(ranks, stride, domain))
    assert 1 <= local <= ranks
    assert local == 1 or local * stride <= domain


@given(st.integers(1, 64), st.sampled_from([1, 2, 4, 8]))
def test_a_ring_over_more_domains_starts_later(domains: int, local: int) -> None:
    def latency(count: int) -> float:
        return float(collectives.ring_latency(count * local, local, inside=2e-6, outside=14e-6))

    assert latency(domains) < latency(2 * domains)


@given(st.sampled_from([8, 16, 64, 512, 4096]))
def test_a_tree_over_many_domains_starts_before_a_ring(domains: int) -> None:
    hops = {"inside": 2e-6, "outside": 14e-6}
    ring = 2 * float(collectives.ring_latency(8 * domains, 8, **hops))
    assert float(collectives.tree_latency(8 * domains, 8, **hops)) < ring


def test_one_domain_has_no_hop_outside() -> None:
    assert 0.0 == float(collectives.tree_latency(1, 1, inside=2e-6, outside=14e-6))
    assert 7 * 2e-6 == float(collectives.ring_latency(8, 8, inside=2e-6, outside=14e-6))
