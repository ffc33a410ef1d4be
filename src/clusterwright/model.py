"""The network's shape. "Model" never means our own: ours is an estimate."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field

from clusterwright.noun import Noun


class Attention(Noun):
    """Multi-head, grouped-query or multi-query attention."""

    kind: Literal["attention"] = "attention"
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_size: int = Field(gt=0)
    window: int = Field(default=0, ge=0)
    """Sliding window [tokens]; 0: the whole sequence."""
    qkv_bias: bool = False
    out_bias: bool = False
    qk_norm: Literal["none", "head", "full"] = "none"
    """Norm weights on query and key: one vector a head size, or over all heads."""
    sinks: bool = False
    """One learned logit a head (GPT-OSS)."""

    def parameters(self, hidden: int) -> int:
        """Weights and biases of the projections."""
        query, value = self.heads * self.head_size, self.kv_heads * self.head_size
        count = hidden * (query + 2 * value) + query * hidden
        count += (query + 2 * value) * self.qkv_bias + hidden * self.out_bias + self.heads * self.sinks
        if self.qk_norm == "head":
            count += 2 * self.head_size
        elif self.qk_norm == "full":
            count += query + value
        return count


class LatentAttention(Noun):
    """Multi-head latent attention (DeepSeek V2)."""

    kind: Literal["latent"] = "latent"
    heads: int = Field(gt=0)
    q_rank: int = Field(default=0, ge=0)
    """Rank of the query's compression; 0: the query is not compressed."""
    kv_rank: int = Field(gt=0)
    nope_size: int = Field(gt=0)
    rope_size: int = Field(gt=0)
    value_size: int = Field(gt=0)
    window: int = 0

    @property
    def kv_heads(self) -> int:
        """Every head has its own key and value after decompression."""
        return self.heads

    @property
    def head_size(self) -> int:
        """Size of a query and key head."""
        return self.nope_size + self.rope_size

    def parameters(self, hidden: int) -> int:
        """Weights of the projections and of the norms on the compressed vectors."""
        query = self.heads * self.head_size
        count = hidden * self.q_rank + self.q_rank + self.q_rank * query if self.q_rank else hidden * query
        count += hidden * (self.kv_rank + self.rope_size) + self.kv_rank
        count += self.kv_rank * self.heads * (self.nope_size + self.value_size)
        return count + self.heads * self.value_size * hidden


class StateSpace(Noun):
    """A Mamba-2 mixer."""

    kind: Literal["state-space"] = "state-space"
    heads: int = Field(gt=0)
    head_size: int = Field(gt=0)
    groups: int = Field(gt=0)
    state: int = Field(gt=0)
    convolution: int = Field(gt=0)

    def parameters(self, hidden: int) -> int:
        """Projections, convolution, time step, decay, skip and gated norm."""
        inner, mixed = self.heads * self.head_size, self.heads * self.head_size + 2 * self.groups * self.state
        return (
            hidden * (inner + mixed + self.heads)
            + mixed * (self.convolution + 1)
            + 3 * self.heads
            + inner
            + inner * hidden
        )


class FeedForward(Noun):
    """A dense feed-forward network."""

    kind: Literal["dense"] = "dense"
    ffn: int = Field(gt=0)
    gated: bool = True
    bias: bool = False

    def parameters(self, hidden: int) -> int:
        """Weights and biases."""
        width = 2 * self.ffn if self.gated else self.ffn
        return hidden * (width + self.ffn) + (width + hidden) * self.bias

    def active(self, hidden: int) -> int:
        """Parameters that one token meets."""
        return self.parameters(hidden)


class Experts(Noun):
    """A mixture of experts, with shared experts that every token meets."""

    kind: Literal["experts"] = "experts"
    experts: int = Field(gt=0)
    top_k: int = Field(gt=0)
    ffn: int = Field(gt=0)
    """Width of one expert."""
    shared_ffn: int = Field(default=0, ge=0)
    """Width of all shared experts together."""
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_gate: bool = False
    """A learned gate on the shared expert (Qwen2-MoE)."""

    def one(self, hidden: int) -> int:
        """Parameters of one routed expert."""
        return FeedForward(ffn=self.ffn, gated=self.gated, bias=self.bias).parameters(hidden)

    def common(self, hidden: int) -> int:
        """Parameters that every token meets: router and shared experts."""
        shared = FeedForward(ffn=self.shared_ffn, gated=self.gated).parameters(hidden) if self.shared_ffn else 0
        return hidden * self.experts + self.experts * self.router_bias + shared + hidden * self.shared_gate

    def parameters(self, hidden: int) -> int:
        """Router, shared and all routed experts."""
        return self.common(hidden) + self.experts * self.one(hidden)

    def active(self, hidden: int) -> int:
        """Parameters that one token meets."""
        return self.common(hidden) + self.top_k * self.one(hidden)


