"""The incidents: what is done to a running job, who is guilty, and what the logs can tell of it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cluster import cluster, run
from job import Job, kernel_said, shifted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STEPS = ("--steps=600", "--work=40")
"""A run that is still going when something happens to it."""
SHORT = ("--steps=24", "--work=40")
ADDRESSES = ("ip", "-s", "address", "show", "dev", "eth0")


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of an incident because it was made."""

    what: str
    """What was done."""
    node: str = ""
    """The guilty node; empty where none is, or where the logs cannot tell."""
    rank: int | None = None
    verdict: str = "fault"
    actions: tuple[str, ...] = ("investigate",)
    cause_words: tuple[str, ...] = ()
    """One of them stands in the cause or the reason."""
    written: tuple[str, ...] = ()
    """Files whose lines were written, not recorded: this machine has no such device."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """An incident and how it is made."""

    build: Callable[[Path, Path], None]
    label: Label
    tags: tuple[str, ...] = field(default=())


SCENARIOS: dict[str, Scenario] = {}


def scenario(label: Label) -> Callable[[Callable[[Path, Path], None]], Callable[[Path, Path], None]]:
    """Enter a function into the table under its own name."""

    def enter(build: Callable[[Path, Path], None]) -> Callable[[Path, Path], None]:
        SCENARIOS[build.__name__.replace("_", "-")] = Scenario(build, label)
        return build

    return enter


@contextlib.contextmanager
def job(records: Path, scratch: Path, *, nodes: int = 4, launcher: str = "torchrun", mtu: int = 1500) -> Iterator[Job]:
    """A job on a cluster of its own."""
    with cluster(nodes, scratch, mtu) as made:
        yield Job(made, records, launcher=launcher)


@scenario(Label("nothing: the run ends as it should", verdict="healthy", actions=("none",)))
def healthy(records: Path, scratch: Path) -> None:
    """A sound run."""
    with job(records, scratch) as made:
        made.start(*SHORT, "--links")
        made.finish()
        made.collect("ip.txt", *ADDRESSES)
        made.collect("ss.txt", "ss", "-tin")
        made.kernel_logs()


@scenario(
    Label("the port of node3 is shaped to 100 Mbit/s, both ways", "node3", actions=("investigate", "call-network"),
          cause_words=("slow", "bandwidth"))
)  # fmt: skip
def slow_link(records: Path, scratch: Path) -> None:
    """A port that is slower than the others."""
    with job(records, scratch) as made:
        shape = ("root", "tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms")
        made.cluster.switch.run("tc", "qdisc", "add", "dev", "node3", *shape)
        made.cluster.node("node3").run("tc", "qdisc", "add", "dev", "eth0", *shape)
        made.start(*SHORT, "--links", "--timeout=60")
        made.finish()
        made.collect("ss.txt", "ss", "-tin")
        made.collect("ip.txt", *ADDRESSES)
        made.kernel_logs()


@scenario(
    Label("node2 loses 3 of 100 packets, both ways", "node2", actions=("investigate", "call-network"),
          cause_words=("loss", "lost", "retransmit"))
)  # fmt: skip
def packet_loss(records: Path, scratch: Path) -> None:
    """A port that loses packets: only the counters of the connections tell."""
    with job(records, scratch, launcher="ranks") as made:
        drop = "numgen random mod 1000 < 30 drop"
        made.cluster.switch.run(
            "nft",
            "add table bridge lossy; add chain bridge lossy pass { type filter hook forward priority 0; };"
            f"add rule bridge lossy pass iifname node2 {drop}; add rule bridge lossy pass oifname node2 {drop}",
        )
        made.start(*STEPS, "--timeout=60")
        made.reach("step 30/")
        made.collect("ss.txt", "ss", "-tin")
        made.collect("ip.txt", *ADDRESSES)
        made.kernel_logs()


@scenario(
    Label("the port of node3 goes down while the job runs", "node3", actions=("call-network",),
          cause_words=("link", "port"), written=("node3/kernel.log",))
)  # fmt: skip
def link_down(records: Path, scratch: Path) -> None:
    """A port that goes down: every rank of every node times out."""
    with job(records, scratch) as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.cluster.switch.run("ip", "link", "set", "node3", "down")
        down = made.event("node3", "mlx5_core 0000:9f:00.0 eth0: Link down")
        made.finish()
        made.kernel_logs({"node3": [down]})


@scenario(
    Label("rank 5 is stopped (SIGSTOP); its node's process table is at hand", "node3", 5,
          cause_words=("stopped",))
)  # fmt: skip
def stopped_rank(records: Path, scratch: Path) -> None:
    """A rank that is stopped: all others time out, and the process table shows it."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.signal(5, signal.SIGSTOP)
        time.sleep(3)
        made.collect("ps.txt", "ps", "-eo", "pid,stat,wchan:24,etimes,args")
        made.finish(40)
        made.kernel_logs()


