"""A model's public ``config.json`` (Hugging Face) -> Model. Text only: vision and audio are not counted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clusterwright.errors import InputError, nearest
from clusterwright.files import read_text
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, Model, StateSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

Mixer = Attention | LatentAttention | StateSpace | None
Feed = FeedForward | Experts | None
Layer = tuple[Mixer, Feed]

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "kv_n_heads")
FFN = ("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")
EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "experts_per_token", "moe_top_k", "num_selected_experts")
BY_HAND = (
    "write its shape by hand as a model TOML: name, hidden, vocab and blocks = [[count, mixer, feed]]"
    ' with mixer.kind "attention", "latent" or "state-space" and feed.kind "dense" or "experts"'
)


@dataclass(frozen=True)
class Fields:
    """The fields of one config, and where it came from, so that a fault can be named."""

    values: Mapping[str, Any]
    where: str

    def bad(self, name: str, wanted: str) -> InputError:
        """The error for a field that is missing or wrong."""
        if self.values.get(name) is None:
            return InputError(f"{self.where}: {name} is missing; {wanted} is wanted")
        return InputError(f"{self.where}: {name} is {json.dumps(self.values[name])[:60]}; {wanted} is wanted")

    def named(self, names: tuple[str, ...]) -> str:
        """The first of ``names`` that the config holds (else the first of all)."""
        return next((name for name in names if self.values.get(name) is not None), names[0])

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """A whole number of at least ``least`` under one of ``names``."""
        name = self.named(names)
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.bad(name, f"a whole number of at least {least}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.bad(name, "true or false")
        return value

    def rows(self, name: str, length: int) -> list[Any] | None:
        """A list with one entry a layer; None where the config has none."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            raise self.bad(name, f"a list of {length} entries, one a layer,")
        return value


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
    layers: Callable[[Fields, Family], list[Layer]] | None = None


def read_config(path: Path | str) -> Model:
    """Read the ``config.json`` of a model on Hugging Face; the model's name is its folder's, or the file's.

    Args:
        path: The file.

    Returns:
        The model's shape.

    Raises:
        InputError: the file cannot be read, is not JSON, lacks a field, or describes a model that is not understood.
    """
    path = Path(path)
    try:
        config = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}" if isinstance(error, ValueError) else "nested"
        msg = f"{path}: not JSON ({where})"
        raise InputError(msg) from None
    if not isinstance(config, dict):
        msg = f"{path}: a JSON object is wanted, the config of a model"
        raise InputError(msg)
    stem = path.stem.removesuffix("config").rstrip("_-.") or path.absolute().parent.name
    return model_of(config, stem.rpartition("--")[2].lower() or "model", str(path))


