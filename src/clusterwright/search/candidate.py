"""One candidate as a noun, from the numbers that the search or a question about one layout gives."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clusterwright.estimators.cost import Quote, committed_cost, node_power, rent_cost, run_power
from clusterwright.estimators.fabric import first_fabric
from clusterwright.estimators.goodput import with_reclaims
from clusterwright.estimators.keeping import Saving
from clusterwright.estimators.networks import radix_for
from clusterwright.estimators.storage import storage_of_plan
from clusterwright.estimators.training import Job
from clusterwright.hardware import Fabric
from clusterwright.plan import Candidate, Estimate, Rent
from clusterwright.search.evaluate import saved_bytes, useful_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from clusterwright.hardware import Accelerator, FabricParts, FailureRates, Node
    from clusterwright.layout import Layout
    from clusterwright.measurement import Calibration
    from clusterwright.model import Model
    from clusterwright.search.evaluate import Useful
    from clusterwright.search.offers import Kind
    from clusterwright.workload import Training


ANY = {
    "full": ("megatron", "torchtitan", "deepspeed"),
    "mixtures": ("megatron", "deepspeed"),
    "adapters": ("megatron", "fsdp", "deepspeed"),
}
"""What ``framework = "any"`` stands for. torchtitan trains no adapters, no run of a mixture under it is published, and
what plain FSDP runs it runs."""
ANY_PRECISION = ("bf16", "fp8")
"""What ``precision = "any"`` stands for, where the accelerator has it; QLoRA computes with its 4-bit weights in the
first, as its paper does (Dettmers et al. 2023, https://arxiv.org/abs/2305.14314)."""
EIGHT_BITS = ("megatron",)
"""Frameworks that are planned in fp8 where the precision is left open."""


@dataclass(frozen=True)
class Software:
    """A framework and the number format of its matrix products."""

    framework: str
    precision: str


@dataclass(frozen=True)
class Setting:
    """What is the same for every candidate of a search."""

    model: Model
    training: Training
    rates: FailureRates
    parts: FabricParts
    power_ratio: float
    """Usual draw of a node over that of its accelerators. [1]"""
    year: float
    calibration: Calibration | None = None
    oversubscription: float = 1.0
    write_bytes_per_s: float | None = None
    """Of the storage that is there; none: what the plan should ask for. [B/s]"""

    def software(self, accelerator: Accelerator) -> tuple[Software, ...]:
        """What may run on an accelerator: what is asked for, or all that is known where that is left open."""
        asked = self.training
        known = ANY["adapters" if asked.method != "full" else "mixtures" if self.model.experts else "full"]
        frameworks = known if asked.framework == "any" else (asked.framework,)
        left_open = ANY_PRECISION if asked.method != "qlora" else ANY_PRECISION[:1]
        precisions = left_open if asked.precision == "any" else (asked.precision,)
        return tuple(
            Software(framework, precision)
            for framework in frameworks
            for precision in precisions
            if asked.precision != "any"
            or precision == "bf16"
            or (framework in EIGHT_BITS and precision in accelerator.peak_flop_per_s)
        )

    def under(self, software: Software) -> Setting:
        """The same with that software."""
        return replace(self, training=self.training.model_copy(update=vars(software)))

    def job(self, kind: Kind) -> Job:
        """The training job on a kind of node."""
        work = self.training
        return Job(
            self.model, kind.accelerator, kind.node, sequence_length=work.sequence_length, precision=work.precision,
            framework=work.framework, year=self.year, method=work.method, lora_rank=work.lora_rank,
            sample_length=work.sample_length, routing=work.routing,
            oversubscription=self.oversubscription, saving=Saving.asked(work),
        )  # fmt: skip

    def rates_of(self, quote: Quote, accelerators_a_node: int) -> FailureRates:
        """How often failures, and the provider, stop a job at this price."""
        return with_reclaims(self.rates, quote.node_mtbi_s, accelerators_a_node)

    def useful(self, nodes: NDArray[np.int64], accelerators_a_node: int, quote: Quote | None = None) -> Useful:
        """What failures (and the provider, at a price of spot nodes) leave of the time on some numbers of nodes."""
        size = saved_bytes(self.model, self.training)
        rates = self.rates if quote is None else self.rates_of(quote, accelerators_a_node)
        return useful_time(nodes, accelerators_a_node, size, rates, self.write_bytes_per_s)


def spares_of(useful: Useful, nodes: int, quote: Quote) -> int:
    """Spare nodes of a job; of a cluster that is there, at most those that are left."""
    wanted = int(useful.spares[nodes])
    return wanted if quote.paid_nodes is None else max(0, min(wanted, quote.paid_nodes - nodes))


def make(
    setting: Setting, kind: Kind, quote: Quote, layout: Layout, numbers: Mapping[str, float], useful: Useful
) -> Candidate:
    """The candidate with everything that follows from layout, node and price.

    Args:
        setting: Of the search.
        kind: Of node.
        quote: The price.
        layout: Of the job.
        numbers: ``step_time_s``, ``low_s``, ``high_s``, ``memory_bytes``, ``mfu``, ``exposed_communication_s``.
        useful: Goodput by number of nodes.
    """
    nodes = -(-layout.accelerators // kind.node.accelerators)
    spares = spares_of(useful, nodes, quote)
    fabric = fabric_of(kind.node, nodes + spares, setting.oversubscription, setting.parts)
    step, goodput = numbers["step_time_s"], float(useful.goodput[nodes])
    time = setting.training.steps * step / goodput
    watts = node_power(kind.node, kind.accelerator, setting.power_ratio)
    tokens = layout.global_batch * setting.training.sequence_length
    return Candidate(
        accelerator=kind.accelerator.name, node=kind.node.name, nodes=nodes, accelerators=layout.accelerators,
        nics=kind.node.nics, spares=spares, layout=layout, fabric=fabric,
        offer=Rent(
            provider=quote.provider, term=quote.term,
            usd_per_accelerator_hour=quote.per_accelerator_hour(
                nodes + spares, (nodes + spares) * kind.node.accelerators
            ),
            seen=quote.seen, region=quote.region, instance=quote.instance, source=quote.source,
        ),
        storage=storage_of_plan(
            useful.checkpoint_bytes, float(useful.interval_s[nodes]), float(useful.write_bytes_per_s[nodes])
        ),
        estimate=Estimate(
            step_time_s=step, interval=(numbers["low_s"], numbers["high_s"]), mfu=numbers["mfu"],
            tokens_per_s=tokens / step, memory_bytes=numbers["memory_bytes"], train_time_s=time, goodput=goodput,
            cost_usd=float(rent_cost(nodes + spares, quote, time)),
            power_w=float(run_power(nodes + spares, watts, fabric.power_w or 0.0)),
            exposed_communication_s=numbers["exposed_communication_s"],
            commitment_usd=float(committed_cost(nodes + spares, quote, time)) if quote.commitment_s else None,
        ),
    )  # fmt: skip


def fabric_of(node: Node, nodes: int, oversubscription: float, parts: FabricParts) -> Fabric:
    """The scale-out network of some nodes; a single node needs none."""
    if nodes <= 1 or not node.scales_out:
        return Fabric(topology="none", tiers=0, leaf=0, spine=0, core=0, nic_bits_per_s=node.nic_bits_per_s, cables=0)
    return _network(nodes, node.nics, node.nic_bits_per_s, radix_for(node, parts), oversubscription, parts)


@functools.lru_cache(maxsize=65536)
def _network(
    nodes: int, nics: int, nic_bits_per_s: float, radix: int, oversubscription: float, parts: FabricParts
) -> Fabric:
    found = first_fabric(nodes, nics, nic_bits_per_s, radix, oversubscription, parts)
    if found is not None:
        return Fabric(**{name: getattr(found, name) for name in Fabric.model_fields})
    return Fabric(
        topology="more than three tiers", tiers=4, leaf=0, spine=0, core=0, nic_bits_per_s=nic_bits_per_s, cables=0
    )
