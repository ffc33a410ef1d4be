"""Megatron-LM: the shape of a network as its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Setting
from clusterwright.model import Attention, Experts, FeedForward, LatentAttention

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job


def one(flag: str, value: object, why: str) -> Setting:
    """An option with its value."""
    return Setting(flag, str(value), why)


def switch(flag: str, why: str) -> Setting:
    """An option without a value."""
    return Setting(flag, None, why)


def shape(job: Job) -> list[Setting]:
    """Layers, width, positions, norms."""
    model = job.model
    found = [
        one("--num-layers", model.layers, "[model.blocks]"),
        one("--hidden-size", model.hidden, "[model.hidden]"),
        one(
            "--normalization",
            "LayerNorm" if model.norm_bias else "RMSNorm",
            "norms with a bias are LayerNorm, without RMSNorm [model.norm_bias]",
        ),
    ]
    if not model.tied:
        found.append(
            switch("--untie-embeddings-and-output-weights", "the output head has its own weights [model.tied]")
        )
    if model.positions:
        found.append(
            one("--position-embedding-type", "learned_absolute", "a learned vector for each position [model.positions]")
        )
    else:
        found.append(one("--position-embedding-type", "rope", "rotary: no position has weights [model.positions]"))
        base = job.get("rotary_base")
        if base is not None:
            found.append(one("--rotary-base", base, base.why))
        elif model.rotary_base is not None:
            found.append(
                one("--rotary-base", int(model.rotary_base), "as the model's config has it [model.rotary_base]")
            )
    if model.mtp:
        found.append(one("--mtp-num-layers", model.mtp, "modules that predict further tokens [model.mtp]"))
    biased = any(isinstance(b.feed, FeedForward) and b.feed.bias for b in model.blocks) or model.head_bias
    if not biased:
        found.append(switch("--disable-bias-linear", "the linear layers have no bias [model.blocks]"))
    return found


def mixer(job: Job) -> list[Setting]:
    """Heads of attention."""
    heads = job.model.blocks[0].mixer
    found = [one("--num-attention-heads", job.model.heads, "[model.blocks.mixer.heads]")]
    if isinstance(heads, LatentAttention):
        found += [
            switch("--multi-latent-attention", "keys and values are compressed [model.blocks.mixer.kind]"),
            one("--kv-lora-rank", heads.kv_rank, "[model.blocks.mixer.kv_rank]"),
            one("--qk-head-dim", heads.nope_size, "[model.blocks.mixer.nope_size]"),
            one("--qk-pos-emb-head-dim", heads.rope_size, "[model.blocks.mixer.rope_size]"),
            one("--v-head-dim", heads.value_size, "[model.blocks.mixer.value_size]"),
            switch("--qk-layernorm", "norms on the compressed vectors [model.blocks.mixer.kind]"),
        ]
        return [*found, one("--q-lora-rank", heads.q_rank, "[model.blocks.mixer.q_rank]")] if heads.q_rank else found
    if not isinstance(heads, Attention):
        return found
    if heads.kv_heads != heads.heads:
        found += [
            switch("--group-query-attention", "several query heads share a key head [model.blocks.mixer.kv_heads]"),
            one("--num-query-groups", heads.kv_heads, "[model.blocks.mixer.kv_heads]"),
        ]
    if heads.head_size * heads.heads != job.model.hidden:
        found.append(
            one("--kv-channels", heads.head_size, "a head is not hidden / heads wide [model.blocks.mixer.head_size]")
        )
    if heads.qkv_bias:
        found.append(switch("--add-qkv-bias", "[model.blocks.mixer.qkv_bias]"))
    if heads.qk_norm == "head":
        found.append(switch("--qk-layernorm", "query and key are normalized by head [model.blocks.mixer.qk_norm]"))
    if heads.sinks:
        found.append(one("--softmax-type", "learnable", "one learned logit a head [model.blocks.mixer.sinks]"))
    return found


def feed(job: Job) -> list[Setting]:
    """Feed-forward parts and experts."""
    blocks = job.model.blocks
    dense = next((b.feed for b in blocks if isinstance(b.feed, FeedForward)), None)
    moe = next((b.feed for b in blocks if isinstance(b.feed, Experts)), None)
    found = []
    width = dense.ffn if dense else moe.ffn if moe else 0
    found.append(one("--ffn-hidden-size", width, "width of the dense feed-forward part [model.blocks.feed.ffn]"))
    if (dense or moe) and (dense.gated if dense else moe.gated if moe else False):
        found.append(switch("--swiglu", "the feed-forward part is gated [model.blocks.feed.gated]"))
    if moe is None:
        return found
    found += [
        one("--num-experts", moe.experts, "[model.blocks.feed.experts]"),
        one("--moe-router-topk", moe.top_k, "experts that a token meets [model.blocks.feed.top_k]"),
        one("--moe-ffn-hidden-size", moe.ffn, "width of one expert [model.blocks.feed.ffn]"),
        switch(
            "--moe-grouped-gemm",
            "one product for all experts of a rank, as the estimate counts [model.blocks.feed.experts]",
        ),
        one("--moe-token-dispatcher-type", "alltoall", "tokens go to the rank of their expert [chosen.layout.ep]"),
    ]
    if moe.top_k == 1:
        found.append(
            switch(
                "--moe-router-pre-softmax",
                "Megatron asks for it: after the choice of one, a softmax is 1 [model.blocks.feed.top_k]",
            )
        )
    if moe.shared_ffn:
        found.append(
            one(
                "--moe-shared-expert-intermediate-size",
                moe.shared_ffn,
                "all shared experts together [model.blocks.feed.shared_ffn]",
            )
        )
    if moe.shared_gate:
        found.append(switch("--moe-shared-expert-gate", "[model.blocks.feed.shared_gate]"))
    if dense is not None:
        pattern = "+".join(f"[{int(isinstance(b.feed, Experts))}]*{b.count}" for b in blocks)
        found.append(
            one("--moe-layer-freq", f"({pattern})", "which layers have experts, from the first [model.blocks]")
        )
    return found
