"""How the work is laid out over the accelerators."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.noun import Noun

Sharding = Literal["none", "zero1", "zero2", "zero3", "fsdp", "hsdp", "distopt"]
Recompute = Literal["none", "selective", "full"]
RecomputeModule = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe_act", "moe", "shared_experts"]
Precision = Literal["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]
Schedule = Literal["1f1b", "zero-bubble"]
Framework = Literal["megatron", "torchtitan", "fsdp", "deepspeed", "any"]


class Layout(Noun):
    """Degrees of parallelism, batch and what is kept or recomputed. Batches are in sequences."""

    tp: int = Field(default=1, ge=1)
    cp: int = Field(default=1, ge=1)
    pp: int = Field(default=1, ge=1)
    vpp: int = Field(default=1, ge=1)
    ep: int = Field(default=1, ge=1)
    dp: int = Field(default=1, ge=1)
    sharding: Sharding = "none"
    micro_batch: int = Field(default=1, ge=1)
    global_batch: int = Field(default=1, ge=1)
    recompute: Recompute = "none"
    precision: Precision = "bf16"
    schedule: Schedule = "1f1b"
    """Of the pipeline: 1F1B (interleaved when vpp > 1), or with weight gradients put off until there is a bubble."""

    @property
    def accelerators(self) -> int:
        """World size."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def micro_batches(self) -> int:
        """Micro-batches a data-parallel rank runs in one step."""
        return self.global_batch // (self.dp * self.micro_batch)

    def rank_of(self, tp: int, cp: int, dp: int, pp: int) -> int:
        """Global rank of a coordinate in Megatron's order tp-cp-dp-pp (tensor innermost, pipeline outermost).

        >>> Layout(tp=8, pp=4, dp=2).rank_of(tp=0, cp=0, dp=1, pp=0)
        8
        """
        return tp + self.tp * (cp + self.cp * (dp + self.dp * pp))

    def coordinates_of(self, rank: int) -> dict[str, int]:
        """Coordinates of a global rank; the inverse of `rank_of`.

        >>> Layout(tp=8, pp=4, dp=2).coordinates_of(25)
        {'tp': 1, 'cp': 0, 'dp': 1, 'pp': 1}
        """
        rest, tp = divmod(rank, self.tp)
        rest, cp = divmod(rest, self.cp)
        pp, dp = divmod(rest, self.dp)
        return {"tp": tp, "cp": cp, "dp": dp, "pp": pp}
