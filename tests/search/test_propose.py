"""What is legal, and what is refused for which rule."""

from __future__ import annotations

import numpy as np
import pytest

from clusterwright.errors import InputError
from clusterwright.model import Attention, Block, Experts, Model
from clusterwright.search.propose import Limits, divisors, legal_layouts, read_pins
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


def test_uneven_stages_count_embedding_and_loss_as_a_layer_each() -> None:
    layers_126 = SMALL.model_copy(update={"blocks": (SMALL.blocks[0].model_copy(update={"count": 126}),)})
    wide = Limits(accelerators_a_node=8, scale_up_domain=8, max_accelerators=1024)
    stages = np.unique(legal_layouts(layers_126, training(), wide).layouts.pp).tolist()
    assert {8, 16, 32} <= set(stages)
    assert 5 not in stages


def test_pins_leave_only_what_is_pinned() -> None:
    pins = read_pins(["tp=4", "recompute=full", "nodes=2"])
    lay = legal_layouts(SMALL, training(), Limits(8, 8, 64, pins=pins)).layouts
    assert [4] == np.unique(lay.tp).tolist()
    assert [2] == np.unique(lay.recompute).tolist()
    assert [16] == np.unique(lay.tp * lay.cp * lay.pp * lay.dp).tolist()


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
