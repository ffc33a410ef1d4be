"""Laws of memory meet their limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.laws import memory

SMALL = st.integers(1, 64)
WIDE = st.floats(1.0, 1e5)


@given(st.floats(1.0, 1e12), SMALL, SMALL)
def test_more_shards_never_hold_more_states(parameters: float, shards: int, more: int) -> None:
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

    assert states(shards + more) <= states(shards)


def test_states_of_zero_are_those_of_its_paper() -> None:
    # Rajbhandari et al. 2020, figure 1: 7.5B parameters over 64 ranks take 120, 31.4, 16.6 and 1.9 GB
    found = [
        float(
            memory.state_bytes(
                7.5e9,
                weight=2,
                gradient=2,
                optimizer=12,
                weight_shards=w,
                gradient_shards=g,
                optimizer_shards=o,
            )
        )
        / 1e9
        for w, g, o in ((1, 1, 1), (1, 1, 64), (1, 64, 64), (64, 64, 64))
    ]
    assert [120.0, 31.4, 16.6, 1.9] == [round(size, 1) for size in found]


def test_scores_with_dropout_are_those_of_korthikanti() -> None:
    # Korthikanti et al. 2022, equation 1: 5 a s / h of the 34 s b h, at 96 heads, 2048 tokens and width 12288: 80/34
    scores = float(memory.score_bytes(2048, 2048, 96, 2.5))
    assert np.isclose(80 / 34, scores / (34 * 2048 * 12288), rtol=0.01)


@given(SMALL, SMALL, SMALL)
def test_a_later_stage_holds_no_more_micro_batches(micro_batches: int, stages: int, virtual: int) -> None:
    held = [float(memory.micro_batches_held(micro_batches, stages, virtual, k)) for k in range(stages)]
    assert held == sorted(held, reverse=True)
    assert 0 < held[-1] <= held[0] <= micro_batches


@given(SMALL, SMALL)
def test_a_plain_pipeline_ends_with_one_micro_batch(micro_batches: int, stages: int) -> None:
    assert 1.0 == float(memory.micro_batches_held(micro_batches, stages, 1, stages - 1))
    assert float(min(micro_batches, stages)) == float(memory.micro_batches_held(micro_batches, stages, 1, 0))


@given(st.integers(1, 16), st.integers(1, 128), st.floats(0.0, 8.0))
def test_stages_cut_by_work_share_out_all_layers(stages: int, layers: int, head: float) -> None:
    before = [float(memory.layers_before(k, stages, layers, head)) for k in range(stages + 1)]
    assert 0.0 == before[0]
    assert float(layers) == before[-1]
    assert before == sorted(before)


def test_a_heavy_head_leaves_the_last_stage_fewer_layers() -> None:
    assert [11.0, 5.0] == list(np.diff([float(memory.layers_before(k, 2, 16, 4.0)) for k in range(3)]))


@given(SMALL, WIDE)
def test_adapters_grow_with_their_rank(rank: int, widths: float) -> None:
    assert np.isclose(
        rank * float(memory.low_rank_parameters(1, widths)), float(memory.low_rank_parameters(rank, widths))
    )


@given(st.integers(1, 16), st.integers(16, 1024), st.floats(0.0, 4.0))
def test_a_quantised_weight_is_never_smaller_than_its_bits(bits: int, group: int, scale: float) -> None:
    assert bits / 8 <= float(memory.quantised_bytes(bits, group, scale)) <= bits / 8 + scale


@pytest.mark.parametrize("longest", [500.0, 1000.0, 2000.0, 4000.0])
def test_outgrown_blocks_are_those_of_successive_longest_sequences(longest: float) -> None:
    lengths = np.minimum(np.random.default_rng(1).exponential(1000.0, size=(2000, 1000)), longest)
    before = np.maximum.accumulate(np.pad(lengths, ((0, 0), (1, 0)))[:, :-1], axis=1)
    outgrown = np.where((lengths > before) & (lengths < longest), lengths, 0.0).sum(axis=1).mean() / longest
    assert np.isclose(float(memory.outgrown_share(longest, 1000.0)), outgrown, rtol=0.05)
