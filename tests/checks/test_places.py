"""Logs of many nodes in one file: every finding is of one place, never of a mixture of several."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis, Where

KNOWLEDGE = load_faults()
WATCHDOG = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=81234, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)
LOST = "NVRM: Xid (PCI:0000:5d:00): 79, pid=4123, GPU has fallen off the bus."
BUS = "NVRM: GPU 0000:5d:00.0: GPU has fallen off the bus."
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed."
GPU = "0000:5d:00.0"


def answer(lines: list[str]) -> Diagnosis:
    return diagnose([io.BytesIO(("\n".join(lines) + "\n").encode())], KNOWLEDGE)


MIXTURES: dict[str, tuple[list[str], dict[str, str]]] = {
    "pdsh, three lines": (
        [f"node17: {WATCHDOG.format(136)}", f"node03: kernel: {LOST}",
         "node03: torch.distributed.DistNetworkError: The client socket has timed out after 60s"],
        {"node": "node03", "accelerator": GPU},
    ),
    "pdsh, many lines": (
        [f"node17: {WATCHDOG.format(136)}", f"node18: {WATCHDOG.format(144)}", f"node17: {WATCHDOG.format(137)}",
         f"node03: kernel: {LOST}", f"node17: {WATCHDOG.format(138)}", f"node18: {WATCHDOG.format(145)}"],
        {"node": "node03", "accelerator": GPU},
    ),
    "journal with host names": (
        [f"Nov 30 10:00:00 node17 train[12]: {WATCHDOG.format(136)}", f"Nov 30 10:00:01 node03 kernel: {BUS}",
         f"Nov 30 10:00:02 node18 train[12]: {WATCHDOG.format(144)}"],
        {"node": "node03", "accelerator": GPU},
    ),
    "journal, ISO times": (
        [f"2026-11-30T10:00:00+00:00 gpu-a17 train[12]: {WATCHDOG.format(137)}",
         f"2026-11-30T10:00:01+00:00 gpu-a03 kernel: {BUS}"],
        {"node": "gpu-a03", "accelerator": GPU},
    ),
    "a kernel line without a host after a rank": (
        [WATCHDOG.format(136), f"[ 1234.567890] {BUS}"], {"accelerator": GPU},
    ),
    "a kernel line without a host, a node that waits": (
        [f"[ 1234.567890] {LOST}", f"node17: {WATCHDOG.format(136)}"], {"accelerator": GPU},
    ),
    "a kernel line without a host, another node's fault": (
        [f"[ 1234.567890] {LOST}",
         "Nov 30 10:00:00 node17 kernel: mlx5_core 0000:3b:00.0 eth2: Link down"],
        {"accelerator": GPU},
    ),
    "srun names node and task": (
        ["[rank24]: step 7 loss 2.1", "node02: GPU 3: temperature 40", "srun: error: node07: task 136: Killed",
         "srun: error: node08: task 144: Exited with exit code 1"],
        {"node": "node07", "rank": "136"},
    ),
    "srun -l": (
        [f"136: {WATCHDOG.format(136)}", f"137: {WATCHDOG.format(137)}", "24: [rank24]: RuntimeError: GPU is lost",
         "136: step 5", f"138: {WATCHDOG.format(138)}"],
        {"rank": "24"},
    ),
    "a rank of a node, and its like on another": (
        ["node01: [rank3]: step 5 loss 2.2",
         "node17: torch/distributed/elastic/api.py:869] failed (exitcode: -9) local_rank: 3 (pid: 4) of binary: python",
         "node01: [rank3]: step 6 loss 2.2"],
        {"node": "node17"},
    ),
    "memory errors of two nodes": (
        ["node05 | [rank40]: step 3 loss 2",
         "node12 | [rank96]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
         "node05 | kernel: NVRM: Xid (PCI:0000:9d:00): 48, pid=1, DBE", "node12 | [rank97]: step 3 loss 2"],
        {"node": "node12", "rank": "96"},
    ),
    "the health watch of two nodes": (
        ["node03: GPU 5: ok", "node17: | x | Detected more than 8 PCIe replays per minute |", "node17: | x |"],
        {"node": "node17"},
    ),
    "ports of two nodes": (
        ["node03: Settings for eth2:", "node17: Settings for eth5:", "node03: \tSpeed: Unknown!",
         "node17: \tLink detected: no", "node03: \tLink detected: yes"],
        {"node": "node17", "port": "eth5"},
    ),
    "a port, a rank, and a line of another node": (
        ["Settings for eth2:", "[rank136]: step 3 loss 2", "node17: kernel: eth7: up", "\tLink detected: no"],
        {"port": "eth2"},
    ),
    "a crash without a name": (
        [f"node17: {WATCHDOG.format(136)}", "node03: Fatal Python error: Segmentation fault", "node03: x"],
        {"node": "node03"},
    ),
    "a lost device": (
        ["node17: [rank136]: step 3 loss 1",
         "node03: Unable to determine the device handle for GPU0000:5D:00.0: GPU is lost.  Reboot the system",
         "node17: [rank136]: step 4 loss 1"],
        {"node": "node03", "accelerator": GPU},
    ),
    "links of two nodes": (
        ["node03: GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-1)", "node17: GPU 4: NVIDIA H100 80GB HBM3 (UUID: GPU-2)",
         "node03: NVML: Unable to retrieve NVLink information as all links are inActive"],
        {"node": "node03", "accelerator": "2"},
    ),
    "a launcher that kills a worker, and another": (
        ["node03: api.py:900] Unable to shutdown process 4 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
         "node17: failed (exitcode: -9) local_rank: 0 (pid: 4) of binary: python"],
        {"node": "node17"},
    ),
    "MPI": (
        ["node03: rank 24 begins",
         "mpirun noticed that process rank 136 with PID 811 on node node17 exited on signal 9 (Killed)."],
        {"node": "node17", "rank": "136"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("mixture", sorted(MIXTURES))
def test_a_finding_of_a_mixed_log_is_of_one_place(mixture: str) -> None:
    lines, place = MIXTURES[mixture]
    assert answer(lines).findings[0].where.named() == place


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([OOM], {}),
        ([OOM, "srun: error: node17: task 136: Out Of Memory"], {"node": "node17", "rank": "136"}),
        (
            ["Nov 30 10:00:00 node17 kernel: Out of memory: Killed process 42 (python3) total-vm:1000kB", OOM],
            {"node": "node17"},
        ),
    ],
)
def test_a_job_out_of_memory_is_one_finding_whoever_tells_it(lines: list[str], place: dict[str, str]) -> None:
    (finding,) = answer(lines).findings
    assert (finding.where.named(), finding.action) == (place, "fix-config")


NODES = (3, 17, 40)
"""Every node has eight ranks, and an address, a port and ranks that no other node has."""
SAID = (
    "[rank{rank}]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "[rank{rank}]: RuntimeError: CUDA error: an illegal memory access was encountered",
    WATCHDOG.replace("{0}", "{rank}"),
    "[rank{rank}]: step 7 loss 2.1",
    "kernel: NVRM: Xid (PCI:0000:{bus}:00): 79, pid=4, GPU has fallen off the bus.",
    "kernel: NVRM: Xid (PCI:0000:{bus}:00): 48, pid=4, DBE",
    "kernel: NVRM: GPU 0000:{bus}:00.0: GPU has fallen off the bus.",
    "NCCL WARN NET/IB : mlx5_{node}:1 Got async event : port error",
    "Fatal Python error: Segmentation fault",
    "torch/distributed/elastic/api.py:869] failed (exitcode: -9) local_rank: 3 (pid: 4) of binary: python",
    "GPU 00000000:{bus}:00.0",
    "torch.distributed.DistNetworkError: The client socket has timed out after 60s",
)
STYLES = ("job begins\nnode{node:02d}: {said}", "[  12.345678] {said}", "node{node:02d}: {said}",
           "node{node:02d} | {said}", "Nov 30 10:00:00 node{node:02d} train[12]: {said}",
           "2026-11-30T10:00:00+00:00 node{node:02d} train[12]: {said}")  # fmt: skip


def node_of(place: Where) -> set[int]:
    """The nodes that the parts of a place are of."""
    found = {int(part[-2:]) for part in (place.node,) if part}
    found |= {int(part.split(":")[1], 16) for part in (place.accelerator,) if part and ":" in part}
    found |= {int(part.rpartition("_")[2]) for part in (place.port,) if part and part.startswith("mlx5_")}
    return found | {int(part) // 8 for part in (place.rank,) if part}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(STYLES),
    st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(SAID), st.integers(0, 7)), min_size=2, max_size=12),
)
def test_no_order_of_the_lines_of_many_nodes_mixes_their_places(style: str, said: list[tuple[int, str, int]]) -> None:
    lines = [
        style.format(node=node, said=text.format(rank=8 * node + rank, bus=f"{node:02x}", node=node))
        for node, text, rank in said
    ]
    for finding in answer(lines).findings:
        assert len(node_of(finding.where)) <= 1, (lines, finding.where)
