"""The front and its knee."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.search.pareto import front, knee

POINTS = st.lists(st.tuples(st.floats(1, 1e9), st.floats(1, 1e9)), min_size=1, max_size=60)


@given(POINTS)
def test_nothing_beats_a_point_of_the_front_in_both(points: list[tuple[float, float]]) -> None:
    time, money = (np.array(v) for v in zip(*points, strict=True))
    for i in front(time, money):
        assert not ((time <= time[i]) & (money <= money[i]) & ((time < time[i]) | (money < money[i]))).any()


@given(POINTS)
def test_every_point_left_out_is_beaten_or_equalled_by_one_of_the_front(points: list[tuple[float, float]]) -> None:
    time, money = (np.array(v) for v in zip(*points, strict=True))
    kept = front(time, money)
    for i in range(len(time)):
        assert ((time[kept] <= time[i]) & (money[kept] <= money[i])).any()


@given(POINTS)
def test_along_the_front_time_grows_and_money_falls(points: list[tuple[float, float]]) -> None:
    time, money = (np.array(v) for v in zip(*points, strict=True))
    kept = front(time, money)
    assert (np.diff(time[kept]) > 0).all()
    assert (np.diff(money[kept]) < 0).all()


@given(POINTS, st.floats(0.01, 100))
def test_the_knee_does_not_depend_on_the_unit(points: list[tuple[float, float]], scale: float) -> None:
    time, money = (np.array(v) for v in zip(*points, strict=True))
    kept = front(time, money)
    place = knee(time[kept], money[kept])
    assert 0 <= place < len(kept)
    other = knee(time[kept] * scale, money[kept])
    x, y = np.log(time[kept]), np.log(money[kept])
    if len(kept) > 2:
        far = (x - x[0]) / (x[-1] - x[0]) + (y - y[-1]) / (y[0] - y[-1])
        assert abs(far[place] - far[other]) < 1e-6


def test_of_two_equal_points_the_simpler_stays() -> None:
    assert [1] == front(np.array([5.0, 5.0]), np.array([2.0, 2.0]), np.array([8.0, 4.0])).tolist()
