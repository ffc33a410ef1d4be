"""Ordinary logs have no finding, however long they are and whatever words they hold."""

from __future__ import annotations

import io
import random

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

KNOWLEDGE = load_faults()
LINES = 20_000
SYSLOG = (
    "{day} {host} systemd[1]: session-{n}.scope: Deactivated successfully.",
    "{day} {host} systemd[1]: Started Run anacron jobs.",
    "{day} {host} systemd[1]: nvidia-fabricmanager.service: Started.",
    "{day} {host} systemd[1]: user@{n}.service: Killing process {n} (agent) with signal SIGKILL.",
    "{day} {host} sshd[{n}]: Connection closed by 10.0.{o}.{o} port {n} [preauth]",
    "{day} {host} sshd[{n}]: Connection reset by 10.0.{o}.{o} port {n} [preauth]",
    "{day} {host} sshd[{n}]: error: kex_exchange_identification: Connection closed by remote host",
    "{day} {host} sshd[{n}]: pam_unix(sshd:session): session opened for user root by (uid=0)",
    "{day} {host} kernel: [{s}] mlx5_core 0000:9a:00.0: Port module event: module 0, Cable plugged",
    "{day} {host} kernel: [{s}] mlx5_core 0000:9a:00.0 ib{o}: Link up",
    "{day} {host} kernel: [{s}] nvme nvme0: 32/0/0 default/read/poll queues",
    "{day} {host} kernel: [{s}] EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Quota mode: none.",
    "{day} {host} kernel: [{s}] EDAC MC: Ver: 3.0.0",
    "{day} {host} kernel: [{s}] mce: CPU0: Thermal monitoring enabled (TM1)",
    "{day} {host} kernel: [{s}] pcieport 0000:20:01.1: AER: enabled with IRQ {o}",
    "{day} {host} kernel: [{s}] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.90.07",
    "{day} {host} kernel: [{s}] perf: interrupt took too long ({n} > 2500), lowering kernel.perf_event_max_sample_rate",
    "{day} {host} kernel: [{s}] TCP: request_sock_TCP: Possible SYN flooding on port {n}. Sending cookies.",
    "{day} {host} kernel: [{s}] nvidia-nvswitch1: SXid (PCI:0000:85:00.0): driver loaded",
    '{day} {host} kernel: [{s}] audit: type=1400 audit({s}:{o}): apparmor="STATUS" operation="profile_load"',
    "{day} {host} chronyd[{n}]: Selected source 10.0.{o}.1",
    "{day} {host} CRON[{n}]: (root) CMD (test -x /usr/sbin/logrotate || exit 0)",
    '{day} {host} dockerd[{n}]: level=info msg="ignoring event" module=libcontainerd topic=/tasks/delete',
    '{day} {host} kubelet[{n}]: I0105 04:10:00.{n} prober.go:107] "Probe failed" probeType="Readiness" refused',
    "{day} {host} slurmd[{n}]: Launching batch job {n} for UID {n}",
    "{day} {host} slurmd[{n}]: [{n}.batch] done with job",
    "{day} {host} munged[{n}]: Info: created 1 authentication thread",
    "{day} {host} irqbalance[{n}]: Cannot change IRQ {o} affinity: Input/output error",
    "{day} {host} ntpd[{n}]: kernel reports TIME_ERROR: 0x41: Clock Unsynchronized",
)
TRAINING = (
    "{iso} INFO step {n} loss 2.{o} grad_norm 0.{o} lr 3.0e-4 tokens/s {n} mem 61.2GB",
    " iteration {n}/ 500000 | elapsed time per iteration (ms): 740{o}.1 | lm loss: 2.{o}E+00 | nan iterations:   0 |",
    "[rank{o}]: step {n} done in 0.{o} s",
    "{iso} [WARNING] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
    "[rank{o}]:[W502 10:00:00.{n} ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed",
    "[W socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - no such family).",
    "node-{o}:{n}:{n} [0] NCCL INFO Channel 0{o}/0 : 0[0] -> 1[1] via P2P/CUMEM",
    "node-{o}:{n}:{n} [0] NCCL INFO NET/Plugin: Failed to find ncclCollNetPlugin_v8 symbol.",
    "node-{o}:{n}:{n} [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0",
    "node-{o}:{n}:{n} [0] NCCL INFO comm 0x{n} rank {o} nranks 16 cudaDev 0 busId 59000 - Init COMPLETE",
    "Loading checkpoint shards: 100%|##########| 4/4 [00:10<00:00,  2.{o}s/it]",
    "{{'loss': 1.{o}, 'grad_norm': 0.98, 'learning_rate': 2e-05, 'epoch': 0.{o}}}",
    "/usr/lib/torch/utils/data/dataloader.py:557: UserWarning: This DataLoader will create 16 workers",
    "[{iso}] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]",
    "saved checkpoint to /ckpt/step_{n} in {o}.1 s; no error, no failure, nothing killed",
    "eval: accuracy 0.{o}, timeouts 0, retries 0, errors 0",
    "restarting the data loader for epoch {o}: worker exited with code 0",
)
PROSE = (
    "* Fix a segmentation fault when the connection is refused, and a broken pipe after that.",
    'The error "Too many open files" means that the limit is low; raise it with ulimit -n.',
    "If a GPU has an Xid, see the manual; a GPU can also be lost without one.",
    "# the address is already in use: wait, then try again",
    "    ValueError: If the sizes differ.",
    'raise RuntimeError("CUDA out of memory")  # never reached',
    "When no space is left on the device, writes fail; when a file system is read-only, they fail too.",
    "A watchdog that catches a timeout of a collective does not name the rank that stalls.",
    "Nodes that are not ready are evicted from the list; a node is not ready until its superclass is.",
    "- RDMA retries run out when the peer is unreachable (cable, switch, GID).",
)


def text(templates: tuple[str, ...], seed: int) -> bytes:
    luck = random.Random(seed)
    lines = []
    for at in range(LINES):
        line = luck.choice(templates)
        fields = {
            "day": f"Jan  5 {at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}", "host": f"host-{luck.randrange(40)}",
            "iso": f"2026-01-05 {at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}", "n": luck.randrange(1000, 99999),
            "o": luck.randrange(8), "s": f"{at}.{luck.randrange(10**6):06}",
        }  # fmt: skip
        lines.append(line.format(**fields) if "{" in line else line)
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    "templates", [SYSLOG, TRAINING, PROSE, SYSLOG + TRAINING + PROSE], ids=["system", "job", "prose", "all"]
)
def test_a_long_ordinary_log_has_no_finding(templates: tuple[str, ...]) -> None:
    said = diagnose([io.BytesIO(text(templates, seed=7))], KNOWLEDGE)
    assert said.findings == ()


@pytest.mark.parametrize("line", sorted({*SYSLOG, *TRAINING, *PROSE}))
def test_no_ordinary_line_has_a_finding_by_itself(line: str) -> None:
    said = diagnose([io.BytesIO(text((line,), seed=3)[:2000])], KNOWLEDGE)
    assert said.findings == ()


def test_one_fault_in_a_long_ordinary_log_is_found() -> None:
    noise = text(SYSLOG + TRAINING, seed=11)
    cut = noise.index(b"\n", len(noise) // 2) + 1
    fault = b"Jan  5 04:10:00 host-7 kernel: NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus.\n"
    said = diagnose([io.BytesIO(noise[:cut] + fault + noise[cut:])], KNOWLEDGE)
    assert (said.findings[0].where.node, said.findings[0].evidence[0].line) == ("host-7", noise[:cut].count(b"\n") + 1)
