"""The launcher: one shell script that starts a node's processes, whatever scheduler brought it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Setting, Unsupported
from clusterwright.emitters.job import not_for
from clusterwright.emitters.network import nccl
from clusterwright.emitters.programs import bridge, deepspeed, fsdp, megatron, torchtitan
from clusterwright.emitters.ranks import FILE, rank_map
from clusterwright.emitters.writing import comment, shell_array, shell_exports

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusterwright.emitters.job import Job
    from clusterwright.emitters.programs.program import Program

SCRIPT = "launch.sh"
PORT = 29500
"""torchrun's default."""
_PROGRAMS = {
    "megatron": megatron.program,
    "megatron-bridge": bridge.program,
    "torchtitan": torchtitan.program,
    "fsdp": fsdp.program,
    "deepspeed": deepspeed.program,
}


def program_of(job: Job, framework: str = "") -> Program | tuple[Unsupported, ...]:
    """The training program of a plan (``any`` means Megatron), or why there is none."""
    refused = not_for(job)
    training = job.training
    if refused or training is None:
        return refused
    chosen = framework or training.framework
    return _PROGRAMS["megatron" if chosen == "any" else chosen](job, training)


def launcher(job: Job, program: Program) -> str:
    """The script."""
    world, settings = job.chosen.accelerators, nccl(job)[0]
    head = (
        f"Starts the processes of one node of {job.nodes}: {world} ranks, {job.per_node} a node.\n"
        "A scheduler that starts every rank itself sets RANK, LOCAL_RANK and WORLD_SIZE; else torchrun starts them, and\n"
        "NODE_RANK and MASTER_ADDR say where this node stands. Ranks count tensor first, then context, data, pipeline:\n"
        "ranks of one node are neighbours in the layout."
    )
    return "\n".join([
        "#!/usr/bin/env bash", comment(head), "set -euo pipefail\n",
        _paths(job), program.prepare, shell_array("arguments", program.arguments),
        shell_exports((*program.environment, *settings)),
        _start(job, program),
    ])  # fmt: skip


def _paths(job: Job) -> str:
    keys = {"DATA_DIR": "data_dir", "CHECKPOINT_DIR": "checkpoint_dir", "TOKENIZER": "tokenizer"}
    given = [(name, job.need(key)) for name, key in keys.items()]
    return shell_exports(Setting(name, str(value), value.why) for name, value in given)


def _start(job: Job, program: Program) -> str:
    world = job.chosen.accelerators
    return f"""\
if [ "${{WORLD_SIZE:-{world}}}" != "{world}" ]; then
  echo "the plan is for {world} ranks, not ${{WORLD_SIZE}}" >&2
  exit 1
fi
{_command(program)}if [ -n "${{RANK:-}}" ]; then
  exec python "${{command[@]}}" "${{arguments[@]}}"
fi
exec torchrun \\
  --nnodes={job.nodes} \\
  --nproc-per-node={job.per_node} \\
  --node-rank="${{NODE_RANK:?the number of this node, from 0}}" \\
  --master-addr="${{MASTER_ADDR:?the address of node 0}}" \\
  --master-port="${{MASTER_PORT:-{PORT}}}" \\
  "${{command[@]}}" "${{arguments[@]}}"
"""


def _command(program: Program) -> str:
    if program.module:
        return f"command=(-m {program.path})\n"
    return f"""\
command=("{program.path}")
if [ ! -f "${{command[0]}}" ]; then
  echo "${{command[0]}}: not in this image; name it with --set program, or start in its folder" >&2
  exit 1
fi
"""


def announced(job: Job, program: Program) -> tuple[Unsupported, ...]:
    """What neither program nor network settings express."""
    return (*program.unsupported, *nccl(job)[1])


def of_framework(name: str) -> Callable[[Job], Bundle]:
    """How the target of a framework writes: what every node starts with, and the rank map."""

    def write(job: Job) -> Bundle:
        program = program_of(job, name)
        if isinstance(program, tuple):
            return Bundle({}, program)
        return Bundle({SCRIPT: launcher(job, program), FILE: rank_map(job), **program.files}, announced(job, program))

    return write
