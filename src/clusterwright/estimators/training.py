"""The estimate of a training step: time, interval and memory of many layouts at once.

The tree of terms and the expected collectives of one layout are in `clusterwright.estimators.expectation`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators import keeping, offload
from clusterwright.estimators import layer as layers
from clusterwright.estimators.calibrated import calibrated, place_of, spread_of
from clusterwright.estimators.communication import Wires, communicate
from clusterwright.estimators.efficiency import shipped
from clusterwright.estimators.grid import RECOMPUTES, SCHEDULES, SHARDINGS, Layouts, distinct
from clusterwright.estimators.job import Device, Job, dispatches_once, padded
from clusterwright.estimators.residency import hold
from clusterwright.laws import pipeline, reliability, roofline, work
from clusterwright.model import Experts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.efficiency import Efficiency, Stack
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.measurement import Calibration
    from clusterwright.model import Model

    Floats = NDArray[Any]

__all__ = ["RECOMPUTES", "SHARDINGS", "USABLE_MEMORY", "Estimates", "Job", "Layouts", "estimate", "run"]

USABLE_MEMORY = 0.90
"""Share of an accelerator's memory that a job may plan to allocate: context, libraries and fragments take the rest."""
INTERVAL_80 = 1.2816
"""Standard deviations on either side that hold 80% of a normal distribution."""
LIKELY = 0.5
"""Probability from which on a job is estimated with stalls: the median of what is seen."""
OUTSIDE_80 = 0.9
"""Share of jobs that lie above the lower end of an interval that holds 80%, or below its upper end [1]."""
LOG_TO_SPREAD = 0.012
"""Growth of the estimate's spread for every factor of e in accelerators above a node: of the fitted runs of NVIDIA's
recipes, four fifths are within 4-5% at 8 accelerators and within 7-8% at 512."""
NOT_FITTED_SPREAD = 0.15
"""Standard deviation that an architecture adds whose runs were not fitted: what lasts of a product's speed differs by
that much between Ampere, Hopper and Blackwell."""
MIXTURE_SPREAD = 0.25
"""Standard deviation that mixtures add: one stack's releases differ by 1.3 to 1.6 on them."""


@dataclass(frozen=True)
class Estimates:
    """What `estimate` gives: arrays of the layouts' shape; the parts of the time add up to the step time."""

    step_time_s: Floats
    low_s: Floats
    high_s: Floats
    memory_bytes: Floats
    mfu: Floats
    exposed_communication_s: Floats
    parts: dict[str, Floats]
    memory_parts: dict[str, Floats]


def estimate(
    model: Model,
    accelerator: Accelerator,
    node: Node,
    layouts: Layouts,
    *,
    calibration: Calibration | None = None,
    **job: Any,  # noqa: ANN401 - the fields of Job
) -> Estimates:
    """Step time, its 80% interval and peak memory of every layout.

    Args:
        model: Shape of the network.
        accelerator: Its accelerator, at nameplate.
        node: The node it sits in.
        layouts: Arrays that broadcast together.
        calibration: Factors fitted to the user's own runs.
        **job: The other fields of `Job` (sequence_length, precision, framework, ...).

    Returns:
        Arrays of the layouts' common shape.
    """
    return run(Job(model, accelerator, node, **job), layouts, calibration)


def run(
    job: Job, layouts: Layouts, calibration: Calibration | None = None, efficiency: Efficiency | None = None
) -> Estimates:
    """`estimate` for a `Job`; with other curves than those shipped when given."""
    flat, shape = layouts.flat()
    efficiency = efficiency or shipped()
    stack = efficiency.stack_of(job.framework, job.year)
    machine = layers.Machine(
        job.accelerator,
        efficiency.curve(job.accelerator.architecture),
        stack,
        efficiency.law,
        job.precision,
        year=job.year,
        frozen=job.method != "full",
        natural=job.routing == "natural",
        once=dispatches_once(job, stack),
        graphed=stack.graphed(job.accelerator.name, job.precision, job.year),
        compiled=bool(job.saving.compiled),
    )
    device = _device(job, machine, flat)
    wires = Wires.of(job, efficiency)
    talk = communicate(job, stack, wires, flat, device)
    parts = _step(job, machine, flat, device, talk)
    stalled, likely = _stalls(job, stack, flat)
    if stack.stall:
        parts["stalled messages"] = stalled * (likely > LIKELY)
    place = place_of(job, flat) if calibration is not None else {}
    if calibration is not None:
        parts = calibrated(parts, calibration, place)
    step = np.asarray(sum(parts.values()), dtype=float)
    unknown = 0.0 if efficiency.fitted(job.accelerator.architecture) else NOT_FITTED_SPREAD
    spread = np.hypot(
        math.hypot(stack.spread, MIXTURE_SPREAD * mixtures(job.model), unknown),
        LOG_TO_SPREAD * np.log(np.maximum(flat.accelerators / 8.0, 1.0)),
    )
    if calibration is not None and calibration.runs:
        spread = np.minimum(spread, spread_of(parts, calibration, place))
    memory_parts = hold(job, flat)
    exposed = np.asarray(sum(v for k, v in parts.items() if k.endswith("communication")), dtype=float)
    free = step - parts.get("stalled messages", 0.0)
    found = Estimates(
        step,
        (free + stalled * (likely > OUTSIDE_80)) * np.exp(-INTERVAL_80 * spread),
        (free + stalled * (likely > 1 - OUTSIDE_80)) * np.exp(INTERVAL_80 * spread),
        np.asarray(sum(memory_parts.values()), dtype=float),
        _mfu(job, flat, step, machine.wide_peak),
        exposed,
        parts,
        memory_parts,
    )
    return _shaped(found, shape)


