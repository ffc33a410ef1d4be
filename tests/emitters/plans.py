"""Plans made by hand: what a plan of the tool looks like, without the search behind it."""

from __future__ import annotations

from datetime import date
from typing import Any

from clusterwright.emitters import targets
from clusterwright.hardware import Accelerator, Fabric, FabricKind, Node, Storage
from clusterwright.layout import Layout
from clusterwright.model import Attention, Block, Experts, FeedForward, LatentAttention, Model
from clusterwright.plan import Candidate, Estimate, Plan, Rent

SITE = {
    "image": "registry.example/train@sha256:" + "1" * 64,
    "namespace": "training",
    "queue": "training",
    "partition": "gpu",
    "account": "research",
    "rdma_resource": "rdma/hca",
    "rdma_per_node": 8,
    "interface": "eth0",
    "data_dir": "/data",
    "checkpoint_dir": "/checkpoints",
    "tokenizer": "/data/tokenizer",
}


def dense(name: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, *, vocab: int = 128256) -> Model:
    """A decoder with grouped-query attention."""
    mixer = Attention(heads=heads, kv_heads=kv_heads, head_size=hidden // heads)
    return Model(
        name=name, hidden=hidden, vocab=vocab, blocks=(Block(count=layers, mixer=mixer, feed=FeedForward(ffn=ffn)),)
    )


LLAMA_8B = dense("llama-3.1-8b", 32, 4096, 32, 8, 14336)
LLAMA_70B = dense("llama-3.1-70b", 80, 8192, 64, 8, 28672)
LLAMA_405B = dense("llama-3.1-405b", 126, 16384, 128, 8, 53248)
LATENT = LatentAttention(heads=128, q_rank=1536, kv_rank=512, nope_size=128, rope_size=64, value_size=128)
DEEPSEEK = Model(
    name="DeepSeek-V3",
    hidden=7168,
    vocab=129280,
    mtp=1,
    blocks=(
        Block(count=3, mixer=LATENT, feed=FeedForward(ffn=18432)),
        Block(count=58, mixer=LATENT, feed=Experts(experts=256, top_k=8, ffn=2048, shared_ffn=2048)),
    ),
)
MIXTRAL = Model(
    name="mixtral-8x7b",
    hidden=4096,
    vocab=32000,
    blocks=(
        Block(
            count=32,
            mixer=Attention(heads=32, kv_heads=8, head_size=128),
            feed=Experts(experts=8, top_k=2, ffn=14336),
        ),
    ),
)
H100 = Accelerator(
    name="h100-sxm",
    vendor="nvidia",
    architecture="hopper",
    memory_bytes=80e9,
    memory_bytes_per_s=3.35e12,
    peak_flop_per_s={"bf16": 989.4e12},
    multiprocessors=132,
    scale_up_bytes_per_s=450e9,
    scale_up_peer_bytes_per_s=450e9,
    power_w=700,
)
LAYOUT = Layout(tp=8, pp=4, vpp=5, dp=2, sharding="distopt", global_batch=512, micro_batch=1)


def node(fabric: FabricKind = FabricKind.INFINIBAND, accelerators: int = 8, domain: int = 8) -> Node:
    """A node with a NIC for each accelerator."""
    return Node(
        name="dgx-h100",
        provider="own",
        accelerator="h100-sxm",
        accelerators=accelerators,
        scale_up_domain=domain,
        nics=accelerators,
        nic_bits_per_s=400e9,
        fabric=fabric,
        power_w=10200,
    )


def candidate(layout: Layout, hardware: Node, *, provider: str = "lambda", spares: int = 0) -> Candidate:
    """The layout on as many of these nodes as it takes."""
    return Candidate(
        accelerator="h100-sxm",
        node=hardware.name,
        nodes=max(1, -(-layout.accelerators // hardware.accelerators)),
        accelerators=layout.accelerators,
        spares=spares,
        offer=Rent(provider=provider, term="on-demand", usd_per_accelerator_hour=2.99, seen=date(2026, 11, 1)),
        layout=layout,
        estimate=Estimate(
            step_time_s=9.3,
            interval=(8.0, 10.5),
            mfu=0.42,
            tokens_per_s=4.5e5,
            memory_bytes=70e9,
            train_time_s=4.4e5,
            goodput=0.95,
            cost_usd=25000,
            power_w=81600,
        ),
        fabric=Fabric(topology="rail-optimised", tiers=2, leaf=16, spine=8, core=0, nic_bits_per_s=400e9, cables=128),
        storage=Storage(write_bytes_per_s=40e9, checkpoint_bytes=988e9, checkpoint_interval_s=1800),
    )


def make_plan(
    layout: Layout = LAYOUT,
    *,
    model: Model = LLAMA_70B,
    hardware: Node | None = None,
    site: dict[str, Any] | None = None,
    training: dict[str, Any] | None = None,
    provider: str = "lambda",
    spares: int = 0,
    serving: bool = False,
) -> Plan:
    """A feasible plan of this layout."""
    hardware = hardware or node()
    work: dict[str, Any] = {"model": {"name": model.name}}
    if serving:
        work["serving"] = {"requests_per_s": 50, "input_tokens": 2000, "output_tokens": 256}
    else:
        work["training"] = {
            "tokens": "200B",
            "sequence_length": 8192,
            "global_batch": layout.global_batch,
            "framework": "megatron",
            **(training or {}),
        }
    return Plan(
        workload=work,
        site=SITE if site is None else site,
        model=model,
        hardware_node=hardware,
        hardware_accelerator=H100,
        chosen=candidate(layout, hardware, provider=provider, spares=spares),
        catalogue_date=date(2026, 11, 1),
    )


def ethernet_plan(leaf: int = 4, spine: int = 2, *, fabric: FabricKind = FabricKind.ROCE, links: int = 1) -> Plan:
    """Four nodes of one's own under a spine-leaf network of one's own."""
    plan = make_plan(Layout(tp=8, dp=4, global_batch=64), hardware=node(fabric), provider="own")
    if plan.chosen is None:
        raise AssertionError
    cables = plan.chosen.nodes * 8 + leaf * spine * links
    network = plan.chosen.fabric.model_copy(update={"leaf": leaf, "spine": spine, "cables": cables})
    return plan.model_copy(update={"chosen": plan.chosen.model_copy(update={"fabric": network})})


def small_plan() -> Plan:
    """A job smaller than one accelerator."""
    plan = make_plan(Layout(global_batch=8), model=LLAMA_8B)
    if plan.chosen is None:
        raise AssertionError
    small = plan.chosen.estimate.model_copy(update={"memory_bytes": 17e9})
    return plan.model_copy(update={"chosen": plan.chosen.model_copy(update={"estimate": small})})


SHARED = Layout(dp=64, sharding="fsdp", global_batch=512)
SWITCHES: dict[str, object] = {
    "asn": 65000,
    "port_prefix": "swp",
    "host_interface": "hosts",
    "fabric_prefix": "10.20.0.0/16",
}


def mixture_of_named_hosts(target: str) -> tuple[Plan, dict[str, object]]:
    """Another plan, with all that a site can tell: a mixture of experts on nodes that have names, claims and sizes."""
    racks = {"hosts": [f"gpu{i}" for i in range(1, 9)]}
    claims = {"data_claim": "datasets", "checkpoint_claim": "checkpoints"}
    plan = make_plan(
        Layout(tp=2, ep=8, dp=32, sharding="zero1", global_batch=128, recompute="selective"),
        model=MIXTRAL,
        site={**SITE, **racks, **claims},
        spares=1,
    )
    given: dict[str, object] = {
        "cpus_per_node": 96,
        "memory_gib_per_node": 1800,
        "gpu_product": "NVIDIA-H100-80GB-HBM3",
        "topology_labels": "example.com/block,example.com/rack",
        "time_limit": "7-00:00:00",
        "slurm_version": "24.05",
        "lr": "3e-4",
        "rotary_base": 1000000,
    }
    read = next((*t.needs, *t.takes) for t in targets() if t.name == target)
    return plan, {key: value for key, value in given.items() if key in read}


def fitting(target: str, *, site: bool = True) -> tuple[Plan, dict[str, object]]:
    """A plan that a target writes files for, with the values given by hand."""
    plan = {
        "torchtitan": make_plan(SHARED, model=LLAMA_8B),
        "fsdp": make_plan(SHARED, model=LLAMA_8B),
        "deepspeed": make_plan(SHARED, model=LLAMA_8B),
        "frr": ethernet_plan(),
        "sonic": ethernet_plan(),
        "mig": small_plan(),
    }.get(target, make_plan())
    if not site:
        return plan.model_copy(update={"site": {}}), {}
    given: dict[str, dict[str, object]] = {"frr": SWITCHES, "sonic": {"switch_ports": "Ethernet0,Ethernet8"}}
    return plan, given.get(target, {})
