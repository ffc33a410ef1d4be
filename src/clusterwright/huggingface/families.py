"""What each ``model_type`` implies that its config does not say, as data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Family:
    """What a ``model_type`` implies that its config does not say."""

    gated: bool = True
    qkv_bias: bool = False
    """Of query, key and value, whatever the config says."""
    out_bias: bool = False
    ffn_bias: bool = False
    norm_bias: bool = False
    head_bias: bool = False
    embedding_norm: bool = False
    qk_norm: str = "none"
    norms: int = 2
    tied: bool = False
    """Where the config does not say."""
    bias_field: str = "attention_bias"
    """The field that puts a bias on all attention projections."""
    learned_positions: int | None = None
    """Learned position embeddings: how many more than the config names."""
    every_full: int = 0
    """Each so many-th layer attends to the whole sequence, the others to a window (0: no such pattern)."""
    window_field: str = "sliding_window"
    defaults: dict[str, Any] = field(default_factory=dict)
    layers: Literal["plain", "hybrid", "mamba", "pruned"] = "plain"


BIASED = Family(gated=False, qkv_bias=True, out_bias=True, ffn_bias=True, norm_bias=True)
LLAMA = Family()
QWEN2 = Family(qkv_bias=True)
QWEN3 = Family(qk_norm="head")
OLMO = Family(qk_norm="full")
GPT2 = replace(BIASED, learned_positions=0, tied=True)
GEMMA3 = Family(
    qk_norm="head",
    norms=4,
    tied=True,
    every_full=6,
    defaults={
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
)
LLAMA4 = Family(every_full=4, window_field="attention_chunk_size")
COHERE = Family(norms=1, tied=True, qk_norm="full", defaults={"use_qk_norm": False})

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "mistral3": LLAMA,
    "mixtral": LLAMA,
    "internlm2": Family(bias_field="bias_of_internlm2"),
    "phi3": LLAMA,
    "deepseek_v2": LLAMA,
    "deepseek_v3": LLAMA,
    "kimi_k2": LLAMA,
    "minimax_m2": LLAMA,
    "qwen2": QWEN2,
    "mimo": QWEN2,
    "qwen2_moe": QWEN2,
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3,
    "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe_text": QWEN3,
    "glm4_moe": Family(qk_norm="head", defaults={"use_qk_norm": False}),
    "olmo2": OLMO,
    "olmoe": OLMO,
    "gemma": Family(tied=True),
    "gemma2": Family(norms=4, tied=True, every_full=2),
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "gpt_oss": Family(every_full=2),
    "llama4": LLAMA4,
    "llama4_text": LLAMA4,
    "cohere": COHERE,
    "cohere2": COHERE,
    "phimoe": Family(norm_bias=True),
    "grok-1": Family(norms=4, tied=True),
    "dbrx": LLAMA,
    "nemotron": Family(gated=False, norm_bias=True),
    "starcoder2": Family(gated=False, norm_bias=True, bias_field="use_bias"),
    "falcon": Family(gated=False, norm_bias=True, tied=True, bias_field="bias", defaults={"multi_query": True}),
    "mpt": Family(gated=False, norm_bias=True, ffn_bias=True, tied=True, learned_positions=0, bias_field="no_bias"),
    "bloom": replace(BIASED, embedding_norm=True, tied=True),
    "gpt2": GPT2,
    "gpt_bigcode": GPT2,
    "opt": replace(BIASED, learned_positions=2, tied=True),
    "gptj": Family(gated=False, ffn_bias=True, norm_bias=True, head_bias=True, norms=1),
    "gpt_neox": BIASED,
    "phi": replace(BIASED, head_bias=True, norms=1),
    "mamba2": Family(tied=True, layers="mamba"),
    "nemotron_h": Family(gated=False, layers="hybrid"),
    "nemotron-nas": Family(layers="pruned"),
}
"""What is known of each ``model_type``."""

UNBOUNDED = frozenset({"mamba2"})
REFUSED_FIELDS = {
    "moe_latent_size": "experts on a compressed vector",
    "attn_output_gate": "a gate on the attention's output",
    "linear_attn_config": "linear attention",
    "swa_num_attention_heads": "attention of two shapes",
    "index_n_heads": "an index that chooses the keys (sparse attention)",
    "attention_k_eq_v": "keys shared with values",
}
NOT_MODELLED = {
    "qwen3_5_text": "linear attention (gated delta rule) is missing",
    "qwen3_5_moe_text": "linear attention (gated delta rule) is missing",
    "qwen3_next": "linear attention (gated delta rule) is missing",
    "deepseek_v32": "an index that chooses the keys (sparse attention) is missing",
    "deepseek_v4": "compressed sparse attention and hyper-connections are missing",
    "glm_moe_dsa": "an index that chooses the keys (sparse attention) is missing",
    "gemma4_text": "attention of two shapes, with keys shared with values, is missing",
    "mimo_v2_flash": "attention whose values are narrower than its keys is missing",
    "minimax_m3": "an index that chooses the keys (sparse attention) is missing",
    "mamba": "the first Mamba's mixer is missing",
    "jamba": "the first Mamba's mixer is missing",
    "t5": "an encoder beside the decoder is missing",
}
