"""Random jobs and layouts: what every estimate must hold for."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from clusterwright.estimators.grid import RECOMPUTES, SCHEDULES, SHARDINGS
from clusterwright.estimators.job import Job
from clusterwright.hardware import Accelerator, FabricKind, Node
from clusterwright.layout import Layout
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, Model, StateSpace

pick = st.sampled_from
FRAMEWORKS = ("megatron", "torchtitan", "fsdp", "deepspeed", "any", "megatron-deepspeed", "nanotron")


@st.composite
def models(draw: st.DrawFn, *, mixtures: bool = True) -> Model:
    """Dense networks and mixtures, with every kind of mixer, of one or two kinds of layer."""
    heads, size = draw(pick([16, 32, 64])), draw(pick([64, 128]))
    plain = Attention(heads=heads, kv_heads=8, head_size=size)
    mixers = [
        plain,
        Attention(heads=heads, kv_heads=heads, head_size=size, window=1024),
        LatentAttention(heads=heads, q_rank=1536, kv_rank=512, nope_size=128, rope_size=64, value_size=128),
        StateSpace(heads=heads, head_size=size, groups=8, state=128, convolution=4),
    ]
    feeds: list[FeedForward | Experts] = [FeedForward(ffn=4 * heads * size), FeedForward(ffn=8192, gated=False)]
    if mixtures:
        feeds += [Experts(experts=8, top_k=2, ffn=4096), Experts(experts=64, top_k=6, ffn=1408, shared_ffn=2816)]
    blocks = [Block(count=draw(pick([8, 24, 30, 48])), mixer=draw(pick(mixers)), feed=draw(pick(feeds)))]
    if draw(st.booleans()):
        blocks.append(Block(count=8, mixer=plain, feed=FeedForward(ffn=8192)))
    return Model(name="drawn", hidden=heads * size, vocab=draw(pick([32000, 128256])), blocks=tuple(blocks))


@st.composite
def jobs(draw: st.DrawFn, *, mixtures: bool = True) -> Job:
    """Jobs on slow and fast machines of several architectures, networks and stacks."""
    domain, bandwidth = draw(pick([4, 8, 72])), draw(pick([32e9, 300e9, 900e9]))
    accelerator = Accelerator(
        name="drawn",
        vendor="nvidia",
        architecture=draw(pick(["volta", "ampere", "hopper", "blackwell", "cdna3"])),
        memory_bytes=80e9,
        memory_bytes_per_s=draw(pick([1e12, 3.35e12, 8e12])),
        peak_flop_per_s={"bf16": 989e12, "fp16": 989e12, "fp8": 1979e12},
        multiprocessors=draw(pick([80, 108, 132, 148])),
        scale_up_bytes_per_s=bandwidth,
        scale_up_peer_bytes_per_s=draw(pick([bandwidth, bandwidth / 7])),
        switched=draw(st.booleans()),
        power_w=700,
    )
    node = Node(
        name="drawn",
        provider="any",
        accelerator="drawn",
        accelerators=min(domain, 8),
        scale_up_domain=domain,
        nics=8,
        nic_bits_per_s=draw(pick([50e9, 200e9, 400e9])),
        fabric=draw(pick([FabricKind.INFINIBAND, FabricKind.ROCE, FabricKind.TCP, FabricKind.EFA])),
    )
    return Job(
        draw(models(mixtures=mixtures)),
        accelerator,
        node,
        sequence_length=draw(pick([2048, 4096, 8192])),
        framework=draw(pick(FRAMEWORKS)),
        precision=draw(pick(["bf16", "fp8"])),
        year=draw(pick([2021.0, 2024.0, 2026.0])),
        method=draw(pick(["full", "full", "lora"])),
    )


@st.composite
def layouts(draw: st.DrawFn, /, **fixed: Any) -> Layout:  # noqa: ANN401 - the fields of Layout
    """Layouts whose micro-batches fill the pipeline; ``fixed`` fields are as given."""
    found = {name: draw(pick([1, 2, 4, 8])) for name in ("tp", "dp", "ep")}
    found |= {name: draw(pick([1, 2, 4])) for name in ("cp", "pp", "micro_batch")}
    found |= {"vpp": draw(pick([1, 2])), **fixed}
    if found["pp"] == 1:
        found["vpp"] = 1
    if found["tp"] * found["cp"] * found["dp"] % found["ep"]:
        found["ep"] = 1
    words = {
        "sharding": draw(pick(SHARDINGS)),
        "recompute": draw(pick(RECOMPUTES)),
        "schedule": draw(pick(SCHEDULES)),
    }
    batch = found["dp"] * found["micro_batch"] * found["pp"] * draw(pick([1, 2, 5]))
    return Layout.model_validate({**words, **found, "global_batch": batch})
