"""Laws of one kernel meet their limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import roofline, work

SIZES = st.integers(1, 40_000)


def product(
    m: float,
    n: float,
    k: float,
    *,
    bandwidth: float = 3e12,
    peak: float = 1e15,
    epilogue: float = 0.0,
    groups: int = 1,
) -> float:
    time = roofline.matrix_product_time(
        m,
        n,
        k,
        peak=peak,
        share=0.8,
        half_depth=500,
        waves=0.2,
        multiprocessors=132,
        bandwidth=bandwidth,
        element_bytes=2,
        result_bytes=8,
        epilogue=epilogue,
        groups=groups,
    )
    return float(time)


@given(SIZES, SIZES, SIZES)
def test_a_product_is_never_faster_than_its_peak(m: int, n: int, k: int) -> None:
    assert product(m, n, k) >= work.matrix_product_flop(m, n, k) / 1e15


@given(SIZES, SIZES, SIZES)
def test_more_bandwidth_is_never_slower(m: int, n: int, k: int) -> None:
    assert product(m, n, k, bandwidth=6e12) <= product(m, n, k)


@given(SIZES, SIZES, SIZES)
def test_a_higher_peak_is_never_slower(m: int, n: int, k: int) -> None:
    assert product(m, n, k, peak=2e15) <= product(m, n, k)


@given(SIZES, SIZES)
def test_tiles_never_fill_more_than_all_multiprocessors(m: int, n: int) -> None:
    assert 0 < float(roofline.tile_quantisation(m, n, 132)) <= 1


@given(st.integers(1, 100_000), st.integers(0, 100_000))
def test_a_window_never_attends_to_more_than_the_whole_past(sequence: int, window: int) -> None:
    assert float(work.attended_tokens(sequence, window)) <= float(work.attended_tokens(sequence, 0)) + 1e-9


def test_a_query_sees_itself() -> None:
    assert float(work.attended_tokens(1, 0)) == 1.0
    assert float(work.attended_tokens(100, 1)) == 1.0


def test_laws_take_arrays_of_any_shape() -> None:
    m = np.array([[128.0], [256.0]])
    n = np.array([1024.0, 2048.0, 4096.0])
    time = roofline.matrix_product_time(
        m,
        n,
        4096,
        peak=1e15,
        share=0.8,
        half_depth=500,
        waves=0.2,
        multiprocessors=132,
        bandwidth=3e12,
        element_bytes=2,
    )
    assert np.shape(time) == (2, 3)


@given(st.integers(1, 64), SIZES, SIZES, SIZES)
def test_a_group_of_products_is_never_faster_than_their_peak(groups: int, m: int, n: int, k: int) -> None:
    time = roofline.matrix_product_time(
        m,
        n,
        k,
        peak=1e15,
        share=0.8,
        half_depth=100,
        waves=0.5,
        multiprocessors=132,
        bandwidth=3e12,
        element_bytes=2,
        groups=groups,
    )
    assert float(time) >= groups * work.matrix_product_flop(m, n, k) / 1e15


@given(st.integers(256, 100_000), st.sampled_from([64, 128, 192, 256]))
def test_longer_rows_use_more_of_the_peak(length: int, head: int) -> None:
    def speed(rows: int) -> float:
        time = roofline.attention_time(
            1e12, peak=1e15, share=0.6, length=rows, half_length=800, head_size=head, half_head=50
        )
        return 1e12 / float(time)

    assert speed(2 * length) >= speed(length)


@given(st.integers(1, 512))
def test_more_ranks_of_experts_are_never_evener(ranks: int) -> None:
    assert 1.0 <= float(work.routing_skew(ranks)) <= float(work.routing_skew(2 * ranks))


@given(SIZES, SIZES, SIZES)
def test_a_product_takes_as_long_as_its_larger_bound_and_at_the_ridge_a_little_longer(m: int, n: int, k: int) -> None:
    bound = max(product(m, n, k, bandwidth=math.inf), product(m, n, k, peak=math.inf))
    assert bound * (1 - 1e-12) <= product(m, n, k) <= 2 ** (1 / roofline.RIDGE) * bound * (1 + 1e-12)


@given(SIZES, SIZES, SIZES)
def test_at_the_ridge_itself_both_bounds_count_alike(m: int, n: int, k: int) -> None:
    compute, memory = product(m, n, k, bandwidth=math.inf), product(m, n, k, peak=math.inf)
    at_ridge = product(m, n, k, bandwidth=3e12 * memory / compute)
    assert 2 ** (1 / roofline.RIDGE) * compute == pytest.approx(at_ridge)


@given(SIZES, SIZES, SIZES, st.floats(0, 1), st.integers(1, 64))
def test_what_comes_after_a_product_adds_its_traffic(m: int, n: int, k: int, share: float, groups: int) -> None:
    expected = product(m, n, k, groups=groups) + groups * share * 8 * m * n / 3e12
    assert expected == pytest.approx(product(m, n, k, epilogue=share, groups=groups))


def unfused(
    operations: float,
    *,
    key: int = 128,
    value: int = 128,
    half_depth: float = 0,
    passes: float = 0,
    scores: float = 1e9,
    bandwidth: float = 3e12,
) -> float:
    time = roofline.unfused_attention_time(
        operations,
        scores,
        peak=1e15,
        share=0.8,
        half_depth=half_depth,
        key_size=key,
        value_size=value,
        passes=passes,
        bandwidth=bandwidth,
    )
    return float(time)


HEAD = st.integers(16, 512)


@given(st.floats(1e9, 1e15), HEAD, HEAD, st.floats(0, 10), st.floats(1, 8))
def test_more_bandwidth_never_slows_unfused_attention(
    operations: float, key: int, value: int, passes: float, factor: float
) -> None:
    fast, slow = (unfused(operations, key=key, value=value, passes=passes, bandwidth=b) for b in (3e12 * factor, 3e12))
    assert fast <= slow


@given(st.floats(1e9, 1e15), HEAD, HEAD, st.floats(0, 500))
def test_unfused_attention_is_never_faster_than_its_peak(
    operations: float, key: int, value: int, half_depth: float
) -> None:
    assert operations / 0.8e15 <= unfused(operations, key=key, value=value, half_depth=half_depth) * (1 + 1e-12)


def test_heads_of_96_pay_for_columns_of_128() -> None:
    # Three quarters of the operations: the product with the values takes as long, that with the keys three quarters.
    assert 1.75 / 2 * unfused(1e15) == pytest.approx(unfused(0.75e15, key=96, value=96))


@given(HEAD)
def test_the_product_with_the_values_takes_as_long_as_one_of_whole_tiles(value: int) -> None:
    whole = math.ceil(value / roofline.TILE_ROWS) * roofline.TILE_ROWS

    def second(size: int) -> float:
        """The time beyond the product with the keys, whose half of the operations is deep enough for the peak."""
        return unfused(1e12 * size, value=size) - 1e12 * size / 0.8e15 / 2

    assert second(whole) == pytest.approx(second(value))


@given(st.floats(1e9, 1e15), st.floats(0, 10), st.floats(1, 1e12))
def test_every_pass_over_the_scores_adds_its_time(operations: float, passes: float, scores: float) -> None:
    expected = unfused(operations) + passes * scores / 3e12
    assert expected == pytest.approx(unfused(operations, passes=passes, scores=scores))


@given(st.floats(1e9, 1e15), st.floats(1, 500), st.sampled_from([64, 128, 256]))
def test_deeper_heads_use_more_of_the_peak_of_unfused_attention(operations: float, half: float, key: int) -> None:
    assert unfused(operations, key=2 * key, half_depth=half) <= unfused(operations, key=key, half_depth=half)