@scenario(
    Label(
        "rank 6 is stopped (SIGSTOP); there are only the job's logs",
        "node4",
        6,
        cause_words=("missing", "silent", "nothing"),
    )
)
def silent_rank(records: Path, scratch: Path) -> None:
    """A rank that falls silent: only its silence tells."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.signal(6, signal.SIGSTOP)
        made.finish(40)


@scenario(
    Label("rank 4 is stopped (SIGSTOP) under torchrun, which in the end kills it", "node3", 4,
          cause_words=("did not end", "silent", "stuck"))
)  # fmt: skip
def held_rank(records: Path, scratch: Path) -> None:
    """A stopped rank that the launcher kills afterwards: the signal 9 is an echo."""
    with job(records, scratch) as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.signal(4, signal.SIGSTOP)
        made.finish(90)
        made.collect("ip.txt", *ADDRESSES)


@scenario(Label("rank 3 is killed (SIGKILL), not by the kernel", "node2", 3, cause_words=("killed", "signal 9")))
def killed_rank(records: Path, scratch: Path) -> None:
    """A rank that is killed: torchrun of its node says so, the others see closed connections."""
    with job(records, scratch) as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.signal(3, signal.SIGKILL)
        made.finish()
        made.collect("ip.txt", *ADDRESSES)
        made.kernel_logs()


@scenario(Label("rank 5 meets a batch of another shape", "node3", 5, cause_words=("shape", "program", "traceback")))
def shape_error(records: Path, scratch: Path) -> None:
    """One rank raises an error of the program."""
    with job(records, scratch) as made:
        made.start(*STEPS, "--mistake=shape:5:8")
        made.finish()
        made.kernel_logs()


@scenario(
    Label("the loss of rank 2 is not a number; the program asserts", "node2", 2, cause_words=("not a number", "nan"))
)
def nan_loss(records: Path, scratch: Path) -> None:
    """One rank stops at a loss that is not a number."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS, "--style=rank", "--mistake=nan:2:8")
        made.finish()


@scenario(
    Label("the file system for checkpoints of node2 is full", "node2", 2, actions=("fix-config", "call-storage"),
          cause_words=("space", "full"))
)  # fmt: skip
def full_disk(records: Path, scratch: Path) -> None:
    """A full file system on one node."""
    with job(records, scratch) as made:
        for node in made.cluster.nodes:
            size = "6m" if node.name == "node2" else "64m"
            node.run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", "/mnt")
        made.start(*STEPS, "--checkpoint-dir=/mnt", "--checkpoint-every=3")
        made.finish()
        made.kernel_logs()


@scenario(
    Label(
        "rank 7 takes more memory than its control group has",
        "node4",
        7,
        actions=("fix-config",),
        cause_words=("memory",),
    )
)
def out_of_memory(records: Path, scratch: Path) -> None:
    """A real kill by the kernel's OOM killer, in the kernel log of one node."""
    with job(records, scratch) as made:
        began = time.time()
        group = made.cluster.group("memory", "rank7", memory__limit_in_bytes=str(600 << 20))
        made.start(*STEPS, "--mistake=leak:7:8")
        made.reach("step 1/", 7)
        (group / "cgroup.procs").write_text(str(made.process(7)))
        made.finish()
        said = [made.event("node4", text, at) for at, text in kernel_said(began)]
        made.kernel_logs({"node4": said})


@scenario(
    Label("the disk of node4 that holds its data is throttled to 300 kB/s", "node4",
          actions=("investigate", "call-storage"), cause_words=("data", "slow"))
)  # fmt: skip
def slow_disk(records: Path, scratch: Path) -> None:
    """A slow disk under the data of one node: its ranks wait for data, all others for them."""
    with _disks(records, scratch) as made:
        group = made.cluster.group("blkio", "node4")
        device = made.cluster.node("node4").run("findmnt", "-no", "MAJ:MIN", "/mnt").strip()
        (group / "blkio.throttle.read_bps_device").write_text(f"{device} 300000")
        made.start(*SHORT[1:], "--steps=10", "--data=/mnt/data", "--timeout=60", "--style=rank")
        for rank in (6, 7):
            (group / "cgroup.procs").write_text(str(made.process(rank)))
        made.finish()


