"""The layers that a config describes, in order."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from clusterwright.errors import InputError
from clusterwright.huggingface.fields import EXPERTS, FFN, HEADS, HIDDEN, KV_HEADS, TOP_K, Fields
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, StateSpace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.huggingface.families import Family

Mixer = Attention | LatentAttention | StateSpace | None
Feed = FeedForward | Experts | None
Layer = tuple[Mixer, Feed]


def blocks_of(fields: Fields, family: Family) -> tuple[Block, ...]:
    """Runs of equal layers, from the first to the last.

    Raises:
        InputError: a field is missing or wrong.
        ValidationError: a value is not in its range.
    """
    layers = {"plain": _plain, "hybrid": _hybrid, "mamba": _mamba, "pruned": _pruned}[family.layers](fields, family)
    return _runs(layers, family, fields)


def _runs(layers: Iterable[Layer], family: Family, fields: Fields) -> tuple[Block, ...]:
    norms = _norms(family, fields)
    blocks = []
    for (mixer, feed), run in groupby(layers):
        parts = (mixer is not None) + (feed is not None)
        if parts:
            blocks.append(Block(count=len(list(run)), mixer=mixer, feed=feed, norms=norms if parts > 1 else norms // 2))
    return tuple(blocks)


def _norms(family: Family, fields: Fields) -> int:
    """Norms of a layer; Falcon's depends on how attention and feed-forward part stand beside each other."""
    if family.bias_field != "bias":
        return family.norms
    if fields.flag("new_decoder_architecture", default=False):
        return fields.count("num_ln_in_parallel_attn", default=2)
    return 1 if fields.flag("parallel_attn", default=True) else 2


def _plain(fields: Fields, family: Family) -> list[Layer]:
    """Attention and a feed-forward part in each layer, dense or of experts."""
    depth = fields.depth()
    return list(zip(_attentions(fields, family, depth), _feeds(fields, family, depth), strict=True))


def _attentions(fields: Fields, family: Family, depth: int) -> list[Mixer]:
    heads = fields.count(*HEADS)
    hidden = fields.count(*HIDDEN)
    if fields.values.get("kv_lora_rank") is not None:
        return [_latent(fields, heads)] * depth
    if fields.values.get("head_dim") is None and hidden % heads:
        raise fields.bad(fields.named(HEADS), f"a divisor of {fields.named(HIDDEN)} ({hidden}), or head_dim,")
    bias = fields.flag(family.bias_field, default=False) and not fields.flag("no_bias", default=False)
    bias = bias or (family.bias_field == "no_bias" and not fields.flag("no_bias", default=False))
    kv_heads = _kv_heads(fields, heads)
    if heads % kv_heads:
        raise fields.bad(fields.named(KV_HEADS), f"a divisor of {fields.named(HEADS)} ({heads})")
    shape = {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_size": fields.count("head_dim", default=hidden // heads),
        "qkv_bias": family.qkv_bias or bias,
        "out_bias": family.out_bias or (bias and not family.qkv_bias),
        "qk_norm": _qk_norm(fields, family),
        "sinks": "gpt_oss" in str(fields.values.get("model_type")),
    }
    made = {window: Attention.model_validate({**shape, "window": window}) for window in (0, _window(fields, family))}
    return [made[window] for window in _windows(fields, family, depth)]


def _kv_heads(fields: Fields, heads: int) -> int:
    grouped = fields.flag("new_decoder_architecture", default=True)
    if fields.flag("multi_query", default=False) and not (grouped and "new_decoder_architecture" in fields.values):
        return 1
    return fields.count(*KV_HEADS, default=heads)


def _qk_norm(fields: Fields, family: Family) -> str:
    if fields.values.get("qk_norm_type") == "per_layer":
        return "full"
    if family.qk_norm == "none" or not fields.flag("use_qk_norm", default=True):
        return "none"
    return family.qk_norm


def _latent(fields: Fields, heads: int) -> LatentAttention:
    return LatentAttention(
        heads=heads,
        q_rank=fields.count("q_lora_rank", default=0),
        kv_rank=fields.count("kv_lora_rank"),
        nope_size=fields.count("qk_nope_head_dim"),
        rope_size=fields.count("qk_rope_head_dim"),
        value_size=fields.count("v_head_dim"),
    )


def _window(fields: Fields, family: Family) -> int:
    if not fields.flag("use_sliding_window", default=True):
        return 0
    return fields.count(family.window_field, default=0, least=0)


def _windows(fields: Fields, family: Family, depth: int) -> list[int]:
    """The window of each layer [tokens]; 0: the whole sequence."""
    window = _window(fields, family)
    kinds = fields.rows("layer_types", depth)
    if kinds is not None:
        return [0 if kind == "full_attention" else window for kind in kinds]
    ropes = fields.rows("no_rope_layers", depth) if fields.values.get("no_rope_layers") else None
    if ropes is not None:
        return [window if rope else 0 for rope in ropes]
    period = fields.count("sliding_window_pattern", default=family.every_full, least=0)
    if period:
        return [window if (layer + 1) % period else 0 for layer in range(depth)]
    # Qwen lets the first layers attend to the whole sequence.
    first = fields.count("max_window_layers", default=0, least=0)
    return [window if layer >= first else 0 for layer in range(depth)]


def _feeds(fields: Fields, family: Family, depth: int) -> list[Feed]:
    experts = _experts(fields, family)
    if experts is None:
        return [_dense(fields, family)] * depth
    sparse = _sparse(fields, depth)
    dense = None if all(sparse) else _dense(fields, family)
    return [experts if has else dense for has in sparse]


