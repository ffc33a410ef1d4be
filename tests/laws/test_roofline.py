"""Laws of one kernel meet their limits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import roofline, work

SIZES = st.integers(1, 40_000)


def product(m: float, n: float, k: float, *, bandwidth: float = 3e12, peak: float = 1e15) -> float:
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
