from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterwright.emitters import emit
from clusterwright.emitters.programs.megatron import _stages
from clusterwright.layout import Layout
from clusterwright.model import Attention, Block, Experts, FeedForward, Model, StateSpace
from tests.emitters.plans import DEEPSEEK, LAYOUT, LLAMA_8B, LLAMA_70B, LLAMA_405B, MIXTRAL, dense, make_plan
from tests.emitters.readers import megatron_arguments

OPTIONS = json.loads((Path(__file__).parent / "data" / "megatron_options.json").read_text("utf-8"))["options"]
KINDS = {"int": int, "float": float}
PLANS = {
    "llama-70b": make_plan(),
    "llama-8b": make_plan(Layout(dp=8, sharding="fsdp", global_batch=64), model=LLAMA_8B),
    "llama-8b-zero2": make_plan(
        Layout(tp=2, dp=4, sharding="zero2", global_batch=64, recompute="full"), model=LLAMA_8B
    ),
    "llama-8b-fp8": make_plan(Layout(tp=2, dp=4, global_batch=64, precision="fp8"), model=LLAMA_8B),
    "llama-8b-mxfp8": make_plan(Layout(tp=2, dp=4, global_batch=64, precision="mxfp8"), model=LLAMA_8B),
    "llama-8b-nvfp4": make_plan(Layout(tp=2, dp=4, global_batch=64, precision="nvfp4"), model=LLAMA_8B),
    "llama-8b-fp16": make_plan(Layout(tp=2, dp=4, global_batch=64, precision="fp16"), model=LLAMA_8B),
    "llama-405b": make_plan(
        Layout(tp=8, pp=16, vpp=4, dp=2, cp=2, sharding="distopt", global_batch=512, recompute="selective"),
        model=LLAMA_405B,
    ),
    "deepseek": make_plan(
        Layout(tp=2, pp=8, ep=16, dp=16, sharding="distopt", global_batch=512, recompute="full"), model=DEEPSEEK
    ),
    "mixtral": make_plan(Layout(tp=2, ep=8, dp=8, sharding="zero1", global_batch=128), model=MIXTRAL),
    "odd-layers": make_plan(Layout(tp=4, pp=4, dp=2, global_batch=32), model=dense("odd", 61, 4096, 32, 32, 11008)),
    "gpt": make_plan(
        Layout(tp=4, dp=2, global_batch=32),
        model=Model(
            name="gpt",
            hidden=2048,
            vocab=50257,
            tied=True,
            norm_bias=True,
            positions=2048,
            blocks=(
                Block(
                    count=24,
                    mixer=Attention(heads=16, kv_heads=16, head_size=128, qkv_bias=True, out_bias=True),
                    feed=FeedForward(ffn=8192, gated=False, bias=True),
                ),
            ),
        ),
        training={"sequence_length": 2048},
    ),
}


def arguments_of(name: str) -> dict[str, str | None]:
    return megatron_arguments(emit(PLANS[name], "megatron").files["launch.sh"])


@pytest.mark.parametrize("name", PLANS)
def test_every_option_is_one_of_megatron_and_its_value_is_of_its_type(name: str) -> None:
    found = arguments_of(name)
    assert [] == [option for option in found if option not in OPTIONS]
    for option, value in found.items():
        known = OPTIONS[option]
        assert known.get("switch", False) == (value is None), option
        if value is not None:
            KINDS.get(known.get("type", ""), str)(value)
            assert value in known.get("choices", [value]), option


@pytest.mark.parametrize("name", PLANS)
def test_the_degrees_and_batches_are_those_of_the_plan(name: str) -> None:
    chosen = PLANS[name].chosen
    assert chosen is not None
    layout, found = chosen.layout, arguments_of(name)
    flags = {
        "--tensor-model-parallel-size": layout.tp,
        "--context-parallel-size": layout.cp,
        "--pipeline-model-parallel-size": layout.pp,
        "--expert-model-parallel-size": layout.ep,
        "--micro-batch-size": layout.micro_batch,
        "--global-batch-size": layout.global_batch,
    }
    assert flags == {flag: int(found.get(flag) or 1) for flag in flags}


@pytest.mark.parametrize("name", PLANS)
def test_the_layers_divide_over_the_stages_or_are_placed_by_a_layout(name: str) -> None:
    plan, found = PLANS[name], arguments_of(name)
    assert plan.chosen is not None
    layout, layers = plan.chosen.layout, plan.model.layers
    if "--pipeline-model-parallel-layout" in found:
        text = str(found["--pipeline-model-parallel-layout"])
        assert layers == text.count("t")
        assert layout.pp * layout.vpp == len(text.split("|"))
        assert "--num-virtual-stages-per-pipeline-rank" not in found
    else:
        counted = layers + 2 * ("--account-for-embedding-in-pipeline-split" in found)
        assert 0 == counted % (layout.pp * layout.vpp)


