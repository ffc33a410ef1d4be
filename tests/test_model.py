"""Parameter counts from the shape alone, held against the counts of the published checkpoints."""

from __future__ import annotations

from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, Model

LLAMA_3_8B = Model(
    name="llama-3-8b",
    hidden=4096,
    vocab=128256,
    blocks=(
        Block(count=32, mixer=Attention(heads=32, kv_heads=8, head_size=128), feed=FeedForward(ffn=14336)),
    ),
)  # fmt: skip
GPT_2 = Model(
    name="gpt-2",
    hidden=768,
    vocab=50257,
    blocks=(
        Block(
            count=12,
            mixer=Attention(heads=12, kv_heads=12, head_size=64, qkv_bias=True, out_bias=True),
            feed=FeedForward(ffn=3072, gated=False, bias=True),
        ),
    ),
    tied=True,
    norm_bias=True,
    positions=1024,
)
MIXTRAL = Model(
    name="mixtral-8x7b",
    hidden=4096,
    vocab=32000,
    blocks=(
        Block(
            count=32,
            mixer=Attention(heads=32, kv_heads=8, head_size=128),
            feed=Experts(experts=8, top_k=2, ffn=14336),
        ),
    ),
)
LATENT = LatentAttention(heads=128, q_rank=1536, kv_rank=512, nope_size=128, rope_size=64, value_size=128)
DEEPSEEK_V3 = Model(
    name="deepseek-v3",
    hidden=7168,
    vocab=129280,
    blocks=(
        Block(count=3, mixer=LATENT, feed=FeedForward(ffn=18432)),
        Block(
            count=58,
            mixer=LATENT,
            feed=Experts(experts=256, top_k=8, ffn=2048, shared_ffn=2048, router_bias=True),
        ),
    ),
)


def test_a_dense_model_has_the_parameters_of_its_checkpoint() -> None:
    assert LLAMA_3_8B.parameters == 8_030_261_248
    assert LLAMA_3_8B.parameters == LLAMA_3_8B.active_parameters


def test_biases_positions_and_a_tied_head_are_counted_once() -> None:
    assert GPT_2.parameters == 124_439_808
    assert GPT_2.head_parameters == 0


def test_a_mixture_has_the_parameters_of_its_checkpoint_and_uses_a_part() -> None:
    assert MIXTRAL.parameters == 46_702_792_704
    per_expert = 3 * 4096 * 14336
    assert MIXTRAL.parameters - MIXTRAL.active_parameters == 32 * 6 * per_expert
    assert MIXTRAL.expert_parameters == 32 * 8 * per_expert


def test_latent_attention_and_shared_experts_are_counted() -> None:
    assert DEEPSEEK_V3.parameters == 671_026_419_200
    assert round(DEEPSEEK_V3.active_parameters / 1e9) == 38  # 37 published, which leave out the embedding


def test_what_layouts_must_divide_is_the_least_of_the_layers() -> None:
    assert (61, 256, 128) == (DEEPSEEK_V3.layers, DEEPSEEK_V3.experts, DEEPSEEK_V3.heads)
    assert (32, 0, 32) == (LLAMA_3_8B.layers, LLAMA_3_8B.experts, LLAMA_3_8B.heads)
