"""Which network a job needs: its step time at other speeds, oversubscriptions and kinds of fabric."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from clusterwright.errors import InputError
from clusterwright.estimators.grid import Layouts
from clusterwright.estimators.job import Job
from clusterwright.estimators.keeping import Saving
from clusterwright.estimators.training import run
from clusterwright.facility import NetworkChoice, NetworkNeed
from clusterwright.hardware import FabricKind
from clusterwright.layout import Framework
from clusterwright.workload import Training

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.hardware import Node
    from clusterwright.layout import Layout
    from clusterwright.measurement import Calibration
    from clusterwright.plan import Candidate, Plan

NODE_GBPS = (100, 200, 400, 800, 1600, 3200, 6400)
"""Scale-out bandwidth of a node that is tried [Gb/s]; the last is what eight NICs of 800 Gb/s give."""
OVERSUBSCRIPTIONS = (1.0, 2.0, 7.0)
FABRICS = (FabricKind.INFINIBAND, FabricKind.ROCE, FabricKind.EFA, FabricKind.TCP)
ADEQUATE = 0.02
"""Share of the step time that an adequate network costs at most."""
_UNLIMITED_BYTES_PER_S = 1e15


def weigh_networks(
    job: Job,
    layout: Layout,
    calibration: Calibration | None = None,
    *,
    fabrics: Iterable[FabricKind] = FABRICS,
    node_gbps: Iterable[float] = NODE_GBPS,
    oversubscriptions: Iterable[float] = OVERSUBSCRIPTIONS,
) -> tuple[NetworkChoice, ...]:
    """The step of one layout on every network asked for.

    Oversubscription divides the bandwidth of every message between nodes: the worst case, where no traffic stays under
    one leaf.

    Args:
        job: What is trained, on what; its own network is not used.
        layout: How.
        calibration: Factors fitted to the user's own runs.
        fabrics: Kinds of fabric.
        node_gbps: Of a node [Gb/s].
        oversubscriptions: Leaf bandwidth down over up [1].

    Returns:
        One choice for each combination, in the order of the arguments.
    """
    layouts = Layouts.of(layout)
    best = run(_on(job, FabricKind.INFINIBAND, _UNLIMITED_BYTES_PER_S, 1.0), layouts, calibration)
    fastest = float(best.step_time_s[0])
    found = []
    for fabric in fabrics:
        for gbps in node_gbps:
            for ratio in oversubscriptions:
                share = gbps * 1e9 / 8.0 / job.node.accelerators
                step = run(_on(job, fabric, share, ratio), layouts, calibration)
                time = float(step.step_time_s[0])
                found.append(NetworkChoice(
                    fabric=fabric, node_bits_per_s=gbps * 1e9, oversubscription=ratio, step_time_s=time,
                    exposed_communication_s=float(step.exposed_communication_s[0]),
                    cost_share=max(1.0 - fastest / time, 0.0),
                ))  # fmt: skip
    return tuple(found)


def needs_of(choices: Iterable[NetworkChoice], cost_usd: float, step_time_s: float) -> tuple[NetworkNeed, ...]:
    """Of each kind of fabric the smallest network that costs little, and what the next size up would buy.

    Args:
        choices: As `weigh_networks` gives them.
        cost_usd: Of the run as planned [USD].
        step_time_s: Of a step as planned [s]; a shorter step shortens the run in proportion.
    """
    weighed = tuple(choices)
    found = []
    for kind in dict.fromkeys(c.fabric for c in weighed):
        least = smallest_adequate(weighed, kind)
        larger = next_larger(weighed, least) if least else None
        saves = least.step_time_s - larger.step_time_s if least and larger else None
        usd = None if saves is None else cost_usd * saves / step_time_s
        found.append(
            NetworkNeed(fabric=kind, adequate=least, next_up=larger, next_up_saves_s=saves, next_up_saves_usd=usd)
        )
    return tuple(found)


def weigh_networks_of_plan(plan: Plan) -> tuple[NetworkChoice, ...]:
    """`weigh_networks` for the job of a plan.

    Raises:
        InputError: the plan chose nothing, or is not of a training run.
    """
    section = plan.workload.get("training")
    if plan.chosen is None or plan.hardware_node is None or plan.hardware_accelerator is None or section is None:
        msg = "the networks of a plan are weighed for the training run that it chose; this plan has none"
        raise InputError(msg)
    training = Training.model_validate(section)
    job = Job(
        plan.model,
        plan.hardware_accelerator,
        plan.hardware_node,
        sequence_length=training.sequence_length,
        precision=plan.chosen.layout.precision,
        framework=training.framework,
        year=plan.catalogue_date.year + (plan.catalogue_date.month - 1) / 12,
        method=training.method,
        lora_rank=training.lora_rank,
        sample_length=training.sample_length,
        routing=training.routing,
        saving=Saving.asked(training),
    )
    if training.framework == "any":
        job = replace(job, framework=_stack_of(plan.chosen, replace(job, oversubscription=_oversubscription(plan))))
    return weigh_networks(job, plan.chosen.layout)


def _stack_of(chosen: Candidate, job: Job) -> str:
    """The framework that a plan chose and does not name: the one whose step takes as long as the plan's."""

    def gap(name: str) -> float:
        found = run(replace(job, framework=name), Layouts.of(chosen.layout))
        return abs(float(found.step_time_s[0]) - chosen.estimate.step_time_s)

    return min((str(name) for name in get_args(Framework) if name != "any"), key=gap)


def _oversubscription(plan: Plan) -> float:
    return float(plan.workload.get("cluster", {}).get("oversubscription", 1.0))


def _on(job: Job, fabric: FabricKind, accelerator_bytes_per_s: float, oversubscription: float) -> Job:
    """The job on another network."""
    node = job.node.model_copy(update={"fabric": fabric})
    return replace(job, node=node, nic_bytes_per_s=accelerator_bytes_per_s, oversubscription=oversubscription)


def choice_of(choices: Iterable[NetworkChoice], node: Node, oversubscription: float) -> NetworkChoice | None:
    """The network among those weighed that joins such nodes; none where it is of another size."""
    own = (node.fabric, node.nics * node.nic_bits_per_s, oversubscription)
    return next((c for c in choices if own == (c.fabric, c.node_bits_per_s, c.oversubscription)), None)


def smallest_adequate(
    choices: Iterable[NetworkChoice], fabric: FabricKind, share: float = ADEQUATE
) -> NetworkChoice | None:
    """The slowest network of a kind that costs no more than the share, the most oversubscribed of that speed."""
    able = [c for c in choices if c.fabric is fabric and c.cost_share <= share]
    return min(able, key=lambda c: (c.node_bits_per_s, -c.oversubscription), default=None)


def next_larger(choices: Iterable[NetworkChoice], than: NetworkChoice) -> NetworkChoice | None:
    """The next faster network of the same kind and oversubscription: what a size up would buy."""
    faster = [
        c
        for c in choices
        if c.fabric is than.fabric
        and c.oversubscription == than.oversubscription
        and c.node_bits_per_s > than.node_bits_per_s
    ]
    return min(faster, key=lambda c: c.node_bits_per_s, default=None)
