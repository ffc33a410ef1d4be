"""Communication of a step that computing does not hide, by kind of parallelism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators.adapters import trained_a_rank, weight_bytes_a_rank
from clusterwright.estimators.grid import RECOMPUTES, SHARDINGS, Layouts
from clusterwright.estimators.job import (
    Device,
    Job,
    data_ranks,
    dispatches_once,
    domain_of,
    expert_ranks,
    layers_a_stage,
)
from clusterwright.laws import collectives, work
from clusterwright.model import Attention, Experts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.efficiency import Efficiency, Stack, Wire

    Floats = NDArray[Any]

FULL_SHARDS = tuple(SHARDINGS.index(name) for name in ("zero3", "fsdp", "hsdp"))
OPTIMIZER_SHARDS = tuple(SHARDINGS.index(name) for name in ("zero1", "zero2"))
ZERO_BUCKET = 5e8
"""Parameters that ZeRO-1 and 2 gather by one call: DeepSpeed's allgather_bucket_size; nanotron gathers all by one."""
DISTRIBUTED = SHARDINGS.index("distopt")
"""Megatron's distributed optimizer: its buckets hold 40 million parameters, or a million a rank where that is more."""
BACKWARD = 2.0 / 3.0
"""Share of a micro-batch's computing that is backward: gradients travel under it, weights under the rest."""
FULL = RECOMPUTES.index("full")
BF16 = 2.0
HOP_INSIDE = 1.9e-6
"""Latency of a hop of a ring inside a domain: NVLink with LL128 in NCCL's src/graph/tuning.cc [s]."""


