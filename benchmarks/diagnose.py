"""How fast a diagnosis reads, on one core, and how much memory it takes: noise, storms, and both at length.

The streams are made while they are read, so that their length costs no memory. The time is that of the processor, not
of the wall: others may use the machine. What the streams take to make is measured apart and taken off.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import resource
import time
from typing import IO, TYPE_CHECKING, Any, cast

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTE = 1_000_000
KNOWLEDGE = load_faults()


def syslog(i: int) -> str:
    return (
        f"Jan  5 04:{i // 60 % 60:02}:{i % 60:02} host-7 systemd[1]: session-{i}.scope: Consumed {i % 999} ms of time."
    )


def training(i: int) -> str:
    return f"2026-01-02 10:{i // 60 % 60:02}:{i % 60:02} INFO train: step {i} loss 2.{i % 1000:03} lr 3e-4 tps {i}"


def xid(i: int) -> str:
    return (
        f"Jan  5 04:{i // 60 % 60:02}:{i % 60:02} gpu-a7 kernel: [{i}.{i % 1000000:06}] NVRM: Xid "
        f"(PCI:0000:{16 + 16 * (i % 8):02x}:00): 95, pid={10000 + i}, name=python3, Uncontained: LTC (0x{i:x},0x{i:x})"
    )


def completion(i: int) -> str:
    return (
        f"node-{i % 32}:{40000 + i % 32}:{50000 + i % 256} [{i % 8}] NCCL WARN NET/IB : Got completion from peer "
        f"10.0.{i % 4}.{i % 50}<{30000 + i % 9999}> with error 12, opcode 0, len 0, vendor err 129"
    )


def aer(i: int) -> str:
    return f"[{i}.{i % 999999:06}] pcieport 0000:00:03.1: AER: Corrected error message received from 0000:00:00.0"


def query(i: int) -> str:
    return f"2026/01/12 10:{i // 60 % 60:02}:{i % 60:02}.000, {i % 8}, NVIDIA H100 80GB HBM3, {60 + i % 9}, Not Active"


STREAMS: dict[str, tuple[Callable[[int], str], str]] = {
    "noise: syslog": (syslog, ""),
    "noise: training": (training, ""),
    "storm: Xid of eight accelerators": (xid, ""),
    "storm: RDMA completions of 32 nodes": (completion, ""),
    "storm: PCIe errors": (aer, ""),
    "readings: nvidia-smi query": (
        query,
        "timestamp, index, name, temperature.gpu, clocks_throttle_reasons.hw_slowdown",
    ),
}


class Made(io.RawIOBase):
    """A stream of numbered lines, a block of which comes again and again."""

    def __init__(self, line: Callable[[int], str], head: str, megabytes: float) -> None:
        block = "".join(line(i) + "\n" for i in range(50_000)).encode()
        self.left = int(megabytes * MEGABYTE)
        self.rest = f"{head}\n".encode() * bool(head)
        self.blocks = itertools.repeat(block)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while len(self.rest) < size:
            self.rest += next(self.blocks)
        data, self.rest = self.rest[: min(size, self.left)], self.rest[size:]
        self.left -= len(data)
        return data


def measured(name: str, megabytes: float) -> dict[str, Any]:
    line, head = STREAMS[name]
    made = Made(line, head, megabytes)
    began = time.process_time()
    while made.read(1 << 20):
        pass
    making = time.process_time() - began
    stream = Made(line, head, megabytes)
    began = time.process_time()
    answer = diagnose([cast("IO[bytes]", stream)], KNOWLEDGE)
    seconds = time.process_time() - began - making
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    first = answer.findings[0].count if answer.findings else 0
    return {
        "stream": name, "megabytes": megabytes, "megabytes_per_s": megabytes / seconds, "peak_bytes": peak,
        "verdict": answer.verdict, "findings": len(answer.findings), "lines_of_the_first": first,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0, help="of every stream")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    wish = parser.parse_args()
    found = [measured(name, wish.megabytes) for name in STREAMS]
    if wish.format == "json":
        print(json.dumps(found))
        return
    for one in found:
        print(
            f"{one['stream']:38} {one['megabytes_per_s']:6.1f} MB/s, at most {one['peak_bytes'] / MEGABYTE:.0f} MB, "
            f"{one['verdict']}, {one['findings']} findings"
        )


if __name__ == "__main__":
    main()
