"""The fields of one config, read so that a fault can be named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusterwright.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

HIDDEN = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "kv_n_heads")
FFN = ("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length")
EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "experts_per_token", "moe_top_k", "num_selected_experts")
BY_HAND = (
    "write its shape by hand as a model TOML (name, hidden, vocab, sources, and [[blocks]] with count,"
    ' mixer = {kind = "attention", "latent" or "state-space", ...} and feed = {kind = "dense" or "experts", ...})'
    " in models/ of a folder given with --catalog"
)
MOST = 2**40
"""More than any shape has; beyond it numbers are taken for mistakes."""
MOST_LAYERS = 10_000


@dataclass(frozen=True)
class Fields:
    """The fields of one config, and where it came from, so that a fault can be named."""

    values: Mapping[str, Any]
    where: str

    def bad(self, name: str, wanted: str) -> InputError:
        """The error for a field that is missing or wrong."""
        if self.values.get(name) is None:
            return InputError(f"{self.where}: {name} is missing; {wanted} is wanted")
        return InputError(f"{self.where}: {name} is {shown(self.values[name])}; {wanted} is wanted")

    def missing(self, name: str, what: str) -> InputError:
        """The error for something that the model's shape cannot say."""
        return InputError(f"{self.where}: {name}: {what} is missing in the model's shape; {BY_HAND}")

    def named(self, names: tuple[str, ...]) -> str:
        """The first of ``names`` that the config holds (else the first of all)."""
        return next((name for name in names if self.values.get(name) is not None), names[0])

    def count(self, *names: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        """A whole number from ``least`` to ``most`` under one of ``names``."""
        name = self.named(names)
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            bounded = most != MOST or (isinstance(value, int) and value > most)
            span = f"from {least} to {most}" if bounded else f"of {least} or more"
            raise self.bad(name, f"a whole number {span}")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.bad(name, "true or false")
        return value

    def depth(self) -> int:
        """The number of layers."""
        return self.count(*LAYERS, most=MOST_LAYERS)

    def rows(self, name: str, length: int) -> list[Any] | None:
        """A list with one entry a layer; None where the config has none."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != length:
            raise self.bad(name, f"a list of {length} entries, one a layer,")
        return value


def shown(value: object) -> str:
    """A wrong value as the config writes it, cut short."""
    return json.dumps(value, default=str)[:60]