@dataclass(frozen=True)
class Wires:
    """Sustained bandwidth of one accelerator on both tiers [B/s]."""

    up: float
    reduce_up: float
    pair: float
    """To one peer of the domain."""
    out: float
    near: Wire
    far: Wire

    @classmethod
    def of(cls, job: Job, efficiency: Efficiency) -> Wires:
        """The wires of a job."""
        accelerator, node = job.accelerator, job.node
        curve, far = efficiency.curve(accelerator.architecture), efficiency.wire(node.fabric)
        nameplate = job.nic_bytes_per_s or node.network_bytes_per_s / node.accelerators or 1e9
        up = max(accelerator.scale_up_bytes_per_s, 1e9)
        pair = max(accelerator.scale_up_peer_bytes_per_s, 1e9)
        reduce_up = curve.reduce_up if accelerator.switched else curve.up
        return cls(
            up * curve.up,
            up * reduce_up,
            min(pair, up) * curve.up,
            nameplate * far.out / job.oversubscription,
            efficiency.fabric["scale-up"],
            far,
        )

    def group(self, ranks: Floats, stride: Floats, domain: int) -> tuple[Floats, Floats]:
        """Ranks of the group in one domain, and the scale-up bandwidth they see."""
        local = np.asarray(collectives.local_ranks(ranks, stride, domain), dtype=float)
        return local, np.where(local <= 2, self.pair * np.maximum(local - 1, 1), self.up)  # noqa: PLR2004 - one pair of links

    def start(self, message: Floats, ranks: Floats, local: Floats, passes: int = 1) -> Floats:
        """Start-up time of a collective that passes once (gather) or twice (reduction) around its ring [s]."""
        near = collectives.start_up(message, latency=self.near.latency, fill=self.near.fill * passes)
        hops = {"inside": HOP_INSIDE, "outside": self.far.latency}
        latency = passes * collectives.ring_latency(ranks, local, **hops)
        if passes > 1:
            latency = np.minimum(latency, collectives.tree_latency(ranks, local, **hops))
        far = self.near.latency + collectives.start_up(message, latency=latency, fill=self.far.fill * passes)
        return np.where(ranks > local, far, near * (1 + np.clip(ranks, 1, 8) / 8) / 2)

    def scatter(self, message: Floats, ranks: Floats, local: Floats) -> Floats:
        """Start-up time of an all-to-all, whose messages to all peers are under way at once [s]."""
        near = collectives.start_up(message, latency=self.near.latency, fill=self.near.fill)
        hops = np.log2(np.maximum(ranks / local, 2.0)) * self.far.latency
        far = self.near.latency + collectives.start_up(message, latency=hops, fill=self.far.fill)
        return np.where(ranks > local, far, near * (1 + np.clip(ranks, 1, 8) / 8) / 2)

    def gather(self, message: Floats, ranks: Floats, stride: Floats, domain: int, calls: Any = 1.0) -> Floats:  # noqa: ANN401 - array or number
        """Time of an all-gather or reduce-scatter, cut into ``calls`` equal parts [s]."""
        local, up = self.group(ranks, stride, domain)
        start = calls * self.start(message / calls, ranks, local)
        return np.asarray(collectives.all_gather_ring(message, ranks, local, up=up, out=self.out, start=start))

    def reduce(self, message: Floats, ranks: Floats, stride: Floats, domain: int, calls: Any = 1.0) -> Floats:  # noqa: ANN401 - array or number
        """Time of an all-reduce, cut into ``calls`` equal parts [s]."""
        local, up = self.group(ranks, stride, domain)
        fast = np.where(ranks > local, up, up * self.reduce_up / self.up)
        start = calls * self.start(message / calls, ranks, local, 2)
        return np.asarray(collectives.all_reduce_ring(message, ranks, local, up=fast, out=self.out, start=start))

    def exchange(self, message: Floats, ranks: Floats, stride: Floats, domain: int) -> Floats:
        """Time of an all-to-all [s]."""
        local, up = self.group(ranks, stride, domain)
        return np.asarray(
            collectives.all_to_all_pairwise(
                message, ranks, local, up=up, out=self.out, start=self.scatter(message, ranks, local)
            )
        )

    def dispatch(self, token: Floats, copies: int, ranks: Floats, domain: int) -> Floats:
        """Time of an all-to-all that sends a token once to each domain and spreads its copies there [s]."""
        local, up = self.group(ranks, np.ones_like(ranks), domain)
        outside = token * collectives.domains_reached(ranks / local, copies) / self.out
        inside = token * copies * (local - 1) / local / up
        return np.where(ranks > 1, self.scatter(token * copies, ranks, local) + outside + inside, 0.0)


def exposed(message: Floats, window: Floats, hidden: Any) -> Floats:  # noqa: ANN401 - array or number
    """Time of communication that stays visible: what a stack does not overlap, and what the window cannot hold [s].

    The part that is overlapped still slows computing (it takes multiprocessors and memory bandwidth); that share is
    in ``1 - hidden`` too.
    """
    return np.asarray(message * (1 - hidden) + np.maximum(message * hidden - window, 0.0))


def communicate(job: Job, stack: Stack, wires: Wires, lay: Layouts, device: Device) -> dict[str, Floats]:
    """Exposed time: ``tp``, ``cp``, ``ep``, ``pp`` for one micro-batch on the slowest stage, ``dp`` for the step [s].

    ``wait`` is time of tensor parallelism in which neither device nor host gets on, also for one micro-batch;
    ``owned`` is the number of parameters whose optimizer state the rank owns.
    """
    domain = domain_of(job)
    tokens = lay.micro_batch * job.sequence_length / lay.cp
    width = BF16 * tokens * job.model.hidden
    one = np.ones_like(tokens)
    found = {
        **_tensor(stack, wires, lay, width, device, domain),
        "cp": _context(job, stack, wires, lay, device, domain),
        "ep": _expert(job, stack, wires, lay, width, domain),
    }
    stride = lay.tp * lay.cp * lay.dp
    crosses = stride * lay.pp > domain
    hop = np.asarray(
        collectives.send(
            width / lay.tp,  # each tensor-parallel rank sends its part (Narayanan et al. 2021, section 4.1)
            bandwidth=np.where(crosses, wires.out, wires.pair),
            latency=np.where(crosses, wires.far.latency, wires.near.latency),
        )
    )
    if not stack.sequence_parallel:
        hop = hop + wires.gather(width, lay.tp, one, domain)
    found["pp"] = np.where(lay.pp > 1, 2 * hop * lay.vpp, 0.0) * (1 - stack.hidden.pp)
    found |= _data(job, stack, wires, lay, device, found["cp"], found["tp"] + found["ep"])
    return {name: np.asarray(value * one, dtype=float) for name, value in found.items()}