def _shaped(found: Estimates, shape: tuple[int, ...]) -> Estimates:
    def fit(value: Any) -> Any:  # noqa: ANN401 - array or dict of arrays
        if isinstance(value, dict):
            return {k: fit(v) for k, v in value.items()}
        if np.shape(value) == shape:
            return value
        return np.broadcast_to(value, (math.prod(shape),)).reshape(shape)

    return replace(found, **{name: fit(getattr(found, name)) for name in found.__dataclass_fields__})


def _device(job: Job, machine: layers.Machine, lay: Layouts) -> Device:
    (tp, cp, ep, batch), where = distinct(lay.tp, lay.cp, lay.ep, lay.micro_batch)
    tokens = batch * job.sequence_length / cp.astype(float)
    axes = (tp.astype(float), ep.astype(float), tokens)
    total = np.zeros((7, len(tp)))
    for block in job.model.kinds:
        scans = block.mixer is not None and block.mixer.kind == "state-space"
        length = job.sequence_length if scans else job.attended_length
        one = layers.layer(machine, block, job.model.hidden, length, axes)
        total += block.count * np.array(
            [one.products, one.backward, one.weight, one.attention, one.elementwise, one.feed, one.forward]
        )
    logits = layers.linear(machine, tokens, job.model.vocab / axes[0], job.model.hidden, wide=True)
    loss = roofline.memory_bound_time(14.0 * tokens * job.model.vocab / axes[0], machine.bandwidth)
    head = (logits[0] + logits[1] + loss) * (1 + job.model.mtp)
    count = job.model.layers
    stage = np.ceil(count / lay.pp)
    ends = padded(job, lay)
    stage = np.where(ends, (count + 2) / lay.pp, stage)
    mean = total / count
    products, backward, weight, attention, elementwise, feed, forward = (row[where] for row in mean)
    rest = np.maximum(count - stage * (lay.pp - 1), count // lay.pp)
    last = np.where(ends, stage - 1, np.where(count % lay.pp == 0, stage, rest))
    busy = (products + backward + (1 + machine.attention_backward) * attention + 3 * elementwise) * machine.factor
    launch = _host(job, machine, lay)
    spare = np.maximum(stage - np.maximum(last, 0), 0) * np.maximum(busy, launch)
    exposed_head = np.maximum(head[where] - spare, 0.0)
    device = Device(
        products,
        backward,
        weight,
        attention,
        elementwise,
        feed,
        exposed_head,
        forward,
        stage,
        busy,
        launch * stage,
        0 * busy,
    )
    return replace(device, again=_again(job, lay, device) * machine.factor)


def _host(job: Job, machine: layers.Machine, lay: Layouts) -> Floats:
    """Time to launch the kernels of one layer, forward and backward [s]."""
    stack = machine.stack
    relaunched = np.where(lay.recompute == RECOMPUTES.index("full"), 4 / 3, 1.0)
    between = (lay.pp > 1) & (lay.accelerators > job.node.accelerators)
    serial = np.where(between, 1.0 + stack.pipeline_host * lay.tp, 1.0)
    share = mixtures(job.model)
    eager = not (share and machine.graphed)
    return np.asarray(eager * (stack.host + stack.host_experts * share) * relaunched * serial)


def mixtures(model: Model) -> float:
    """Share of a model's layers that are mixtures of experts."""
    return sum(b.count for b in model.blocks if isinstance(b.feed, Experts)) / model.layers


def _step(
    job: Job,
    machine: layers.Machine,
    lay: Layouts,
    device: Device,
    talk: dict[str, Floats],
) -> dict[str, Floats]:
    stack, factor, lora = machine.stack, machine.factor, job.method != "full"
    micro_batches = lay.micro_batches.astype(float)
    products = (device.products + device.backward) * device.layers * factor
    attention = (1 + machine.attention_backward) * device.attention * device.layers * factor
    elementwise = 3.0 * device.elementwise * device.layers * factor
    again = device.again * device.layers
    busy = products + attention + elementwise + again + talk["tp"] + talk["cp"] + talk["ep"]
    last = busy + device.head
    floor = roofline.host_bound(last, device.launch) - last
    slot = {
        "matrix products": products,
        "attention": attention,
        "memory-bound kernels": elementwise,
        "recompute": again,
        "output head and loss": device.head,
        "launch floor": floor,
        "tensor-parallel communication": talk["tp"],
        "tensor-parallel waits": talk["wait"],
        "context-parallel communication": talk["cp"],
        "expert-parallel communication": talk["ep"],
        "pipeline communication": talk["pp"],
    }
    if job.saving.offload_activations:
        slot["activations to the host"] = offload.activations(job, lay, device) * device.layers
    one = np.asarray(sum(slot.values()), dtype=float)
    passes = np.where(lay.recompute == RECOMPUTES.index("full"), 4.0, 3.0)
    weight = roofline.host_bound(device.weight * device.layers * factor, device.launch / passes) * (not lora)
    others = np.maximum(job.model.layers - device.layers, 0.0) / np.maximum(lay.pp - 1.0, 1.0)
    without_head = one - last - floor + roofline.host_bound(busy, device.launch)
    other = without_head * others / device.layers
    run_time = np.where(
        lay.schedule == SCHEDULES.index("zero-bubble"),
        pipeline.zero_bubble(micro_batches, lay.pp, lay.vpp, one, weight, other),
        pipeline.one_forward_one_backward(micro_batches, lay.pp, lay.vpp, one, other),
    )
    parts = {name: value * micro_batches for name, value in slot.items()}
    parts["pipeline bubble"] = run_time - one * micro_batches
    parts["data-parallel communication"] = talk["dp"]
    parts |= offload.optimizer(job, machine.bandwidth, talk["owned"])
    parts["fixed time of a step"] = stack.step + 0.0 * one
    so_far = np.asarray(sum(parts.values()), dtype=float)
    parts["stragglers"] = so_far * machine.law.straggle * np.log2(np.maximum(lay.accelerators / 8.0, 1.0))
    return {name: np.asarray(value, dtype=float) for name, value in parts.items()}


def _stalls(job: Job, stack: Stack, lay: Layouts) -> tuple[Floats, Floats]:
    """Time that messages stall in a job that has a bad node [s], and the probability of one [1]."""
    nodes = np.maximum(lay.accelerators / job.node.accelerators, 1.0)
    whole = (lay.sharding == SHARDINGS.index("none")) & (lay.dp > 1) & (nodes > 1)
    waits = np.where(lay.pp > 1, pipeline.blocking_messages(lay.micro_batches, lay.pp), stack.stall_reduces * whole)
    return np.asarray(stack.stall * waits), reliability.any_bad(nodes, stack.stalling_nodes) * (waits > 0)


def _again(job: Job, lay: Layouts, device: Device) -> Floats:
    """Time in which a layer computes again what it did not keep [s]."""
    dropped = job.saving.recomputed
    way = keeping.shipped().of(job.framework, job.year, job.saving, job.model.name).selective
    if dropped is not None:
        some = device.attention * ("core_attn" in dropped) + device.feed * bool({"mlp", "moe"} & set(dropped))
        some = some + device.elementwise * bool(set(dropped) - {"core_attn"})
    elif way == "every second layer":
        some = device.forward / 2
    elif way == "every second product":
        some = device.products / 2 + device.elementwise
    else:
        some = device.attention
    full, selective = (lay.recompute == RECOMPUTES.index(name) for name in ("full", "selective"))
    return np.where(full, device.forward, np.where(selective, some, 0.0))


def model_flop_per_token(model: Model, sequence_length: int, *, frozen: bool = False) -> float:
    """Useful operations a token, forward and backward: 6 a parameter met, and causal attention as computed [FLOP].

    Embedding look-ups do no work; the output head does, tied or not. Frozen weights (adapters are trained beside
    them) need no gradient: 4 a parameter.
    """
    parameters = (
        model.active_parameters - model.embedding_parameters + (model.vocab * model.hidden if model.tied else 0)
    )
    total = (4.0 if frozen else 6.0) * parameters
    for block in model.kinds:
        mixer = block.mixer
        if mixer is None or mixer.kind == "state-space":
            continue
        keys = float(work.attended_tokens(sequence_length, mixer.window))
        value = getattr(mixer, "value_size", mixer.head_size)
        total += 3.0 * block.count * float(work.attention_flop(1, keys, mixer.heads, mixer.head_size, value))
    return total


def _mfu(job: Job, lay: Layouts, step: Floats, peak: float) -> Floats:
    each = model_flop_per_token(job.model, job.attended_length, frozen=job.method != "full")
    useful = each * lay.global_batch * job.sequence_length
    return np.asarray(useful / (step * lay.accelerators * peak), dtype=float)