@pytest.mark.parametrize("name", PLANS)
def test_options_that_need_one_another_come_together(name: str) -> None:
    found, text = arguments_of(name), emit(PLANS[name], "megatron").files["launch.sh"]
    together = [
        ("--overlap-param-gather", "--overlap-grad-reduce"),
        ("--overlap-param-gather", "--use-distributed-optimizer"),
        ("--recompute-method", "--recompute-num-layers"),
        ("--expert-model-parallel-size", "--num-experts"),
    ]
    assert [] == [pair for pair in together if pair[0] in found and pair[1] not in found]
    assert ("--sequence-parallel" in found) == (int(found["--tensor-model-parallel-size"] or 1) > 1)
    assert (found.get("--recompute-granularity") == "full") == ("--recompute-method" in found)
    if "--use-megatron-fsdp" in found:
        assert "fsdp_dtensor" == found["--ckpt-format"]
        assert "CUDA_DEVICE_MAX_CONNECTIONS" not in text
    elif "--sequence-parallel" in found:
        assert "export CUDA_DEVICE_MAX_CONNECTIONS=1" in text


def test_a_mixture_of_experts_says_its_whole_shape() -> None:
    found = arguments_of("deepseek")
    expected = {
        "--num-experts": "256",
        "--moe-router-topk": "8",
        "--moe-ffn-hidden-size": "2048",
        "--moe-shared-expert-intermediate-size": "2048",
        "--moe-layer-freq": "([0]*3+[1]*58)",
        "--ffn-hidden-size": "18432",
        "--q-lora-rank": "1536",
        "--kv-lora-rank": "512",
        "--qk-head-dim": "128",
        "--qk-pos-emb-head-dim": "64",
        "--v-head-dim": "128",
        "--mtp-num-layers": "1",
        "--expert-tensor-parallel-size": "1",
    }
    assert expected == {flag: found.get(flag) for flag in expected}


def test_the_rank_map_is_that_of_the_layout() -> None:
    rows = emit(make_plan(), "megatron").files["ranks.tsv"].splitlines()
    assert "rank\tnode\tlocal_rank\ttp\tcp\tdp\tpp" == rows[0]
    read = [[int(cell) for cell in row.split("\t")] for row in rows[1:]]
    assert list(range(64)) == [LAYOUT.rank_of(tp=r[3], cp=r[4], dp=r[5], pp=r[6]) for r in read]
    assert [(rank // 8, rank % 8) for rank in range(64)] == [(r[1], r[2]) for r in read]


def test_uneven_stages_hold_every_layer_and_the_ends_hold_least() -> None:
    stages = _stages(61, 4).split("|")
    assert [15, 16, 15, 15] == [stage.count("t") for stage in stages]
    assert ("E", "L") == (stages[0][0], stages[-1][-1])


@pytest.mark.parametrize(
    ("layout", "training", "word"),
    [
        (Layout(tp=8, pp=4, vpp=5, dp=2, global_batch=6), {}, "vpp"),
        (Layout(tp=1, cp=3, dp=8, global_batch=8), {}, "cp"),
        (Layout(tp=8, dp=8, global_batch=9), {}, "global_batch"),
        (Layout(tp=8, dp=8, ep=8, global_batch=64), {}, "ep"),
        (Layout(tp=8, pp=2, dp=4, global_batch=64, sharding="zero3"), {}, "zero3"),
        (Layout(tp=8, dp=8, global_batch=64), {"method": "lora"}, "lora"),
    ],
)
def test_what_megatron_would_refuse_is_said_and_not_written(
    layout: Layout, training: dict[str, str], word: str
) -> None:
    bundle = emit(make_plan(layout, training=training), "megatron")
    assert {} == bundle.files
    assert [] != [u for u in bundle.unsupported if word in u.what]


def test_key_heads_that_tensor_ranks_cannot_share_are_said() -> None:
    bundle = emit(make_plan(model=dense("ten", 40, 5120, 40, 10, 17920)), "megatron")
    assert {} == bundle.files
    assert ["tp"] == [u.what for u in bundle.unsupported]
    assert (
        {}
        != emit(
            make_plan(Layout(tp=2, dp=4, global_batch=8), model=dense("ten", 40, 5120, 40, 10, 17920)), "megatron"
        ).files
    )


def test_a_choice_of_one_expert_is_made_after_the_softmax() -> None:
    feed = Experts(experts=8, top_k=1, ffn=14336)
    one = MIXTRAL.model_copy(update={"blocks": (MIXTRAL.blocks[0].model_copy(update={"feed": feed}),)})
    layout = Layout(tp=2, ep=8, dp=8, global_batch=128)
    found = megatron_arguments(emit(make_plan(layout, model=one), "megatron").files["launch.sh"])
    assert "--moe-router-pre-softmax" in found
    assert "--moe-router-pre-softmax" not in arguments_of("mixtral")


def test_a_hybrid_network_is_said_to_need_another_program() -> None:
    mamba = Block(count=2, mixer=StateSpace(heads=8, head_size=64, groups=8, state=128, convolution=4))
    model = LLAMA_70B.model_copy(update={"blocks": (*LLAMA_70B.blocks, mamba)})
    bundle = emit(make_plan(model=model), "megatron")
    assert {} == bundle.files
    assert ["model shape"] == [u.what for u in bundle.unsupported][:1]


def test_a_learning_rate_that_nobody_chose_is_announced() -> None:
    assert "learning rate" in [u.what for u in emit(make_plan(), "megatron").unsupported]
    bundle = emit(make_plan(), "megatron", {"lr": "2e-4"})
    assert "learning rate" not in [u.what for u in bundle.unsupported]
    assert "2e-4" == megatron_arguments(bundle.files["launch.sh"])["--lr"]