class Block(Noun):
    """A run of equal layers: a mixer, a feed-forward part, or both."""

    count: int = Field(gt=0)
    mixer: Attention | LatentAttention | StateSpace | None = Field(default=None, discriminator="kind")
    feed: FeedForward | Experts | None = Field(default=None, discriminator="kind")
    norms: int = 2
    """Norms of the hidden width in the layer (4 with post-norms; 1 with parallel attention)."""

    def parameters(self, hidden: int, norm: int) -> int:
        """Parameters of one of the layers; ``norm`` is the size of a norm in units of the width (2 with bias)."""
        count = self.norms * norm * hidden
        count += self.mixer.parameters(hidden) if self.mixer else 0
        return count + (self.feed.parameters(hidden) if self.feed else 0)


class Model(Noun):
    """A transformer (or hybrid) as its public config describes it."""

    name: str
    hidden: int = Field(gt=0)
    vocab: int = Field(gt=0)
    blocks: tuple[Block, ...] = Field(min_length=1)
    tied: bool = False
    """Whether the output head shares the embedding's weights."""
    norm_bias: bool = False
    final_norm: bool = True
    embedding_norm: bool = False
    head_bias: bool = False
    positions: int = Field(default=0, ge=0)
    """Learned position embeddings [tokens]; 0 for rotary, ALiBi or none."""
    rotary_base: float | None = Field(default=None, gt=0)
    """Base of the rotary position embedding; none where it is unknown or there is none. It has no part in cost."""
    max_sequence: int = 0
    mtp: int = 0
    """Multi-token prediction modules trained beside the main head (not in the published parameter count)."""
    published_parameters: float | None = None
    sources: tuple[str, ...] = ()

    @property
    def layers(self) -> int:
        """Number of layers."""
        return sum(block.count for block in self.blocks)

    @cached_property
    def kinds(self) -> tuple[Block, ...]:
        """Equal layers counted once, wherever they stand: what interleaves in many short runs is few kinds."""
        counts: dict[Block, int] = {}
        for block in self.blocks:
            one = block.model_copy(update={"count": 1})
            counts[one] = counts.get(one, 0) + block.count
        return tuple(block.model_copy(update={"count": count}) for block, count in counts.items())

    @cached_property
    def embedding_parameters(self) -> int:
        """Of the token and position embeddings, without the output head."""
        return (self.vocab + self.positions) * self.hidden

    @cached_property
    def head_parameters(self) -> int:
        """Of the output head; 0 when it is tied."""
        return (0 if self.tied else self.vocab * self.hidden) + self.vocab * self.head_bias

    @cached_property
    def parameters(self) -> int:
        """All parameters, computed from the shape."""
        norm = 2 if self.norm_bias else 1
        count = self.embedding_parameters + self.head_parameters
        count += norm * self.hidden * (self.final_norm + self.embedding_norm)
        return count + sum(block.count * block.parameters(self.hidden, norm) for block in self.blocks)

    @cached_property
    def expert_parameters(self) -> int:
        """Of the routed experts, all layers."""
        return sum(
            b.count * b.feed.experts * b.feed.one(self.hidden) for b in self.blocks if isinstance(b.feed, Experts)
        )

    @cached_property
    def active_parameters(self) -> int:
        """Parameters that one token meets."""
        idle = sum(
            b.count * (b.feed.experts - b.feed.top_k) * b.feed.one(self.hidden)
            for b in self.blocks
            if isinstance(b.feed, Experts)
        )
        return self.parameters - idle

    @property
    def experts(self) -> int:
        """Routed experts of a layer (the most of any layer); 0 when dense."""
        return max((b.feed.experts for b in self.blocks if isinstance(b.feed, Experts)), default=0)

    @property
    def heads(self) -> int:
        """Attention heads that tensor parallelism must divide (the least of the attention layers)."""
        return min((b.mixer.heads for b in self.blocks if b.mixer), default=1)
