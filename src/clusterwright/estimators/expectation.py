"""The chosen layout in full: the tree of terms behind its numbers, and the collectives it will make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators import residency
from clusterwright.estimators.adapters import trained_a_rank, weight_bytes_a_rank
from clusterwright.estimators.communication import BF16, FULL_SHARDS, Wires
from clusterwright.estimators.efficiency import shipped
from clusterwright.estimators.grid import SHARDINGS, Layouts
from clusterwright.estimators.job import Job, data_ranks, domain_of
from clusterwright.estimators.training import run
from clusterwright.plan import Collective
from clusterwright.term import Kind, Term

if TYPE_CHECKING:
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.layout import Layout
    from clusterwright.measurement import Calibration
    from clusterwright.model import Model

LAWS = {
    "matrix products": "roofline.matrix_product_time, curves of the accelerator's architecture",
    "attention": "work.attention_flop over roofline.attention_time, or unfused_attention_time without a flash kernel",
    "memory-bound kernels": "work.elementwise_bytes over roofline.memory_bound_time",
    "recompute": "forward pass of the layers again, as far as the layout recomputes",
    "output head and loss": "roofline.matrix_product_time and 14 bytes a logit",
    "launch floor": "roofline.host_bound: what launching the kernels takes beyond computing",
    "tensor-parallel communication": "collectives.all_gather_ring or all_reduce_ring, less what the stack hides",
    "context-parallel communication": "collectives.send around the ring, less attention",
    "expert-parallel communication": "collectives.all_to_all_pairwise, less what the stack hides",
    "pipeline communication": "collectives.send, less what the stack hides",
    "pipeline bubble": "pipeline.one_forward_one_backward",
    "tensor-parallel waits": "what each collective waits for every further node that its group spans",
    "data-parallel communication": "collectives.all_gather_ring or all_reduce_ring, less what the stack hides",
    "optimizer step": "work.optimizer_bytes of the stack's states, over roofline.memory_bound_time",
    "optimizer on the host": "work.optimizer_bytes over the host's memory, and the link there and back",
    "activations to the host": "what a layer keeps, over the link, less forward and backward pass",
    "fixed time of a step": "the stack's fixed time",
    "stragglers": "loss to the slowest accelerator, by number of accelerators",
    "stalled messages": "pipeline.blocking_messages times the stack's stall, where reliability.any_bad is likely",
}
"""Part of the step time, and the law that gives it."""
FITTED = {"launch floor", "fixed time of a step", "stragglers", "stalled messages", "matrix products", "attention"}


def terms(
    model: Model,
    accelerator: Accelerator,
    node: Node,
    layout: Layout,
    *,
    calibration: Calibration | None = None,
    **job: Any,  # noqa: ANN401 - the fields of Job
) -> Term:
    """The tree of terms of one layout: step time [s] and memory [B] with all their parts.

    Args:
        model: Shape of the network.
        accelerator: Its accelerator.
        node: The node it sits in.
        layout: One layout.
        calibration: Factors fitted to the user's own runs.
        **job: The other fields of `Job`.

    Returns:
        A term ``estimate`` with parts ``step time``, ``memory`` and ``memory on the device``.
    """
    task, lay = Job(model, accelerator, node, **job), Layouts.of(layout)
    found = run(task, lay, calibration)
    stack = shipped().stack_of(str(job.get("framework", "any")), float(job.get("year", 2026.0)))

    def one(name: str, value: Any, unit: str, source: str) -> Term:  # noqa: ANN401 - array of one
        kind = Kind.FITTED if name in FITTED else Kind.ESTIMATED
        return Term(name=name, value=float(np.asarray(value).reshape(-1)[0]), unit=unit, kind=kind, source=source)

    laws = LAWS | ({"pipeline bubble": "pipeline.zero_bubble"} if layout.schedule == "zero-bubble" else {})
    step = Term(
        name="step time",
        value=float(found.step_time_s[0]),
        unit="s",
        kind=Kind.ESTIMATED,
        source=f"sum of its parts, as the stack {stack.name} runs them",
        parts=tuple(one(name, value, "s", laws[name]) for name, value in found.parts.items()),
    )
    allocated = found.memory_bytes
    memory = Term(
        name="memory",
        value=float(allocated[0]),
        unit="B",
        kind=Kind.ESTIMATED,
        source=f"peak of one accelerator of the fullest stage, as allocated by {residency.keeping_of(task)}",
        parts=tuple(one(name, value, "B", residency.LAWS[name]) for name, value in found.memory_parts.items()),
    )
    reserved, shown = (
        residency.reserved_bytes(task, found.memory_parts),
        residency.device_bytes(task, lay, found.memory_parts),
    )
    device = Term(
        name="memory on the device",
        value=float(shown[0]),
        unit="B",
        kind=Kind.ESTIMATED,
        source="what nvidia-smi shows",
        parts=(
            one("allocated", allocated, "B", "memory"),
            one("fragments", reserved - allocated, "B", "reserved over allocated memory of the stack's published runs"),
            one(
                "context and communicators",
                shown - reserved,
                "B",
                "context of the process, buffers of each communicator",
            ),
        ),
    )
    parts = (step, memory, device)
    return Term(name="estimate", value=step.value, unit="s", source="step time and memory", parts=parts)


def collectives(
    model: Model,
    accelerator: Accelerator,
    node: Node,
    layout: Layout,
    **job: Any,  # noqa: ANN401 - the fields of Job
) -> tuple[Collective, ...]:
    """The collectives that one rank makes in a step, with time and bus bandwidth as this plan expects them."""
    task = Job(model, accelerator, node, **job)
    efficiency = shipped()
    wires, domain, lay = Wires.of(task, efficiency), domain_of(task), Layouts.of(layout)
    stack = efficiency.stack_of(task.framework, task.year)
    micro_batches, stage = layout.micro_batches, float(np.ceil(model.layers / layout.pp))
    width = BF16 * layout.micro_batch * task.sequence_length / layout.cp * model.hidden
    found = []

    def add(axis: Any, operation: Any, ranks: float, stride: float, message: float, calls: float) -> None:  # noqa: ANN401 - literals
        if ranks <= 1 or calls <= 0:
            return
        p, s = np.array([float(ranks)]), np.array([float(stride)])
        law = {"all_reduce": wires.reduce, "all_to_all": wires.exchange}.get(operation, wires.gather)
        time = float(law(np.array([message]), p, s, domain)[0])
        factor = 2 * (ranks - 1) / ranks if operation == "all_reduce" else (ranks - 1) / ranks
        found.append(
            Collective(
                axis=axis,
                operation=operation,
                ranks=int(ranks),
                message_bytes=message,
                per_step=calls,
                crosses_nodes=ranks * stride > node.accelerators,
                expected_s=time,
                expected_bus_bytes_per_s=factor * message / time,
            )
        )

    if stack.sequence_parallel:
        add("tp", "all_gather", layout.tp, 1, width, 5 * stage * micro_batches)
        add("tp", "reduce_scatter", layout.tp, 1, width, 4 * stage * micro_batches)
    else:
        add("tp", "all_reduce", layout.tp, 1, width, 4 * stage * micro_batches)
    if model.experts:
        top_k = max(b.feed.top_k for b in model.blocks if b.feed is not None and b.feed.kind == "experts")
        add("ep", "all_to_all", layout.ep, 1, width * top_k / layout.tp, 4 * stage * micro_batches)
    ranks = float(data_ranks(lay)[0])
    trained, weights = (
        float(plain[0] + (experts[0] if layout.ep == 1 else 0.0))
        for plain, experts in (trained_a_rank(task, lay), weight_bytes_a_rank(task, lay, BF16))
    )
    if SHARDINGS.index(layout.sharding) in FULL_SHARDS:
        layers = max(stage, 1.0)
        add("dp", "all_gather", ranks, layout.tp, weights / layers, 2 * stage * micro_batches)
        add("dp", "reduce_scatter", ranks, layout.tp, stack.gradient * trained / layers, stage * micro_batches)
    elif layout.sharding == "none":
        add("dp", "all_reduce", ranks, layout.tp, stack.gradient * trained, 1)
    else:
        add("dp", "reduce_scatter", ranks, layout.tp, stack.gradient * trained, 1)
        add("dp", "all_gather", ranks, layout.tp, BF16 * trained, 1)
    return tuple(found)