def _dense(fields: Fields, family: Family) -> FeedForward:
    hidden = fields.count(*HIDDEN)
    ratio = fields.count("expansion_ratio", default=4)
    width = None if family.gated else ratio * hidden
    wide = [name for name in ("intermediate_size_mlp", "dense_intermediate_size") if name in fields.values] or FFN
    bias = fields.flag("mlp_bias", default=family.ffn_bias) or fields.flag("use_bias", default=False)
    bias = bias or (family.bias_field == "bias" and fields.flag("bias", default=False))
    bias = bias and not fields.flag("no_bias", default=False)
    return FeedForward(ffn=fields.count(*wide, default=width), gated=family.gated, bias=bias)


def _experts(fields: Fields, family: Family) -> Experts | None:
    count = fields.count(*EXPERTS, default=0, least=0)
    if not count:
        return None
    ffn = fields.count("moe_intermediate_size", *FFN)
    shared = fields.count("n_shared_experts", "num_shared_experts", default=0, least=0) * ffn
    shared = fields.count(
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", default=shared, least=0
    )
    kind = str(fields.values.get("model_type"))
    return Experts(
        experts=count,
        top_k=fields.count(*TOP_K),
        ffn=ffn,
        shared_ffn=ffn if kind.startswith("llama4") else shared,
        gated=family.gated,
        bias="gpt_oss" in kind,
        router_bias="gpt_oss" in kind or _balanced_by_bias(fields, kind),
        shared_gate=kind == "qwen2_moe",
    )


def _balanced_by_bias(fields: Fields, kind: str) -> bool:
    """Whether each expert has a learned correction of its score (DeepSeek V3's balance without a loss)."""
    return (
        fields.values.get("topk_method") == "noaux_tc"
        or fields.flag("use_routing_bias", default=False)
        or kind in {"glm4_moe", "nemotron_h"}
    )


def _sparse(fields: Fields, depth: int) -> list[bool]:
    """Which layers have experts."""
    pattern = fields.values.get("moe_layer_freq")
    if isinstance(pattern, list):
        return [bool(has) for has in fields.rows("moe_layer_freq", depth) or ()]
    first = fields.count("first_k_dense_replace", default=0, least=0)
    step = fields.count("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", default=1)
    dense = fields.values.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise fields.bad("mlp_only_layers", "a list of layers")
    shift = 0 if fields.values.get("moe_layer_freq") is not None else 1
    return [layer >= first and (layer + shift) % step == 0 and layer not in dense for layer in range(depth)]


def _state_space(fields: Fields) -> StateSpace:
    return StateSpace(
        heads=fields.count("mamba_num_heads", "num_heads"),
        head_size=fields.count("mamba_head_dim", "head_dim"),
        groups=fields.count("n_groups"),
        state=fields.count("ssm_state_size", "state_size"),
        convolution=fields.count("conv_kernel"),
    )


def _hybrid(fields: Fields, family: Family) -> list[Layer]:
    """Nemotron-H: each layer is a mixer or a feed-forward part."""
    words = fields.values.get("layers_block_type") or fields.values.get("hybrid_override_pattern")
    if not isinstance(words, str | list) or not all(isinstance(word, str) for word in words):
        raise fields.bad("hybrid_override_pattern", "one letter a layer: M, *, - or E,")
    made: dict[str, Layer] = {}
    for word in set(words):
        if word in {"M", "mamba"}:
            made[word] = (_state_space(fields), None)
        elif word in {"*", "attention"}:
            size = fields.count("head_dim", "attention_head_dim", default=0, least=0) or None
            plain = Fields({**fields.values, "head_dim": size}, fields.where)
            made[word] = (_attentions(plain, family, 1)[0], None)
        elif word in {"-", "mlp"}:
            made[word] = (None, _dense(fields, family))
        elif word in {"E", "moe"}:
            made[word] = (None, _experts(fields, family))
        else:
            raise InputError(f"{fields.where}: hybrid_override_pattern holds {word!r}; M, *, - or E is wanted")
    return [made[word] for word in words]


def _mamba(fields: Fields, family: Family) -> list[Layer]:
    """Mamba-2 alone: no feed-forward part."""
    del family
    return [(_state_space(fields), None)] * fields.depth()


def _pruned(fields: Fields, family: Family) -> list[Layer]:
    """Nemotron of the architecture search: each layer has its own width, or lacks its attention."""
    heads, hidden, depth = fields.count(*HEADS), fields.count(*HIDDEN), fields.depth()
    rows = fields.rows("block_configs", depth)
    if rows is None:
        raise fields.bad("block_configs", f"a list of {depth} entries, one a layer,")
    layers: list[Layer] = []
    for row in rows:
        try:
            attention, ffn = Fields(row["attention"], fields.where), Fields(row["ffn"], fields.where)
            if row["attention"].get("replace_with_linear") or row["ffn"].get("replace_with_linear"):
                raise fields.missing("block_configs", "replace_with_linear")
            mixer: Mixer = None
            if not attention.flag("no_op", default=False):
                share = attention.count("n_heads_in_group")
                mixer = Attention(heads=heads, kv_heads=max(1, heads // share), head_size=hidden // heads)
            feed: Feed = None
            if not ffn.flag("no_op", default=False):
                width = int(2 * row["ffn"]["ffn_mult"] * hidden / 3)
                feed = FeedForward(ffn=-(-width // 256) * 256, gated=family.gated)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
            raise fields.bad("block_configs", "attention and ffn (with ffn_mult) in each entry") from None
        layers.append((mixer, feed))
    return layers
