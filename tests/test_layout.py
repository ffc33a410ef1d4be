"""Ranks and their coordinates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.estimators.grid import Layouts
from clusterwright.layout import Layout

DEGREES = st.integers(min_value=1, max_value=6)
LAYOUTS = st.builds(Layout, tp=DEGREES, cp=DEGREES, pp=DEGREES, dp=DEGREES)


@given(LAYOUTS, st.data())
def test_a_rank_has_one_place_and_a_place_one_rank(layout: Layout, data: st.DataObject) -> None:
    rank = data.draw(st.integers(min_value=0, max_value=layout.accelerators - 1))
    assert rank == layout.rank_of(**layout.coordinates_of(rank))


@given(LAYOUTS)
def test_tensor_parallel_ranks_are_neighbours(layout: Layout) -> None:
    assert list(range(layout.tp)) == [layout.rank_of(tp, 0, 0, 0) for tp in range(layout.tp)]


def test_the_global_batch_is_shared_by_data_parallel_ranks() -> None:
    assert Layout(dp=4, micro_batch=2, global_batch=64).micro_batches == 8


def test_a_layout_written_before_there_were_schedules_is_1f1b() -> None:
    old = Layout(pp=4, dp=2).model_dump()
    del old["schedule"]
    assert Layout(pp=4, dp=2, schedule="1f1b") == Layout.model_validate(old)


def test_arrays_of_layouts_that_name_no_schedule_are_1f1b() -> None:
    named = Layouts.of(Layout(pp=2, dp=4), Layout(tp=2, dp=4))
    degrees = {name: value for name, value in vars(named).items() if name != "schedule"}
    assert np.array_equal(named.schedule, Layouts(**degrees).schedule)
