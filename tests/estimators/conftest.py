"""A model, an accelerator and a node, written by hand from their public sheets."""

import pytest

from clusterwright.estimators.job import Job
from clusterwright.hardware import Accelerator, FabricKind, Node
from clusterwright.model import Attention, Block, Experts, FeedForward, Model


@pytest.fixture
def dense() -> Model:
    """Llama-3.1 70B."""
    block = Block(count=80, mixer=Attention(heads=64, kv_heads=8, head_size=128), feed=FeedForward(ffn=28672))
    return Model(name="llama-3.1-70b", hidden=8192, vocab=128256, blocks=(block,))


@pytest.fixture
def mixture() -> Model:
    """Mixtral 8x7B."""
    block = Block(
        count=32, mixer=Attention(heads=32, kv_heads=8, head_size=128), feed=Experts(experts=8, top_k=2, ffn=14336)
    )
    return Model(name="mixtral-8x7b", hidden=4096, vocab=32000, blocks=(block,))


@pytest.fixture
def h100() -> Accelerator:
    """H100 SXM at nameplate."""
    return Accelerator(
        name="h100-sxm",
        vendor="nvidia",
        architecture="hopper",
        memory_bytes=80e9,
        memory_bytes_per_s=3.35e12,
        peak_flop_per_s={"bf16": 989e12, "fp16": 989e12, "fp8": 1979e12},
        multiprocessors=132,
        scale_up_bytes_per_s=450e9,
        scale_up_peer_bytes_per_s=450e9,
        power_w=700,
    )


@pytest.fixture
def node() -> Node:
    """DGX H100."""
    return Node(
        name="dgx-h100",
        provider="nvidia",
        accelerator="h100-sxm",
        accelerators=8,
        scale_up_domain=8,
        nics=8,
        nic_bits_per_s=400e9,
        fabric=FabricKind.INFINIBAND,
        power_w=10200,
    )


@pytest.fixture
def job(dense: Model, h100: Accelerator, node: Node) -> Job:
    """Pretraining of the dense model with Megatron."""
    return Job(dense, h100, node, sequence_length=8192, framework="megatron")