def _tensor(stack: Stack, wires: Wires, lay: Layouts, width: Floats, device: Device, domain: int) -> dict[str, Floats]:
    """Two all-reduces forward and two backward a layer, or gathers and scatters in their place, and their wait."""
    one = np.ones_like(lay.tp)
    once = (wires.gather if stack.sequence_parallel else wires.reduce)(width, lay.tp, one, domain)
    calls = (9.0 if stack.sequence_parallel else 4.0) * np.where(lay.recompute == FULL, 1.5, 1.0) * device.layers
    nodes = lay.tp / collectives.local_ranks(lay.tp, one, domain)
    return {"tp": calls * once * (1 - stack.hidden.tp), "wait": calls * stack.tensor_hop * (nodes - 1.0)}


def _context(job: Job, stack: Stack, wires: Wires, lay: Layouts, device: Device, domain: int) -> Floats:
    """Communication of attention over the parts of a sequence, as the stack does it."""
    mixers = [b.mixer for b in job.model.blocks if isinstance(b.mixer, Attention)]
    keys = max((m.kv_heads * m.head_size for m in mixers), default=job.model.hidden)
    queries = max((m.heads * m.head_size for m in mixers), default=job.model.hidden)
    tokens = lay.micro_batch * job.sequence_length / lay.cp
    message = BF16 * 2 * tokens * np.maximum(keys / lay.tp, 1)
    if stack.context == "ring":
        once = _ring(wires, lay, message, device, domain)
    elif stack.context == "all-gather":  # gathered forward and again backward, their gradients scattered
        once = 3 * wires.gather(message * lay.cp, lay.cp, lay.tp, domain)
    else:  # queries, keys, values and the result change hands, and their gradients back
        heads = BF16 * tokens * 2 * np.maximum((queries + keys) / lay.tp, 1)
        once = 2 * wires.exchange(heads, lay.cp, lay.tp, domain)
    return np.asarray(np.where(lay.cp > 1, once * device.layers, 0.0))


def _ring(wires: Wires, lay: Layouts, message: Floats, device: Device, domain: int) -> Floats:
    """Keys and values pass to the next rank while attention computes on what is there."""
    local = collectives.local_ranks(lay.cp, lay.tp, domain)
    bandwidth = np.where(local < lay.cp, wires.out, wires.pair)
    ring = (lay.cp - 1) * collectives.send(message, bandwidth=bandwidth, latency=wires.near.latency)
    hidden = 0.8 * device.attention
    return np.asarray(np.maximum(ring - hidden, 0.1 * ring) + np.maximum(2 * ring - 2 * hidden, 0.1 * ring))


def _expert(job: Job, stack: Stack, wires: Wires, lay: Layouts, width: Floats, domain: int) -> Floats:
    """Dispatch and combine, forward and backward, of every layer of experts."""
    feeds = [(b.count, b.feed) for b in job.model.kinds if isinstance(b.feed, Experts)]
    total = np.zeros_like(width)
    once = dispatches_once(job, stack)
    for count, feed in feeds:
        share = count / job.model.layers
        token = width / np.where(stack.sequence_parallel, lay.tp, 1)
        exchange = wires.exchange(token * feed.top_k, lay.ep, np.ones_like(lay.ep), domain)
        if once:
            exchange = np.minimum(exchange, wires.dispatch(token, feed.top_k, lay.ep, domain))
        skew = work.routing_skew(lay.ep) if job.routing == "natural" else 1.0
        total = total + share * 4.0 * exchange * skew
    again = np.where(lay.recompute == FULL, 1.5, 1.0)
    hidden = stack.hides_experts(job.accelerator, job.precision, job.year)
    return total * again * layers_a_stage(job, lay) * (1 - hidden)


