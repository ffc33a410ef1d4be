"""A real Slurm on this one machine: a controller and a daemon a node, all on loopback, with the emitted fragments.

Needs slurmctld, slurmd, munge (Debian: slurmctld slurmd slurm-client munge) and root. Devices are clones of /dev/null,
since gres wants character devices. Every process is ended by its recorded number.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
_CONF = """\
ClusterName=virtual
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/socket
CryptoType=crypto/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectTypeParameters=CR_Core_Memory
ReturnToService=0
TreeWidth=128
SlurmdTimeout=300
KillWait=2
CompleteWait=0
"""


def missing() -> str:
    """Why no cluster can be started here; empty when one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not on PATH (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "root is needed for character devices"


@dataclass
class Cluster:
    """A running cluster."""

    root: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, fragment: str, topology: str, gres: str, *, accelerators: int, port: int = 0) -> None:
        """Start it from the emitted slurm.conf fragment, topology.conf and gres.conf."""
        for name in ("munge", "state", "spool", "dev"):
            (self.root / name).mkdir()
        (self.root / "munge").chmod(0o700)
        for index in range(accelerators):
            os.mknod(self.root / "dev" / f"nvidia{index}", 0o20666, os.makedev(1, 3))
        port = port or 20000 + 100 * (os.getpid() % 120)  # another run may be on this machine
        names = _configure(self.root, fragment, topology, gres, port=port)
        self._start_munge()
        self._run("slurmctld", "-c", "-D", "-f", str(self.root / "slurm.conf"))
        for name in names:
            (self.root / "spool" / name).mkdir()
            self._run("slurmd", "-D", "-N", name, "-f", str(self.root / "slurm.conf"))
        self._until(lambda: len(self.ask("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()) == len(names))

    @property
    def environment(self) -> dict[str, str]:
        """What the programs need to find it."""
        return {**os.environ, "SLURM_CONF": str(self.root / "slurm.conf")}

    def ask(self, *command: str) -> str:
        """What a client program of Slurm prints."""
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
        )
        return done.stdout + done.stderr if done.returncode else done.stdout

    def state(self, job: str) -> str:
        """State of a job in one word."""
        return self.ask("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()

    def submit(self, folder: Path, *options: str) -> str:
        """Number of a batch job, submitted in its folder."""
        done = subprocess.run(
            ["sbatch", "--parsable", *options, "job.sbatch"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().split(";")[0]

    def wait(self, job: str, *states: str) -> str:
        """Wait until a job is in one of these states."""
        self._until(lambda: self.state(job) in states, say=lambda: self.ask("scontrol", "show", "job", job))
        return self.state(job)

    def stop(self) -> None:
        """End it, by recorded process number alone."""
        self.ask("scancel", "-u", "root")
        with contextlib.suppress(AssertionError):
            self._until(lambda: not self.ask("squeue", "-h").strip(), seconds=10)
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start_munge(self) -> None:
        key = self.root / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        folder = self.root / "munge"
        self._run(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/socket",
            f"--pid-file={folder}/pid", f"--log-file={folder}/log", f"--seed-file={folder}/seed",
        )  # fmt: skip
        self._until((folder / "socket").exists)

    def _run(self, *command: str) -> None:
        with (self.root / "processes.log").open("ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment))

    def _until(self, holds: object, *, seconds: float = 90.0, say: object = str) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if callable(holds) and holds():
                return
            time.sleep(0.1)
        told = say() if callable(say) else ""
        log = (self.root / "slurmctld.log").read_text("utf-8")[-1500:] if (self.root / "slurmctld.log").exists() else ""
        msg = f"not within {seconds:.0f} s\n{told}\n{self.ask('sinfo', '-N', '-l')[:1500]}\n{log}"
        raise AssertionError(msg)


def _configure(root: Path, fragment: str, topology: str, gres: str, *, port: int) -> list[str]:
    """Write the configuration: the fragment's node line gains what makes it virtual, devices are clones; no more."""
    lines, names = [], []
    for line in fragment.splitlines():
        if line.startswith("NodeName="):
            names = line.split()[0].removeprefix("NodeName=").split(",")
            virtual = f"NodeHostname={socket.gethostname().split('.')[0]} NodeAddr=127.0.0.1"
            head, rest = line.split(" ", 1)
            if "CPUs=" not in rest:
                rest += " CPUs=64 RealMemory=1000000"
            lines += [f"NodeName={name} {virtual} Port={port + 1 + i} {rest}" for i, name in enumerate(names)]
            assert head.startswith("NodeName=")
        elif line.startswith("PartitionName="):
            lines.append(f"{line} Default=YES MaxTime=INFINITE")
        else:
            lines.append(line)
    conf = _CONF.format(root=root, host=socket.gethostname().split(".")[0], port=port)
    (root / "slurm.conf").write_text(conf + "\n".join(lines) + "\n", encoding="utf-8")
    (root / "topology.conf").write_text(topology, encoding="utf-8")
    (root / "gres.conf").write_text(gres.replace("File=/dev/", f"File={root}/dev/"), encoding="utf-8")
    (root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
    return names