def model_of(config: Mapping[str, Any], name: str, where: str) -> Model:
    """The shape that a config describes.

    Args:
        config: Fields of ``config.json``.
        name: Name to give the model.
        where: Where the config came from, for errors.

    Returns:
        The model's shape; text only.

    Raises:
        InputError: a field is missing or wrong, or the ``model_type`` is not understood.

    >>> tiny = {
    ...     "model_type": "llama",
    ...     "hidden_size": 64,
    ...     "num_hidden_layers": 2,
    ...     "num_attention_heads": 4,
    ...     "num_key_value_heads": 2,
    ...     "intermediate_size": 128,
    ...     "vocab_size": 1000,
    ... }
    >>> model_of(tiny, "tiny", "example").parameters
    202048
    """
    kind, flat = _flatten(config, where)
    family = FAMILIES.get(kind)
    if family is None:
        raise _not_understood(kind, where)
    fields = Fields({**family.defaults, **flat}, where)
    _refuse_what_is_not_modelled(fields)
    layers = (family.layers or _plain)(fields, family)
    try:
        return Model(name=name, blocks=_runs(layers, family, fields), **_whole(fields, family, kind))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _flatten(config: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    """The kind of the text model, and all fields on one level."""
    flat = dict(config)
    for nest in ("text_config", "language_config", "llm_config", "attn_config", "ffn_config"):
        inner = flat.pop(nest, None)
        if isinstance(inner, dict):
            outer_ties = flat.get("tie_word_embeddings")
            flat.update({key: value for key, value in inner.items() if value is not None})
            if nest.endswith("config") and inner.get("tie_word_embeddings") is None and outer_ties is not None:
                flat["tie_word_embeddings"] = outer_ties
        elif inner is not None:
            raise InputError(f"{where}: {nest} is {json.dumps(inner)[:60]}; an object is wanted")
    kind = flat.get("model_type")
    if not isinstance(kind, str):
        raise Fields(flat, where).bad("model_type", 'the architecture\'s name (such as "llama")')
    if kind not in FAMILIES and isinstance(config.get("model_type"), str) and config["model_type"] in FAMILIES:
        kind = config["model_type"]
    return kind, flat


def _not_understood(kind: str, where: str) -> InputError:
    near = nearest(kind, FAMILIES)
    hint = f" (nearest known: {', '.join(near)})" if near else f" (known: {', '.join(sorted(FAMILIES))})"
    why = NOT_MODELLED.get(kind, "the meaning of its fields is not known here")
    return InputError(f'{where}: model_type "{kind}" is not understood{hint}: {why}; {BY_HAND}')


def _refuse_what_is_not_modelled(fields: Fields) -> None:
    for name, why in REFUSED_FIELDS.items():
        if fields.values.get(name):
            raise InputError(f"{fields.where}: {name}: {why} is missing in the model's shape; {BY_HAND}")
    kinds = fields.values.get("layer_types") or []
    if isinstance(kinds, list) and "linear_attention" in kinds:
        raise InputError(f"{fields.where}: layer_types: linear attention is missing in the model's shape; {BY_HAND}")


def _whole(fields: Fields, family: Family, kind: str) -> dict[str, Any]:
    longest = fields.count(*POSITIONS, default=0, least=0)
    learned = family.learned_positions is not None and not fields.flag("alibi", default=False)
    if learned and not longest:
        raise fields.bad(fields.named(POSITIONS), "the number of learned positions")
    nextn = fields.count("num_nextn_predict_layers", default=0, least=0)
    if fields.flag("use_mtp", default=False):
        nextn = fields.count("num_mtp_modules", default=nextn, least=0)
    return {
        "hidden": fields.count(*HIDDEN),
        "vocab": fields.count("vocab_size"),
        "tied": fields.flag("tie_word_embeddings", default=family.tied),
        "norm_bias": family.norm_bias and not fields.flag("no_bias", default=False),
        "embedding_norm": family.embedding_norm,
        "head_bias": fields.flag("lm_head_bias", default=family.head_bias),
        "positions": longest + (family.learned_positions or 0) if learned else 0,
        "max_sequence": 0 if kind in UNBOUNDED else longest,
        "mtp": nextn,
    }


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
    depth = fields.count(*LAYERS)
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
    wide = ("intermediate_size_mlp", "dense_intermediate_size", *FFN)
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
    if not isinstance(words, str | list):
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
    return [(_state_space(fields), None)] * fields.count(*LAYERS)


def _pruned(fields: Fields, family: Family) -> list[Layer]:
    """Nemotron of the architecture search: each layer has its own width, or lacks its attention."""
    heads, hidden, depth = fields.count(*HEADS), fields.count(*HIDDEN), fields.count(*LAYERS)
    rows = fields.rows("block_configs", depth)
    if rows is None:
        raise fields.bad("block_configs", f"a list of {depth} entries, one a layer,")
    layers: list[Layer] = []
    for row in rows:
        try:
            attention, ffn = Fields(row["attention"], fields.where), Fields(row["ffn"], fields.where)
            if row["attention"].get("replace_with_linear") or row["ffn"].get("replace_with_linear"):
                raise InputError(f"{fields.where}: replace_with_linear is missing in the model's shape; {BY_HAND}")
            mixer: Mixer = None
            if not attention.flag("no_op", default=False):
                share = attention.count("n_heads_in_group")
                mixer = Attention(heads=heads, kv_heads=max(1, heads // share), head_size=hidden // heads)
            feed: Feed = None
            if not ffn.flag("no_op", default=False):
                width = int(2 * row["ffn"]["ffn_mult"] * hidden / 3)
                feed = FeedForward(ffn=-(-width // 256) * 256, gated=family.gated)
        except (KeyError, TypeError, AttributeError):
            raise fields.bad("block_configs", "attention and ffn (with ffn_mult) in each entry") from None
        layers.append((mixer, feed))
    return layers


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
    "dbrx": Family(defaults={"n_shared_experts": 0}),
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
    "mamba2": Family(tied=True, layers=_mamba),
    "nemotron_h": Family(gated=False, layers=_hybrid),
    "nemotron-nas": Family(layers=_pruned),
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
