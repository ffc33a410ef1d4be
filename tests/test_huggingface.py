"""A model's public config.json is read as its makers meant it, and a fault is named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.errors import InputError
from clusterwright.huggingface import model_of, read_config
from clusterwright.huggingface.families import FAMILIES
from clusterwright.model import Attention, Experts, FeedForward, LatentAttention, Model, StateSpace

if TYPE_CHECKING:
    from pathlib import Path

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}
LATENT: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 256,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "q_lora_rank": 96,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "intermediate_size": 1024,
    "moe_intermediate_size": 128,
    "n_routed_experts": 16,
    "n_shared_experts": 2,
    "num_experts_per_tok": 4,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
    "topk_method": "noaux_tc",
    "num_nextn_predict_layers": 1,
    "vocab_size": 1000,
}
HYBRID: dict[str, Any] = {
    "model_type": "nemotron_h",
    "hidden_size": 128,
    "hybrid_override_pattern": "M-M*-E",
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 512,
    "moe_intermediate_size": 64,
    "moe_shared_expert_intermediate_size": 96,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "mamba_num_heads": 8,
    "mamba_head_dim": 32,
    "n_groups": 2,
    "ssm_state_size": 16,
    "conv_kernel": 4,
    "vocab_size": 1000,
}


def model(**fields: Any) -> Model:  # noqa: ANN401 - fields of a config
    return model_of({**LLAMA, **fields}, "m", "config.json")


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        model_of(config, "m", "config.json")
    return str(caught.value)


def outcome(config: dict[str, Any]) -> Model | str:
    """The model, or what the user is told."""
    try:
        return model_of(config, "m", "config.json")
    except InputError as error:
        return str(error)


def attentions(found: Model) -> list[Attention]:
    return [b.mixer for b in found.blocks for _ in range(b.count) if isinstance(b.mixer, Attention)]


def test_llama_is_read_to_the_last_parameter() -> None:
    assert 8_030_261_248 == model().parameters
    assert 131072 == model().max_sequence


def test_a_file_is_read_and_named_after_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "My-Llama" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert ("my-llama", 8_030_261_248) == (read_config(path).name, read_config(str(path)).parameters)


def test_a_file_is_read_and_named_after_itself(tmp_path: Path) -> None:
    path = tmp_path / "meta-llama--Llama-3.1-8B_config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert "llama-3.1-8b" == read_config(path).name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON: line 1, column 2"),
        ("", "not JSON: line 1, column 1"),
        ("[1]", "a JSON object is wanted"),
        ("1" * 5000, "a number too long"),
        ("[" * 100_000, "lists too deep"),
    ],
)
def test_a_file_that_is_no_config_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert told in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_config(tmp_path / "config.json")


@pytest.mark.parametrize(
    "name",
    ["model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"],
)
def test_a_missing_field_is_named(name: str) -> None:
    told = refusal({key: value for key, value in LLAMA.items() if key != name})
    assert told.startswith(f"config.json: {name} is missing; ")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"hidden_size": -5}, "hidden_size is -5; a whole number of 1 or more is wanted"),
        ({"hidden_size": 0}, "hidden_size is 0;"),
        ({"hidden_size": 10**15}, "hidden_size is 1000000000000000; a whole number from 1 to 1099511627776"),
        ({"hidden_size": 4096.5}, "hidden_size is 4096.5;"),
        ({"hidden_size": "4096"}, 'hidden_size is "4096";'),
        ({"hidden_size": True}, "hidden_size is true;"),
        ({"hidden_size": float("inf")}, "hidden_size is Infinity;"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000; a whole number from 1 to 10000"),
        ({"num_attention_heads": 31}, "num_attention_heads is 31; a divisor of hidden_size (4096)"),
        ({"num_key_value_heads": 7}, "num_key_value_heads is 7; a divisor of num_attention_heads (32)"),
        ({"tie_word_embeddings": "yes"}, 'tie_word_embeddings is "yes"; true or false'),
        ({"layer_types": ["full_attention"]}, "a list of 32 entries"),
        ({"model_type": 3}, "model_type is 3;"),
        ({"text_config": 3}, "text_config is 3; an object"),
    ],
)
def test_a_wrong_field_is_named_with_what_would_be_right(fields: dict[str, Any], told: str) -> None:
    assert told in refusal({**LLAMA, **fields})


def test_an_unknown_architecture_is_told_with_the_way_out() -> None:
    told = refusal({**LLAMA, "model_type": "qwen3_next"})
    assert 'model_type "qwen3_next" is not understood' in told
    assert "linear attention" in told
    assert "[[blocks]]" in told
    assert "--catalog" in told


def test_a_near_miss_of_an_architecture_is_told() -> None:
    assert "nearest known: llama" in refusal({**LLAMA, "model_type": "lama"})


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"moe_latent_size": 1024}, "experts on a compressed vector"),
        ({"attn_output_gate": True}, "a gate on the attention's output"),
        ({"layer_types": ["linear_attention"] * 32}, "linear attention"),
    ],
)
def test_what_the_shape_cannot_say_is_refused_and_not_dropped(fields: dict[str, Any], told: str) -> None:
    assert told in refusal({**LLAMA, **fields})


def test_latent_attention_and_a_mixture_are_read() -> None:
    found = model_of(LATENT, "m", "config.json")
    mixer = LatentAttention(heads=8, q_rank=96, kv_rank=64, nope_size=32, rope_size=16, value_size=24)
    experts = Experts(experts=16, top_k=4, ffn=128, shared_ffn=256, router_bias=True)
    assert [(2, mixer, FeedForward(ffn=1024)), (4, mixer, experts)] == [
        (b.count, b.mixer, b.feed) for b in found.blocks
    ]
    assert 1 == found.mtp


def test_a_hybrid_keeps_the_order_of_its_layers() -> None:
    found = model_of(HYBRID, "m", "config.json")
    assert [StateSpace, FeedForward, StateSpace, Attention, FeedForward, Experts] == [
        type(b.mixer or b.feed) for b in found.blocks
    ]
    assert {1} == {b.norms for b in found.blocks}


def test_a_hybrid_of_words_is_the_hybrid_of_letters() -> None:
    words = ["mamba", "mlp", "mamba", "attention", "mlp", "moe"]
    spelt = {**HYBRID, "layers_block_type": words, "hybrid_override_pattern": None}
    assert model_of(HYBRID, "m", "c") == model_of(spelt, "m", "c")


def test_a_hybrid_with_an_unknown_letter_is_refused() -> None:
    assert "holds 'X'" in refusal({**HYBRID, "hybrid_override_pattern": "MX"})


def test_the_text_part_of_a_model_with_eyes_is_read() -> None:
    eyes = {"model_type": "qwen3_vl", "vision_config": {"depth": 24}, "tie_word_embeddings": True}
    text = {**LLAMA, "model_type": "qwen3_vl_text", "head_dim": 128}
    del text["tie_word_embeddings"]
    found = model_of({**eyes, "text_config": text}, "m", "c")
    assert (True, "head") == (found.tied, attentions(found)[0].qk_norm)


def test_the_window_alternates_as_layer_types_say() -> None:
    kinds = ["sliding_attention", "full_attention"] * 16
    assert [128, 0] * 16 == [a.window for a in attentions(model(layer_types=kinds, sliding_window=128))]


def test_qwen_gives_the_first_layers_the_whole_sequence() -> None:
    found = model(model_type="qwen2", sliding_window=4096, use_sliding_window=True, max_window_layers=28)
    assert [0] * 28 + [4096] * 4 == [a.window for a in attentions(found)]


def test_a_window_that_is_switched_off_is_none() -> None:
    found = model(model_type="qwen2", sliding_window=4096, use_sliding_window=False, max_window_layers=0)
    assert {0} == {a.window for a in attentions(found)}


def test_each_fourth_layer_of_llama_4_attends_to_the_whole_sequence() -> None:
    fields = {"num_local_experts": 4, "num_experts_per_tok": 1, "intermediate_size_mlp": 16384}
    found = model(model_type="llama4_text", attention_chunk_size=8192, interleave_moe_layer_step=2, **fields)
    assert [8192, 8192, 8192, 0] * 8 == [a.window for a in attentions(found)]
    feeds = [type(b.feed) for b in found.blocks for _ in range(b.count)]
    assert [FeedForward, Experts] * 16 == feeds


def test_the_heads_of_falcon_follow_its_generation() -> None:
    falcon = {"model_type": "falcon", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8}
    old = model_of({**falcon, "multi_query": True, "vocab_size": 100}, "m", "c")
    new = model_of(
        {**falcon, "multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 2, "vocab_size": 100},
        "m",
        "c",
    )
    assert ((1, 1), (2, 2)) == tuple((attentions(f)[0].kv_heads, f.blocks[0].norms) for f in (old, new))


def test_a_layer_without_attention_is_read() -> None:
    rows = [
        {"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 5.25}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 0.5}},
    ]
    pruned = {"model_type": "nemotron-nas", "hidden_size": 8192, "num_hidden_layers": 2, "num_attention_heads": 64}
    found = model_of({**pruned, "vocab_size": 100, "block_configs": rows}, "m", "c")
    assert [(8, 28672), (None, 2816)] == [
        (b.mixer.kv_heads if isinstance(b.mixer, Attention) else None, b.feed.ffn if b.feed else 0)
        for b in found.blocks
    ]


def test_learned_positions_count_where_there_is_no_alibi() -> None:
    mpt = {"model_type": "mpt", "d_model": 64, "n_layers": 1, "n_heads": 4, "vocab_size": 10, "max_seq_len": 32}
    with_alibi = model_of({**mpt, "no_bias": True, "attn_config": {"alibi": True, "model_type": ""}}, "m", "c")
    without = model_of({**mpt, "no_bias": True, "attn_config": {"alibi": False}}, "m", "c")
    assert (0, 32) == (with_alibi.positions, without.positions)
    assert 32 * 64 == without.parameters - with_alibi.parameters


junk = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just([]), st.just({}), st.just([[]]),
    st.lists(st.one_of(st.integers(), st.text(max_size=2), st.none()), max_size=3), st.just(float("nan")),
)  # fmt: skip
keys = st.sampled_from(sorted({*LLAMA, *LATENT, *HYBRID, "layer_types", "sliding_window", "head_dim", "text_config"}))


@given(base=st.sampled_from([LLAMA, LATENT, HYBRID]), wrong=st.dictionaries(keys, junk, min_size=1, max_size=3))
def test_any_config_is_a_model_or_a_named_fault(base: dict[str, Any], wrong: dict[str, Any]) -> None:
    found = outcome({**base, **wrong})
    assert found.startswith("config.json: ") if isinstance(found, str) else found.parameters > 0


@given(kind=st.sampled_from(sorted(FAMILIES)), extra=st.dictionaries(keys, junk, max_size=2))
def test_any_architecture_is_a_model_or_a_named_fault(kind: str, extra: dict[str, Any]) -> None:
    found = outcome({**HYBRID, **LLAMA, **extra, "model_type": kind})
    assert found.startswith("config.json: ") if isinstance(found, str) else found.layers > 0


def test_the_rotary_base_is_read_under_its_own_name_or_with_the_other_parameters() -> None:
    assert model_of({**LLAMA, "rope_theta": 500000.0}, "mine", "config.json").rotary_base == 500000.0
    assert model_of({**LLAMA, "rope_parameters": {"rope_theta": 1e6}}, "mine", "config.json").rotary_base == 1e6
    with pytest.raises(InputError, match="rope_theta"):
        model_of({**LLAMA, "rope_theta": "big"}, "mine", "config.json")
