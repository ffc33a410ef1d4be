"""The training job on a cluster, and what a person collects of it afterwards."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cluster import PATIENCE_S, Cluster, run, wait_for

if TYPE_CHECKING:
    import signal

    from cluster import Node

TRAIN = Path(__file__).resolve().parent / "train.py"
PORT = "29500"
ORDINARY = (
    "systemd[1]: Started Session 41 of User root.",
    "chronyd[611]: Selected source 10.77.0.250",
    "kernel: [ 5021.118204] IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
    "CRON[20231]: (root) CMD (test -x /usr/sbin/anacron || run-parts /etc/cron.hourly)",
    "sshd[20417]: Accepted publickey for root from 10.77.0.250 port 51022 ssh2: ED25519",
)
"""What any node logs in an hour."""


@dataclass(slots=True)
class Job:
    """Two ranks a node, started by torchrun or one by one; its logs lie in a folder of each node."""

    cluster: Cluster
    records: Path
    ranks_per_node: int = 2
    launcher: str = "torchrun"
    restarts: int = 0
    began: float = field(default_factory=time.time)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def folder(self, node: str) -> Path:
        """Where the node's logs lie."""
        path = self.records / node
        path.mkdir(parents=True, exist_ok=True)
        return path

    def log(self, rank: int) -> Path:
        """The log that the rank prints into."""
        node = self.cluster.nodes[rank // self.ranks_per_node].name
        return self.folder(node) / ("torchrun.log" if self.launcher == "torchrun" else f"rank{rank}.log")

    def start(
        self, *options: str, only: str = "", master: str = "node1", environment: dict[str, str] | None = None
    ) -> None:
        """Start the ranks of all nodes, or of one alone."""
        pids = self.cluster.folder / "pids"
        pids.mkdir(exist_ok=True)
        told = (str(TRAIN), f"--pids={pids}", *options)
        chosen = {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
        for index, node in enumerate(self.cluster.nodes):
            if only in {"", node.name}:
                starter = self._torchrun if self.launcher == "torchrun" else self._ranks
                starter(node, index, told, master, chosen | (environment or {}))

    def _torchrun(
        self, node: Node, index: int, told: tuple[str, ...], master: str, environment: dict[str, str]
    ) -> None:
        command = [
            sys.executable, "-m", "torch.distributed.run", f"--nnodes={len(self.cluster.nodes)}",
            f"--nproc-per-node={self.ranks_per_node}", f"--node-rank={index}", f"--master-addr={master}",
            f"--master-port={PORT}", "--tee=3", f"--max-restarts={self.restarts}", *told,
        ]  # fmt: skip
        with self.log(index * self.ranks_per_node).open("ab") as log:
            self.processes.append(node.start(command, log, environment))

    def _ranks(self, node: Node, index: int, told: tuple[str, ...], master: str, environment: dict[str, str]) -> None:
        for local in range(self.ranks_per_node):
            rank = index * self.ranks_per_node + local
            places = {
                "RANK": str(rank), "LOCAL_RANK": str(local), "MASTER_ADDR": master, "MASTER_PORT": PORT,
                "WORLD_SIZE": str(len(self.cluster.nodes) * self.ranks_per_node),
            }  # fmt: skip
            with self.log(rank).open("ab") as log:
                self.processes.append(node.start([sys.executable, *told], log, environment | places))

    def reach(self, text: str, rank: int = 0) -> None:
        """Wait until a rank has printed a text."""
        wait_for(self.log(rank), text)

    def process(self, rank: int) -> int:
        """The machine's number of a rank's process."""
        file = self.cluster.folder / "pids" / f"rank{rank}"
        wait_for(file, "")
        return self.cluster.nodes[rank // self.ranks_per_node].process(int(file.read_text()))

    def starter_of(self, node: str) -> int:
        """The machine's number of the process that started the ranks of a node."""
        started = self.processes[[each.name for each in self.cluster.nodes].index(node)].pid
        return int(Path(f"/proc/{started}/task/{started}/children").read_text().split()[0])

    def signal(self, rank: int, number: signal.Signals) -> None:
        """Send a signal to a rank."""
        os.kill(self.process(rank), number)

    def finish(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for the job to end; what does not end is left to the cluster's own end."""
        until = time.monotonic() + patience_s
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, until - time.monotonic()))

    def collect(self, name: str, *command: str) -> None:
        """What a command prints on every node, into a file of each."""
        for node in self.cluster.nodes:
            (self.folder(node.name) / name).write_text(node.run(*command, check=False))

    def kernel_logs(self, events: dict[str, list[str]] | None = None) -> None:
        """A system log of every node: what any node prints, and the events of this incident at their time."""
        for node in self.cluster.nodes:
            lines = [f"{_stamp(self.began + 3 * index)} {node.name} {line}" for index, line in enumerate(ORDINARY)]
            lines += (events or {}).get(node.name, [])
            (self.folder(node.name) / "kernel.log").write_text("\n".join(lines) + "\n")

    def event(self, node: str, text: str, at: float | None = None) -> str:
        """One line of a node's system log, as of now or of another time."""
        moment = time.time() if at is None else at
        return f"{_stamp(moment)} {node} kernel: [{moment - self.began + 5100:12.6f}] {text}"


def _stamp(moment: float) -> str:
    at = time.gmtime(moment)
    return f"{time.strftime('%b', at)} {at.tm_mday:2d} {time.strftime('%H:%M:%S', at)}"


def kernel_said(since: float) -> list[tuple[float, str]]:
    """What this machine's kernel has logged since a moment: time and text.

    Args:
        since: Seconds since 1970 [s].
    """
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    said = []
    for line in run("dmesg").splitlines():
        head, _, text = line.partition("] ")
        at = boot + float(head.strip("[ ")) if head.startswith("[") else 0.0
        if at >= since - 1:
            said.append((at, text))
    return said


def shifted(text: str, by_s: int) -> str:
    """The text with every time in it moved: what a node with a wrong clock prints.

    Args:
        text: A log.
        by_s: Seconds to move by [s].
    """

    def move(found: re.Match[str]) -> str:
        hours, minutes, seconds = (int(part) for part in found.groups())
        clock = dt.datetime(2000, 1, 2, hours, minutes, seconds, tzinfo=dt.UTC)
        return (clock + dt.timedelta(seconds=by_s)).strftime("%H:%M:%S")

    return re.sub(r"\b([0-2]\d):([0-5]\d):([0-5]\d)\b", move, text)


def clean(records: Path) -> None:
    """Remove an older record of the same incident."""
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir(parents=True)
