"""Slurm: the batch script, and the fragments of the designed cluster's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.launch import PORT, SCRIPT, announced, launcher, program_of
from clusterwright.emitters.programs.program import KEYS_NEEDED, KEYS_TAKEN, Program
from clusterwright.emitters.ranks import FILE, rank_map
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import comment

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

SEGMENT_SINCE = (24, 5)
"""First version with ``--segment`` (release notes of 24.05)."""


def write(job: Job) -> Bundle:
    """Batch script, launcher, rank map and fragments."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    files = {
        "job.sbatch": _batch(job, program), SCRIPT: launcher(job, program), FILE: rank_map(job), **program.files,
        "topology.conf": _topology(job), "gres.conf": _gres(job), "slurm.conf.fragment": _slurm_conf(job),
    }  # fmt: skip
    return Bundle(files, (*announced(job, program), *_gaps(job)))


def _options(job: Job) -> list[tuple[str, str]]:
    limit, given = job.get("time_limit"), [job.need("partition"), job.need("account")]
    found = [
        (f"--job-name={job.name}", "model and accelerators [model.name, chosen.accelerators]"),
        (f"--partition={given[0]}", given[0].why),
        (f"--account={given[1]}", given[1].why),
        (f"--nodes={job.nodes}", "without spares [chosen.nodes]"),
        (f"--ntasks-per-node={job.per_node}", "one process an accelerator [chosen.accelerators over chosen.nodes]"),
        (f"--gpus-per-node={job.per_node}", "every process sees its neighbours, for NVLink [chosen.accelerators over chosen.nodes]"),
        ("--distribution=block:block", "ranks of a node are neighbours: rank = node x processes + local, as in ranks.tsv [chosen.layout]"),
        ("--exclusive", "no other job shares the node's network or memory"),
        ("--mem=0", "all memory of the node"),
        ("--requeue", "after a lost node the job starts again from the newest checkpoint [chosen.storage]"),
        (f"--signal=TERM@{job.grace_s}", "before the time limit: two steps and two checkpoints [chosen.estimate.step_time_s, chosen.storage]"),
        ("--open-mode=append", "a requeued job keeps its log"),
        ("--output=%x-%j.log", "job name and number"),
    ]  # fmt: skip
    segment = _segment(job)
    if segment:
        found.append(
            (
                f"--segment={segment}",
                "whole scale-up domains, so that tensor ranks stay inside one [hardware_node.scale_up_domain]",
            )
        )
    if limit is not None:
        found.append((f"--time={limit}", limit.why))
    return found


def _segment(job: Job) -> int:
    given = job.get("slurm_version")
    if given is None or tuple(int(p) for p in str(given).split(".")) < SEGMENT_SINCE:
        return 0
    size = job.node.scale_up_domain // max(job.node.accelerators, 1)
    return size if size > 1 and job.nodes % size == 0 else 0


def _batch(job: Job, program: Program) -> str:
    lines = "".join(f"# {why}\n#SBATCH {option}\n" for option, why in _options(job))
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes; submit in the folder of these files."
    limit = (
        ""
        if job.get("time_limit")
        else "# No --time: the partition's limit stands; give yours with --set time_limit.\n"
    )
    again = ""
    if program.finished:
        again = (
            "# Left before the last step (time limit, SIGTERM): queue the same job again, it continues from its checkpoint.\n"
            f"if ((code == 0)) && ! {program.finished}; then\n"
            '  scontrol requeue "$SLURM_JOB_ID"\n'
            "fi\n"
        )
    return (
        f"#!/bin/bash\n{comment(head)}{lines}{limit}"
        f"""
set -euo pipefail
here="${{SLURM_SUBMIT_DIR:?}}"
MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)" # node 0 holds rank 0
export MASTER_ADDR MASTER_PORT={PORT}
export CHECKPOINT_DIR={job.need("checkpoint_dir")} # {job.need("checkpoint_dir").why}

code=0
# One lost rank stops the step: the others would wait for it. srun counts the ranks; the launcher reads them.
# shellcheck disable=SC2016 # the task's own shell expands these
srun --kill-on-bad-exit=1 bash -c '
  export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID" WORLD_SIZE="$SLURM_NTASKS"
  exec bash "$0/{SCRIPT}"
' "$here" || code=$?

{again}exit "$code"
"""
    )


