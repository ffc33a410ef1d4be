"""Pipeline and memory laws meet their limits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import memory, pipeline

SMALL = st.integers(1, 64)


@given(SMALL, st.floats(1e-6, 10.0))
def test_one_stage_has_no_bubble(micro_batches: int, slot: float) -> None:
    assert np.isclose(float(pipeline.one_forward_one_backward(micro_batches, 1, 1, slot)), micro_batches * slot)


@given(SMALL, SMALL, SMALL)
def test_interleaving_never_makes_the_bubble_longer(micro_batches: int, stages: int, virtual: int) -> None:
    plain = float(pipeline.one_forward_one_backward(micro_batches, stages, 1, 1.0))
    assert float(pipeline.one_forward_one_backward(micro_batches, stages, virtual, 1.0)) <= plain


@given(SMALL, SMALL)
def test_step_time_is_linear_in_micro_batches(micro_batches: int, stages: int) -> None:
    first, second, third = (
        float(pipeline.one_forward_one_backward(micro_batches + i, stages, 1, 0.5)) for i in range(3)
    )
    assert np.isclose(third - second, second - first)


@given(SMALL, SMALL, SMALL)
def test_no_more_micro_batches_are_in_flight_than_there_are(micro_batches: int, stages: int, virtual: int) -> None:
    assert 1 <= float(pipeline.in_flight(micro_batches, stages, virtual)) <= micro_batches


@given(st.floats(1.0, 1e12), SMALL)
def test_sharding_never_takes_more_memory(parameters: float, shards: int) -> None:
    def states(count: int) -> float:
        return float(
            memory.state_bytes(
                parameters,
                weight=2,
                gradient=4,
                optimizer=12,
                weight_shards=1,
                gradient_shards=count,
                optimizer_shards=count,
            )
        )

    assert states(shards) <= states(1)
