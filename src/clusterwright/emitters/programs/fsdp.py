"""Plain torch with FSDP2: a plan as a module that a training program imports: its mesh, its batch, its wrapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Unsupported
from clusterwright.emitters.programs.program import HERE, Program
from clusterwright.emitters.programs.rates import left_to_you, peak_rate, warmup_steps

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.workload import Training

MODULE = "plan_fsdp.py"
_PREPARE = f"""\
{HERE}
export PYTHONPATH="$here${{PYTHONPATH:+:$PYTHONPATH}}" # {MODULE} lies beside this script
"""


def program(job: Job, training: Training) -> Program | tuple[Unsupported, ...]:
    """The program of a plan, or why plain FSDP cannot run it."""
    layout = job.layout
    rules = [
        ("tp", layout.tp > 1, "tensor parallelism is a change of each layer, not a wrapping; torchtitan has it"),
        ("pp", layout.pp > 1, "pipeline stages need a program written for them; torchtitan has it"),
        ("cp", layout.cp > 1, "context parallelism is a change of attention; torchtitan has it"),
        ("ep", layout.ep > 1, "expert parallelism is a change of the layers; torchtitan has it"),
        (
            f"sharding = {layout.sharding}",
            layout.sharding in ("zero1", "distopt"),
            "FSDP shares weights and gradients too; for the optimizer alone take deepspeed or megatron",
        ),
        (f"precision = {layout.precision}", layout.precision != "bf16", "the mixed precision written here is bf16"),
        ("global_batch", layout.global_batch % (layout.dp * layout.micro_batch) > 0, "must divide by dp x micro_batch"),
    ]
    refused = tuple(Unsupported(what, why) for what, wrong, why in rules if wrong)
    if refused:
        return refused
    given = job.get("program")
    yours = Unsupported(
        "training program",
        f"yours builds the network and reads data: it imports mesh(), shard() and the batch from {MODULE}; name it with --set program",
    )
    adapters = (
        (Unsupported(f"method = {training.method}", "adapters are your program's own"),)
        if training.method != "full"
        else ()
    )
    path = str(given) if given else "${PROGRAM:?path of your training program}"
    return Program(
        "fsdp",
        path,
        (),
        (),
        prepare=_PREPARE,
        files={MODULE: _module(job, training)},
        unsupported=(*left_to_you(job, training, "your program makes it"), yours, *adapters),
    )


def _mesh(job: Job) -> tuple[int, int, str]:
    """Copies, ranks that share one, and why."""
    layout = job.layout
    if layout.sharding == "none":
        return layout.dp, 1, "every rank holds a copy [chosen.layout.sharding]"
    if layout.sharding == "hsdp" and job.nodes > 1:
        return (
            job.nodes,
            job.per_node,
            "one copy a node: weights travel inside it, gradients between nodes [chosen.layout.sharding, chosen.nodes]",
        )
    return 1, layout.dp, "one copy over all ranks [chosen.layout.sharding, dp]"


def _module(job: Job, training: Training) -> str:
    layout, (copies, shared, why), (rate, rate_why) = job.layout, _mesh(job), peak_rate(job)
    reshard = layout.sharding != "zero2"
    return f'''\
"""The plan for plain torch (2.6 or newer): {job.chosen.accelerators} ranks on {job.nodes} nodes."""

import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

REPLICATE = {copies}  # {why}
SHARD = {shared}  # {why}
RESHARD_AFTER_FORWARD = {reshard}  # {"weights are gathered again in the backward pass" if reshard else "weights stay whole until the backward pass"} [chosen.layout.sharding]
RECOMPUTE = {layout.recompute != "none"}  # layers are computed again in the backward pass [chosen.layout.recompute]
MICRO_BATCH = {layout.micro_batch}  # sequences a rank takes at once [chosen.layout.micro_batch]
MICRO_BATCHES = {layout.micro_batches}  # micro-batches of a step on each rank [chosen.layout.global_batch over dp x micro_batch]
SEQUENCE_LENGTH = {training.sequence_length}  # [workload.training.sequence_length]
STEPS = {training.steps}  # steps for all tokens [workload.training]
SAVE_INTERVAL = {job.save_steps}  # steps [chosen.storage.checkpoint_interval_s over chosen.estimate.step_time_s]
PEAK_LEARNING_RATE = {float(rate)!r}  # {rate_why}
WARMUP_STEPS = {warmup_steps(training)}  # not of the plan: 8000 of 1200000 steps in Llama 3, the same share here (arXiv 2407.21783 section 3.4.1)


def mesh(device: str = "cuda") -> DeviceMesh:
    """The mesh of the plan; ranks of one node share a copy."""
    return init_device_mesh(device, (REPLICATE, SHARD), mesh_dim_names=("replicate", "shard"))


def shard(network: nn.Module, layers: nn.ModuleList, over: DeviceMesh) -> nn.Module:
    """Share every layer, and then what is left of the network, over the mesh."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for index, layer in enumerate(layers):
        if RECOMPUTE:
            layers[index] = checkpoint_wrapper(layer)
        fully_shard(layers[index], mesh=over, mp_policy=policy, reshard_after_forward=RESHARD_AFTER_FORWARD)
    return fully_shard(network, mesh=over, mp_policy=policy, reshard_after_forward=RESHARD_AFTER_FORWARD)
'''