def _topology(job: Job) -> str:
    groups = job.leaf_groups
    head = f"Leaves of the designed network, for TopologyPlugin=topology/tree [chosen.fabric: {job.chosen.fabric.leaf} leaf, {job.chosen.fabric.spine} spine]\n{_named(job)}"
    lines = [f"SwitchName=leaf{i} Nodes={','.join(group)}" for i, group in enumerate(groups, 1)]
    if len(groups) > 1:
        lines.append(f"SwitchName=spine Switches=leaf[1-{len(groups)}]")
    return comment(head) + "\n".join(lines) + "\n"


def _named(job: Job) -> str:
    if job.hosts:
        return "Nodes are named as in site.hosts."
    return "Nodes are numbered after the plan's node [chosen.node, chosen.nodes, chosen.spares]; give yours with --set hosts=a,b,..."


def _kind(job: Job) -> str:
    return "".join(c for c in job.chosen.accelerator.split("-")[0].lower() if c.isalnum()) or "gpu"


def _gres(job: Job) -> str:
    if job.accelerator.vendor != "nvidia":
        found = {"amd": "AutoDetect=rsmi", "intel": "AutoDetect=oneapi"}[job.accelerator.vendor]
        return comment("slurmd asks the driver: its device files have no fixed numbers.") + f"{found}\n"
    head = (
        f"The devices of every node, of the type in slurm.conf [hardware_node.accelerators, chosen.accelerator].\n{_named(job)}\n"
        "A slurmd that was built with NVML finds them and their NVLink by itself: AutoDetect=nvml, and no line."
    )
    last = job.node.accelerators - 1
    files = "/dev/nvidia0" if last == 0 else f"/dev/nvidia[0-{last}]"
    return comment(head) + f"NodeName={','.join(job.node_names)} Name=gpu Type={_kind(job)} File={files}\n"


def _slurm_conf(job: Job) -> str:
    cpus, memory = job.get("cpus_per_node"), job.get("memory_gib_per_node")
    size = f" CPUs={cpus}" if cpus else ""
    size += f" RealMemory={int(str(memory)) * 1024}" if memory else ""
    nodes = ",".join(job.node_names)
    partition = job.need("partition")
    lines = [
        ("GresTypes=gpu", "accelerators are a counted resource"),
        ("SelectType=select/cons_tres", "the only selection that counts accelerators a node"),
        ("TopologyPlugin=topology/tree", "places a job under as few leaves as it can, by topology.conf"),
        ("JobRequeue=1", "a job whose node died is queued again"),
        (f"NodeName={nodes} Gres=gpu:{_kind(job)}:{job.node.accelerators}{size} State=UNKNOWN", "nodes and spares [chosen.nodes, chosen.spares, hardware_node.accelerators]"),
        (f"PartitionName={partition} Nodes={nodes} State=UP OverSubscribe=EXCLUSIVE", f"whole nodes: {partition.why}"),
    ]  # fmt: skip
    head = f"Lines to merge into slurm.conf; not a whole one.\n{_named(job)}"
    return comment(head) + "".join(f"# {why}\n{line}\n" for line, why in lines)


def _gaps(job: Job) -> list[Unsupported]:
    found = [
        Unsupported(
            "container image",
            "Slurm starts containers only through a plugin of the site (Pyxis); start it around the launcher, in the sbatch",
        )
    ]
    if not job.hosts:
        found.append(
            Unsupported(
                "host names",
                "the plan has none: the fragments number nodes after the plan's node; give hosts with --set",
            )
        )
    elif len(job.hosts) < job.nodes:
        found.append(Unsupported("host names", f"{len(job.hosts)} hosts are given, the job needs {job.nodes}"))
    if job.get("cpus_per_node") is None or job.get("memory_gib_per_node") is None:
        found.append(
            Unsupported(
                "CPUs and RealMemory",
                "the plan knows no processors or memory of the node; `slurmd -C` on it prints them, or give cpus_per_node and memory_gib_per_node",
            )
        )
    if job.node.scale_up_domain > job.node.accelerators and not _segment(job):
        found.append(
            Unsupported(
                "scale-up domains over several nodes",
                "--segment is written only where slurm_version is given, at least 24.05, and divides the nodes",
            )
        )
    return found


TARGET = Target(
    "slurm", "sbatch script with requeue and rank map; topology.conf, gres.conf and slurm.conf fragments",
    ("partition", "account", *KEYS_NEEDED),
    ("hosts", "time_limit", "slurm_version", "cpus_per_node", "memory_gib_per_node", *KEYS_TAKEN), write,
)  # fmt: skip
