"""A model's public ``config.json`` (Hugging Face) -> Model. Text only: vision and audio are not counted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clusterwright.errors import InputError, nearest
from clusterwright.files import read_text
from clusterwright.huggingface.families import FAMILIES, NOT_MODELLED, REFUSED_FIELDS, UNBOUNDED, Family
from clusterwright.huggingface.fields import BY_HAND, HIDDEN, POSITIONS, Fields, shown
from clusterwright.huggingface.layers import blocks_of
from clusterwright.model import Model

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["model_of", "read_config"]

PARTS = ("attn_config", "ffn_config")
NESTS = ("text_config", "language_config", "llm_config", *PARTS)


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
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not a config: a number too long or lists too deep") from None
    if not isinstance(config, dict):
        raise InputError(f"{path}: a JSON object is wanted, the config of a model")
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
    try:
        return Model(name=name, blocks=blocks_of(fields, family), **_whole(fields, family, kind))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _flatten(config: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any]]:
    """The kind of the text model, and all fields on one level."""
    flat = dict(config)
    for nest in NESTS:
        inner = flat.pop(nest, None)
        if inner is None:
            continue
        if not isinstance(inner, dict):
            raise InputError(f"{where}: {nest} is {shown(inner)}; an object is wanted")
        named = nest in PARTS  # whose model_type is none of the model's
        flat |= {key: value for key, value in inner.items() if value is not None and not (named and key in flat)}
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
            raise fields.missing(name, why)
    kinds = fields.values.get("layer_types") or []
    if isinstance(kinds, list) and "linear_attention" in kinds:
        raise fields.missing("layer_types", "linear attention")


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
        "rotary_base": None if learned else _rotary_base(fields),
    }


def _rotary_base(fields: Fields) -> float | None:
    """The base of the rotary embedding where the config says it, under its own name or with the other parameters."""
    nested = fields.values.get("rope_parameters")
    base = fields.values.get("rope_theta") or (nested.get("rope_theta") if isinstance(nested, dict) else None)
    if base is None:
        return None
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not 0 < base < math.inf:
        raise fields.bad("rope_theta", "a number greater than 0")
    return float(base)