@contextlib.contextmanager
def _disks(records: Path, scratch: Path) -> Iterator[Job]:
    """A job whose nodes have a disk each, mounted at /mnt, with data on it."""
    scratch.mkdir(parents=True, exist_ok=True)
    loops = []
    try:
        with job(records, scratch, launcher="ranks") as made:
            for node in made.cluster.nodes:
                image = scratch / f"{node.name}.img"
                run("truncate", "-s", "64M", str(image))
                run("mkfs.ext4", "-q", str(image))
                loops.append(run("losetup", "--find", "--show", str(image)).strip())
                node.run("mount", loops[-1], "/mnt")
                node.run("dd", "if=/dev/urandom", "of=/mnt/data", "bs=1M", "count=8", "conv=fsync")
            yield made
    finally:
        for loop in loops:
            run("losetup", "--detach", loop, check=False)


@scenario(
    Label("the GPU of rank 2 falls off the bus (Xid 79), its process dies", "node2", 2, actions=("reboot-node",),
          cause_words=("Xid 79", "fallen off"), written=("node2/kernel.log",))
)  # fmt: skip
def xid(records: Path, scratch: Path) -> None:
    """An Xid in one kernel log, and all ranks die."""
    with job(records, scratch) as made:
        made.start(*STEPS, "--mistake=crash:2:8")
        made.reach("step 7/", 2)
        lines = [
            "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        ]
        fell = [made.event("node2", line) for line in lines]
        made.finish()
        made.kernel_logs({"node2": fell})


@scenario(
    Label("the switch port of node3 takes packets of 1500 bytes, all nodes send 9000", "node3",
          actions=("fix-config", "call-network", "investigate"), cause_words=("mtu",))
)  # fmt: skip
def wrong_mtu(records: Path, scratch: Path) -> None:
    """A port with another MTU: small messages pass, large ones do not."""
    with job(records, scratch, mtu=9000) as made:
        made.cluster.switch.run("ip", "link", "set", "node3", "mtu", "1500")
        for node in made.cluster.nodes:
            node.run("ethtool", "-K", "eth0", "tso", "off", "gso", "off", "gro", "off")
        made.start(*STEPS)
        made.finish()
        ports = made.folder("switch") / "ip-link.txt"
        ports.write_text(made.cluster.switch.run("ip", "-s", "link", "show", "master", "fabric"))
        made.kernel_logs()


@scenario(
    Label("node4 starts when the others have given up waiting", "node4", actions=("investigate", "restart-job"),
          cause_words=("late", "joined", "rendezvous"))
)  # fmt: skip
def late_node(records: Path, scratch: Path) -> None:
    """A node that comes too late to the rendezvous."""
    with job(records, scratch, launcher="ranks") as made:
        for name in ("node1", "node2", "node3"):
            made.start(*STEPS, only=name)
        time.sleep(35)
        made.start(*STEPS, only="node4")
        made.finish(60)


@scenario(
    Label("node3 was given another address of the master", "node3", actions=("fix-config", "investigate"),
          cause_words=("master", "address"))
)  # fmt: skip
def wrong_master(records: Path, scratch: Path) -> None:
    """One node looks for the master at another address."""
    with job(records, scratch, launcher="ranks") as made:
        for name in ("node1", "node2", "node4"):
            made.start(*STEPS, only=name)
        made.start(*STEPS, only="node3", master="10.77.0.99")
        made.finish(60)


@scenario(
    Label("node3 cannot resolve the name of the master", "node3", actions=("fix-config", "investigate"),
          cause_words=("name",))
)  # fmt: skip
def no_name(records: Path, scratch: Path) -> None:
    """One node cannot resolve a name."""
    with job(records, scratch, launcher="ranks") as made:
        (scratch / "short").write_text("127.0.0.1 localhost\n10.77.0.3 node3\n")
        made.cluster.node("node3").run("mount", "--bind", str(scratch / "short"), "/etc/hosts")
        made.start(*STEPS, environment={"TORCH_CPP_LOG_LEVEL": "WARNING"})
        made.finish(60)


@scenario(
    Label("rank 2 runs another revision of the program: its tensors are larger", "node2", 2,
          actions=("fix-config", "investigate"), cause_words=("mismatch", "size", "disagree"))
)  # fmt: skip
def other_revision(records: Path, scratch: Path) -> None:
    """One rank runs another program."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS, "--mistake=revision:2:0")
        made.finish(60)


@scenario(Label("rank 3 is killed; the clock of node4 is two minutes slow, so its echo seems to come first", "node2", 3,
                cause_words=("killed", "signal 9"), written=("node4/torchrun.log", "node4/kernel.log")))  # fmt: skip
def clock_skew(records: Path, scratch: Path) -> None:
    """A wrong clock: the order of time over all nodes misleads."""
    with job(records, scratch) as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.signal(3, signal.SIGKILL)
        made.finish()
        made.kernel_logs()
        for log in made.folder("node4").iterdir():
            log.write_text(shifted(log.read_text(), -120))


@scenario(Label("rank 4 has a twentieth of a processor", "node3", 4, cause_words=("slow", "straggl")))
def throttled_rank(records: Path, scratch: Path) -> None:
    """A straggler: every rank has the same step time, one of them works while the others wait."""
    with job(records, scratch, launcher="ranks") as made:
        group = made.cluster.group("cpu", "rank4", cpu__cfs_period_us="100000", cpu__cfs_quota_us="5000")
        made.start("--steps=16", "--work=20", "--timeout=60")
        made.reach("step 3/", 4)
        (group / "cgroup.procs").write_text(str(made.process(4)))
        made.finish(90)


@scenario(
    Label("the file system of node2 for checkpoints hangs (frozen)", "node2", actions=("investigate", "call-storage"),
          cause_words=("blocked", "state D", "uninterruptible"))
)  # fmt: skip
def hung_storage(records: Path, scratch: Path) -> None:
    """A file system that no longer answers: the process that writes is in state D."""
    with _disks(records, scratch) as made:
        node = made.cluster.node("node2")
        made.start(*STEPS, "--checkpoint-dir=/mnt", "--checkpoint-every=5")
        made.reach("step 7/")
        node.run("fsfreeze", "--freeze", "/mnt")
        try:
            time.sleep(6)
            made.collect("ps.txt", "ps", "-eo", "pid,stat,wchan:24,etimes,args")
            made.finish(30)
        finally:
            node.run("fsfreeze", "--unfreeze", "/mnt")


@scenario(
    Label(
        "rank 3 leaves out one collective",
        "node2",
        3,
        cause_words=("went on",),
    )
)
def skipped_collective(records: Path, scratch: Path) -> None:
    """A rank whose program takes another branch."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS, "--mistake=skip:3:8")
        made.finish(60)


@scenario(
    Label(
        "rank 6 has another image: a module is missing",
        "node4",
        6,
        actions=("investigate", "fix-config"),
        cause_words=("module", "import"),
    )
)
def other_image(records: Path, scratch: Path) -> None:
    """A rank that cannot import a module."""
    with job(records, scratch) as made:
        made.start(*STEPS, "--mistake=import:6:0")
        made.finish(60)


@scenario(
    Label(
        "the launcher of node3 is told to end (SIGTERM), as a scheduler does",
        "node3",
        cause_words=("sigterm", "told to end", "outside"),
    )
)
def ended_from_outside(records: Path, scratch: Path) -> None:
    """Someone ends the job on one node."""
    with job(records, scratch) as made:
        made.start(*STEPS)
        made.reach("step 8/")
        os.kill(made.starter_of("node3"), signal.SIGTERM)
        made.finish()
        made.kernel_logs()


@scenario(
    Label(
        "rank 5 is stopped; the logs of its node were not handed over",
        verdict="unknown",
        cause_words=("timed out", "time-out", "timeout"),
    )
)
def victims_only(records: Path, scratch: Path) -> None:
    """Only the victims' logs: nobody can be named."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS)
        made.reach("step 8/")
        made.signal(5, signal.SIGSTOP)
        made.finish(40)
    for file in (records / "node3").iterdir():
        file.unlink()
    (records / "node3").rmdir()


@scenario(
    Label(
        "rank 3 is killed; the logs of its node were not handed over, the others' connections lead there",
        "node2",
        cause_words=("closed connections", "connections that were closed"),
    )
)
def lost_node(records: Path, scratch: Path) -> None:
    """Only the victims' logs, and still one node can be named."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS)
        made.reach("step 8/")
        for rank in (2, 3):
            made.signal(rank, signal.SIGKILL)
        made.finish(40)
        made.collect("ip.txt", *ADDRESSES)
    for file in (records / "node2").glob("rank*.log"):
        file.unlink()


@scenario(Label("rank 5 hangs in a loop of its own before a monitored barrier", "node3", 5, cause_words=("barrier",)))
def barrier(records: Path, scratch: Path) -> None:
    """A barrier that names the rank that is missing."""
    with job(records, scratch, launcher="ranks") as made:
        made.start(*STEPS, "--barrier", "--style=bare", "--mistake=loop:5:8")
        made.finish(50)


@scenario(
    Label("rank 6 runs another revision of the program, and PyTorch compares what the ranks call", "node4", 6,
          actions=("fix-config", "investigate"), cause_words=("mismatch", "differ"))
)  # fmt: skip
def compared_collectives(records: Path, scratch: Path) -> None:
    """PyTorch's own comparison of collectives (TORCH_DISTRIBUTED_DEBUG=DETAIL)."""
    with job(records, scratch, launcher="ranks") as made:
        told = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
        made.start(*STEPS, "--mistake=revision:6:0", environment=told)
        made.finish(60)


@scenario(
    Label("rank 2 may not have more memory (a limit of its address space)", "node2", 2,
          actions=("investigate", "fix-config"), cause_words=("memory",))
)  # fmt: skip
def memory_limit(records: Path, scratch: Path) -> None:
    """Memory that the program asks for and does not get."""
    with job(records, scratch) as made:
        made.start(*STEPS, "--mistake=leak:2:8")
        made.reach("step 2/", 2)
        number = made.process(2)
        size = int(run("ps", "-o", "vsz=", "-p", str(number))) << 10
        run("prlimit", f"--pid={number}", f"--as={size + (500 << 20)}")
        made.finish()


@scenario(Label("rank 7 reads at address 0", "node4", 7, cause_words=("segmentation", "signal 11", "crash")))
def segfault(records: Path, scratch: Path) -> None:
    """A crash, in the kernel log of its node."""
    with job(records, scratch) as made:
        began = time.time()
        made.start(*STEPS, "--mistake=segfault:7:8")
        made.finish()
        said = [made.event("node4", text, at) for at, text in kernel_said(began) if "segfault" in text]
        made.kernel_logs({"node4": said})


@scenario(
    Label(
        "another program listens on the port of the master",
        "node1",
        actions=("fix-config",),
        cause_words=("port", "in use"),
    )
)
def port_taken(records: Path, scratch: Path) -> None:
    """A port that is taken."""
    with job(records, scratch, launcher="ranks") as made:
        node = made.cluster.node("node1")
        listen = (
            "import socket, time; s = socket.socket(socket.AF_INET6); s.bind(('::', 29500)); s.listen(); time.sleep(99)"
        )
        with (scratch / "listener.log").open("wb") as log:
            node.start([sys.executable, "-c", listen], log, {})
        time.sleep(1)
        made.start(*STEPS)
        made.finish(40)


@scenario(
    Label("the ranks of node3 are told to use an interface that it does not have", "node3",
          actions=("fix-config", "investigate"), cause_words=("interface",))
)  # fmt: skip
def wrong_interface(records: Path, scratch: Path) -> None:
    """A setting that names no interface of the node."""
    with job(records, scratch, launcher="ranks") as made:
        for name in ("node1", "node2", "node4"):
            made.start(*STEPS, only=name)
        made.start(*STEPS, only="node3", environment={"GLOO_SOCKET_IFNAME": "ens9f0"})
        made.finish(60)


@scenario(
    Label("node3 lets nobody connect; no log says so", verdict="unknown", cause_words=("timed out", "closed", "wait"))
)
def firewall(records: Path, scratch: Path) -> None:
    """A firewall: the ranks meet, and cannot connect."""
    with job(records, scratch, launcher="ranks") as made:
        made.cluster.node("node3").run("iptables", "-A", "INPUT", "-i", "eth0", "-p", "tcp", "--syn", "-j", "DROP")
        made.start(*STEPS)
        made.finish(60)
        made.collect("ip.txt", *ADDRESSES)


@scenario(
    Label("rank 5 meets a batch of another shape, and again after the restart", "node3", 5, cause_words=("shape",))
)
def restarted(records: Path, scratch: Path) -> None:
    """A log of two attempts."""
    with job(records, scratch) as made:
        made.restarts = 1
        made.start(*STEPS, "--mistake=shape:5:8")
        made.finish(90)
        made.kernel_logs()


@scenario(
    Label("node3 loses its power: everything on it ends at once", "node3", cause_words=("silent", "printed nothing"))
)
def dead_node(records: Path, scratch: Path) -> None:
    """A node that is gone: its logs end in the middle, nobody says good-bye."""
    with job(records, scratch) as made:
        made.start(*STEPS)
        made.reach("step 8/")
        os.kill(made.cluster.node("node3").init, signal.SIGKILL)
        made.finish(60)
