"""MPI: a host file and a launcher that measures the collectives the plan counts on, with nccl-tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.network import nccl
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import comment, shell_exports

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.plan import Collective

PROGRAMS = {
    "all_reduce": "all_reduce_perf",
    "all_gather": "all_gather_perf",
    "reduce_scatter": "reduce_scatter_perf",
    "all_to_all": "alltoall_perf",
    "send_recv": "sendrecv_perf",
}
"""Collective and its program in nccl-tests (https://github.com/NVIDIA/nccl-tests)."""


def write(job: Job) -> Bundle:
    """Host file (where hosts are named) and launcher."""
    if not job.even:
        return Bundle({}, (Unsupported("uneven nodes", "every node must run the same number of processes"),))
    files = {"collectives.sh": _script(job)}
    if job.hosts:
        names = job.hosts[: job.nodes]
        head = "Nodes in the order of the racks [site.hosts]; slots: one process an accelerator [chosen.accelerators over chosen.nodes]"
        files["hostfile"] = comment(head) + "".join(f"{name} slots={job.per_node}\n" for name in names)
    return Bundle(files, tuple(_left(job)))


def _split(job: Job, collective: Collective) -> str | None:
    """How nccl-tests parts the ranks into the plan's groups; none when it cannot."""
    layout = job.layout
    inner = layout.tp * layout.cp
    if collective.ranks == job.chosen.accelerators:
        return ""
    if collective.axis == "tp" or (collective.axis == "cp" and layout.tp == 1):
        return f"DIV {collective.ranks}"
    if collective.axis == "dp" and layout.pp == 1 and collective.ranks * inner == job.chosen.accelerators:
        return f"MOD {inner}"
    if collective.axis == "pp" and collective.ranks == layout.pp:
        return f"MOD {job.chosen.accelerators // layout.pp}"
    return None


def _script(job: Job) -> str:
    settings = nccl(job)[0]
    head = (
        f"Measures the collectives of the plan on {job.nodes} nodes of {job.per_node}, as its ranks make them.\n"
        "Needs nccl-tests built with MPI=1 on PATH. Compare the bus bandwidth (busbw) with the plan's."
    )
    exported = "".join(f" -x {setting.name}" for setting in settings)
    hosts = ' --hostfile "$here/hostfile"' if job.hosts else ""
    find = 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"\n' if job.hosts else ""
    lines = [_line(job, one) for one in job.plan.collectives if _split(job, one) is not None]
    return (
        f"#!/usr/bin/env bash\n{comment(head)}set -euo pipefail\n{find}{shell_exports(settings)}"
        f"run=(mpirun{hosts} -np {job.chosen.accelerators} --map-by ppr:{job.per_node}:node --bind-to none{exported})\n\n"
        f"echo 'all reduce over all {job.chosen.accelerators} ranks, by size'\n"
        '"${run[@]}" all_reduce_perf -b 8 -e 8G -f 2 -g 1 -n 20 -w 5\n' + "".join(lines)
    )


def _line(job: Job, one: Collective) -> str:
    name = f"{one.axis} {one.operation.replace('_', ' ')} of {one.ranks} ranks, {one.message_bytes:.0f} bytes"
    rate = f"the plan expects {one.expected_bus_bytes_per_s / 1e9:.1f} GB/s bus bandwidth [collectives]"
    size, split = max(8, round(one.message_bytes)), _split(job, one)
    part, passed = (f"NCCL_TESTS_SPLIT='{split}' ", "-x NCCL_TESTS_SPLIT ") if split else ("", "")
    return f"\necho '{name}: {rate}'\n{part}\"${{run[@]}}\" {passed}{PROGRAMS[one.operation]} -b {size} -e {size} -g 1 -n 50 -w 10\n"


def _left(job: Job) -> list[Unsupported]:
    found = [*nccl(job)[1]]
    if not job.hosts:
        found.append(
            Unsupported("hostfile", "no hosts in [site]: mpirun takes the nodes of the scheduler it is started under")
        )
    elif len(job.hosts) < job.nodes:
        found.append(Unsupported("hostfile", f"{len(job.hosts)} hosts are given, the plan has {job.nodes} nodes"))
    neither = "nccl-tests parts ranks only by division or remainder; these groups are neither"
    return [
        *found,
        *(Unsupported(f"{c.axis} {c.operation}", neither) for c in job.plan.collectives if _split(job, c) is None),
    ]


TARGET = Target(
    "mpi",
    "host file and nccl-tests launcher for the collectives that the plan counts on",
    ("interface",),
    ("hosts", "dscp"),
    write,
)