def _data(  # noqa: PLR0917 - what the law needs
    job: Job, stack: Stack, wires: Wires, lay: Layouts, device: Device, waits: Floats, talks: Floats
) -> dict[str, Floats]:
    """Gradients and weights over data parallelism, and what of it computing hides, or waiting for keys and values."""
    domain = domain_of(job)
    plain, experts = trained_a_rank(job, lay)
    ranks = data_ranks(lay)
    stride = np.asarray(lay.tp, dtype=float)
    spread = expert_ranks(lay)
    full = np.isin(lay.sharding, FULL_SHARDS)
    sharded = lay.sharding != 0
    compute = np.maximum((device.busy + device.again) * device.layers + waits, device.launch - talks)
    inner = np.where(lay.sharding == SHARDINGS.index("hsdp"), np.minimum(ranks, np.maximum(domain / stride, 1)), ranks)
    sent = stack.sent or stack.gradient
    whole, whole_experts = weight_bytes_a_rank(job, lay, BF16)
    weights = np.where(full, whole, BF16 * plain)
    gradients = sent * plain
    size = np.where(lay.sharding == DISTRIBUTED, sent * np.maximum(40e6, 1e6 * ranks), stack.bucket_bytes)
    coalesced = np.isin(lay.sharding, OPTIMIZER_SHARDS)
    buckets = np.maximum(np.where(full | (coalesced & stack.wraps_layers), device.layers, gradients / size), 1.0)
    calls = np.where(coalesced, np.maximum(plain / ZERO_BUCKET, 1.0), buckets)
    gathers = wires.gather(weights, inner, stride, domain, calls) + wires.gather(
        np.where(full, whole_experts, BF16 * experts), spread, stride, domain
    )
    scatter = wires.gather(gradients, inner, stride, domain, buckets) + wires.gather(
        sent * experts, spread, stride, domain
    )
    reduce = wires.reduce(gradients, ranks, stride, domain, buckets) + wires.reduce(
        sent * experts, spread, stride, domain
    )
    late = np.where(
        lay.vpp > 1, np.minimum(lay.pp, lay.micro_batches) * (lay.vpp - 1) / lay.vpp, 1.0 / np.maximum(lay.pp, 1)
    )
    window = np.where(lay.pp > 1, late, 1.0) * compute  # interleaved, all but the last chunk is ready early
    hidden = np.where(coalesced & (not stack.wraps_layers), 0.0, stack.hidden.dp)
    exposed_once = exposed(np.where(sharded, scatter, reduce), BACKWARD * window, hidden) + np.where(
        sharded, exposed(gathers, (1 - BACKWARD) * window, hidden), 0.0
    )
    replicas = ranks / inner  # hybrid sharding adds up the shards' gradients over the groups that hold a whole copy
    each = 2 * gathers + scatter + wires.reduce(gradients / inner, replicas, stride * inner, domain, buckets)
    times = np.where(lay.pp > 1, 1, lay.micro_batches)  # under a pipeline the weights stay gathered for the whole step
    exposed_each = np.maximum(exposed(each, compute, stack.hidden.dp), each / np.maximum(device.layers, 1)) * times
    owners = np.where(sharded, ranks, 1.0)
    owned = plain / owners + experts / np.where(sharded, spread, 1.0)
    return {"dp": np.where(ranks > 1, np.where(full, exposed_each, exposed_once), 0.0), "owned": owned}
