"""A small cluster on one machine: every node has its own network, host name, process numbers and mounts.

A node is a process that holds namespaces; ending that process ends everything that runs on the node. All nodes hang on
one bridge, which lives in namespaces of its own: nothing of it is seen by the machine, and nothing stays behind.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENTER = ("--net", "--uts", "--mount", "--pid")
PATIENCE_S = 120.0
"""So long a scenario waits for a text in a log before it gives up."""


def run(*command: str, check: bool = True) -> str:
    """Run a command and give back what it printed."""
    done = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout


@dataclass(slots=True)
class Node:
    """One node: commands run on it see its network, host name and processes alone."""

    name: str
    address: str
    holder: subprocess.Popen[bytes]
    init: int
    """The machine's number of the node's first process."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command as it is run on the node."""
        return ["nsenter", f"--target={self.init}", *ENTER, "--", *command]

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command on the node to its end."""
        return run(*self.inside(command), check=check)

    def start(self, command: Sequence[str], log: IO[bytes], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a command on the node, its output into a file."""
        started = subprocess.Popen(
            self.inside(command), stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            env=os.environ | environment, start_new_session=True,
        )  # fmt: skip
        self.running.append(started)
        return started

    def process(self, number: int) -> int:
        """The machine's number of a process that the node knows under another."""
        space = (Path("/proc") / str(self.init) / "ns" / "pid").readlink()
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError, StopIteration):
                if folder.name.isdigit() and (folder / "ns" / "pid").readlink() == space:
                    status = (folder / "status").read_text()
                    numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()
                    if int(numbers[-1]) == number:
                        return int(folder.name)
        raise RuntimeError(f"{self.name} has no process {number}")


@dataclass(slots=True)
class Cluster:
    """Nodes on one bridge; the port of a node on the bridge has the node's name."""

    nodes: list[Node]
    switch: Node
    folder: Path
    groups: list[Path] = field(default_factory=list)

    def node(self, name: str) -> Node:
        """The node of this name."""
        return next(node for node in self.nodes if node.name == name)

    def group(self, controller: str, name: str, **limits: str) -> Path:
        """A control group with limits; removed with the cluster."""
        path = Path("/sys/fs/cgroup") / controller / f"cw-{os.getpid()}-{name}"
        path.mkdir(exist_ok=True)
        self.groups.append(path)
        for key, value in limits.items():
            (path / key.replace("__", ".")).write_text(value)
        return path


def _hold(name: str) -> tuple[subprocess.Popen[bytes], int]:
    spaces = ("--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    holder = subprocess.Popen(
        ["unshare", *spaces, "sleep", "infinity"], start_new_session=True, stdin=subprocess.DEVNULL
    )
    children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
    for _ in range(200):
        if numbers := children.read_text().split():
            init = int(numbers[0])
            if Path(f"/proc/{init}/comm").read_text().strip() == "sleep":
                run("nsenter", f"--target={init}", "--uts", "hostname", name)
                return holder, init
        time.sleep(0.02)
    raise RuntimeError(f"{name}: the namespaces did not come up")


@contextlib.contextmanager
def cluster(count: int, folder: Path, mtu: int = 1500) -> Iterator[Cluster]:
    """So many nodes, node1 first, ended with everything on them when the block is left.

    Args:
        count: Number of nodes.
        folder: Where the nodes' own files (/etc/hosts) lie.
        mtu: Largest packet of every port [B].
    """
    folder.mkdir(parents=True, exist_ok=True)
    hosts = folder / "hosts"
    names = [f"node{index + 1}" for index in range(count)]
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"10.77.0.{i + 1} {name}\n" for i, name in enumerate(names)))
    switch = Node("switch", "", *_hold("switch"))
    made = Cluster([], switch, folder)
    try:
        switch.run("ip", "link", "add", "fabric", "type", "bridge")
        switch.run("ip", "link", "set", "fabric", "mtu", str(mtu), "up")
        for index, name in enumerate(names):
            node = Node(name, f"10.77.0.{index + 1}", *_hold(name))
            made.nodes.append(node)
            _plug(node, switch, mtu)
            node.run("mount", "--bind", str(hosts), "/etc/hosts")
        yield made
    finally:
        _end(made)


def _plug(node: Node, switch: Node, mtu: int) -> None:
    plug = ("ip", "link", "add", node.name, "type", "veth", "peer", "name", "eth0", "netns", str(node.init))
    run("nsenter", f"--target={switch.init}", "--net", *plug)
    switch.run("ip", "link", "set", node.name, "mtu", str(mtu), "master", "fabric", "up")
    node.run("ip", "link", "set", "lo", "up")
    node.run("ip", "link", "set", "eth0", "mtu", str(mtu), "up")
    node.run("ip", "address", "add", f"{node.address}/24", "dev", "eth0")


def _end(made: Cluster) -> None:
    for node in (*made.nodes, made.switch):
        for process in (*node.running, node.holder):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for path in reversed(made.groups):
        for _ in range(50):
            with contextlib.suppress(OSError):
                path.rmdir()
                break
            time.sleep(0.1)


def wait_for(log: Path, text: str, patience_s: float = PATIENCE_S) -> None:
    """Wait until a log holds a text.

    Args:
        log: The file.
        text: What it must hold.
        patience_s: Give up after this time [s].
    """
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if log.exists() and text in log.read_text(errors="replace"):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{log}: no {text!r} after {patience_s:.0f} s")


def missing_programs() -> list[str]:
    """What this machine lacks to build a cluster."""
    lacking = [name for name in ("nsenter", "unshare", "ip") if shutil.which(name) is None]
    lacking += [] if os.geteuid() == 0 else ["root"]
    if not lacking and subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], check=False).returncode:
        lacking.append("namespaces of its own")
    return lacking
