"""What is legal, and what is refused for which rule."""

from __future__ import annotations

import csv
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.errors import InputError
from clusterwright.model import Attention, Block, Experts, Model
from clusterwright.search.propose import LEAST_CONTEXT, Limits, divisors, legal_layouts, pipelines, read_pins
from clusterwright.workload import Training
from tests.search.conftest import SMALL

NODE = Limits(accelerators_a_node=8, scale_up_domain=8, max_accelerators=64)
MIXTURE = Model(
    name="mixture",
    hidden=4096,
    vocab=32000,
    blocks=(
        Block(
            count=8,
            mixer=Attention(heads=32, kv_heads=8, head_size=128),
            feed=Experts(experts=8, top_k=2, ffn=14336),
        ),
    ),
)


def training(**lines: object) -> Training:
    given = {"tokens": "20B", "sequence_length": 8192, "global_batch": 64, "framework": "megatron"}
    return Training.model_validate({**given, **lines})


def test_every_candidate_is_either_legal_or_refused_for_one_rule() -> None:
    space = legal_layouts(SMALL, training(), NODE)
    assert space.candidates == space.legal + sum(space.refused.values())


@pytest.mark.parametrize("model", [SMALL, MIXTURE])
def test_a_legal_layout_keeps_every_rule(model: Model) -> None:
    lay = legal_layouts(model, training(), NODE).layouts
    world = lay.tp * lay.cp * lay.pp * lay.dp
    assert len(world) > 0
    assert (32 % lay.tp == 0).all()
    assert (lay.tp <= 8).all()
    assert (world % 8 == 0).all()
    assert (world <= 64).all()
    assert (64 % (lay.dp * lay.micro_batch) == 0).all()
    assert (max(model.experts, 1) % lay.ep == 0).all()
    assert ((lay.tp * lay.cp * lay.dp) % lay.ep == 0).all()
    assert ((lay.vpp == 1) | ((lay.pp > 1) & ((64 // (lay.dp * lay.micro_batch)) % lay.pp == 0))).all()


def test_only_a_mixture_spreads_experts() -> None:
    assert [1] == np.unique(legal_layouts(SMALL, training(), NODE).layouts.ep).tolist()
    assert [1, 2, 4, 8] == np.unique(legal_layouts(MIXTURE, training(), NODE).layouts.ep).tolist()


def test_plain_sharded_data_parallelism_splits_nothing_else() -> None:
    lay = legal_layouts(SMALL, training(framework="fsdp"), NODE).layouts
    assert (lay.tp * lay.cp * lay.pp * lay.vpp * lay.ep == 1).all()


def test_a_single_rank_shards_nothing() -> None:
    one = Limits(accelerators_a_node=1, scale_up_domain=1, max_accelerators=1)
    assert [0] == np.unique(legal_layouts(SMALL, training(), one).layouts.sharding).tolist()


def deep(layers: int) -> Model:
    return SMALL.model_copy(update={"blocks": (SMALL.blocks[0].model_copy(update={"count": layers}),)})


WIDE = Limits(accelerators_a_node=8, scale_up_domain=8, max_accelerators=1024)


def test_megatron_runs_stages_that_do_not_divide_the_layers_and_torchtitan_only_those_that_do() -> None:
    stages = set(np.unique(legal_layouts(deep(126), training(), WIDE).layouts.pp).tolist())
    assert {8, 12, 16, 32} <= stages
    titan = set(np.unique(legal_layouts(deep(126), training(framework="torchtitan"), WIDE).layouts.pp).tolist())
    assert {8, 16, 32} <= titan
    assert 12 not in titan


def test_a_pipeline_with_no_fewer_layers_on_its_fullest_stage_is_tried_only_when_pinned() -> None:
    assert 33 not in legal_layouts(deep(126), training(), WIDE).layouts.pp
    assert legal_layouts(deep(126), training(), Limits(8, 8, 1024, pins={"pp": 33})).legal > 0


@given(layers=st.integers(1, 130), framework=st.sampled_from(["megatron", "torchtitan"]))
def test_every_pipeline_that_is_left_out_has_a_shorter_one_as_good(layers: int, framework: str) -> None:
    pp, vpp = pipelines(layers, layers, framework, {})
    assert (pp * vpp <= layers).all()
    tried = set(pp.tolist())
    assert 1 in tried
    if framework == "megatron":
        for stages in range(2, layers + 1):
            assert any(p <= stages and -(-layers // p) == -(-layers // stages) for p in tried)


def test_long_sequences_split_over_many_context_ranks_and_short_ones_do_not() -> None:
    long = legal_layouts(SMALL, training(sequence_length=131072), Limits(8, 8, 256)).layouts.cp
    assert [1, 2, 4, 8, 16, 32] == np.unique(long).tolist()
    assert [1, 2] == np.unique(legal_layouts(SMALL, training(), NODE).layouts.cp).tolist()
    threes = legal_layouts(SMALL, training(sequence_length=3 * 4096), Limits(1, 8, 64)).layouts.cp
    assert 3 in threes


def test_no_published_run_of_megatron_splits_a_sequence_finer_than_is_tried() -> None:
    with files("clusterwright.catalog").joinpath("measurements", "training.csv").open(encoding="utf-8") as table:
        runs = [r for r in csv.DictReader(table) if float(r["cp"] or 1) > 1 and r["seq_len"]]
    megatron = [r for r in runs if any(w in r["framework"].lower() for w in ("megatron", "nemo"))]
    assert len(megatron) > 50
    assert LEAST_CONTEXT <= min(float(r["seq_len"]) / float(r["cp"]) for r in megatron) < 1.1 * LEAST_CONTEXT


def test_experts_spread_as_far_as_there_are_experts() -> None:
    block = MIXTURE.blocks[0]
    many = MIXTURE.model_copy(
        update={"blocks": (block.model_copy(update={"feed": Experts(experts=256, top_k=8, ffn=2048)}),)}
    )
    assert 256 in legal_layouts(many, training(global_batch=512), WIDE).layouts.ep


def test_short_sequences_may_fill_a_micro_batch() -> None:
    assert 64 in legal_layouts(SMALL, training(sequence_length=512), NODE).layouts.micro_batch


def test_pins_leave_only_what_is_pinned() -> None:
    pins = read_pins(["tp=4", "recompute=full", "nodes=2"])
    space = legal_layouts(SMALL, training(), Limits(8, 8, 64, pins=pins))
    lay = space.layouts
    assert [4] == np.unique(lay.tp).tolist()
    assert (2,) == space.recomputes
    assert [16] == np.unique(lay.tp * lay.cp * lay.pp * lay.dp).tolist()


def test_tensor_parallelism_leaves_the_scale_up_domain_only_when_it_is_pinned() -> None:
    assert (legal_layouts(SMALL, training(), NODE).layouts.tp <= 8).all()
    assert [16] == np.unique(legal_layouts(SMALL, training(), Limits(8, 8, 64, pins={"tp": 16})).layouts.tp).tolist()


@pytest.mark.parametrize(
    ("text", "word"),
    [("tp", "key=value"), ("pt=8", "tp"), ("tp=two", "'two'"), ("tp=0", "'0'"), ("recompute=ful", "full")],
)
def test_a_pin_that_cannot_be_is_refused_by_name(text: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        read_pins([text])


def test_divisors_stop_at_the_limit() -> None:
    assert [1, 2, 4, 5, 8, 10, 16, 20] == divisors(80, 20)


def test_a_batch_beyond_all_sense_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="global_batch"):
        legal_layouts(SMALL, training(global_batch=2**40), NODE)
