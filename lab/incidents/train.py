"""A small training job over gloo: one rank of it. It logs each step, and can be told to make one mistake."""

from __future__ import annotations

import argparse
import ctypes
import datetime as dt
import importlib
import itertools
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

HOST = socket.gethostname()
RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", "0"))
STYLES = {
    "host": "{time} {host} rank {rank} INFO {text}",
    "rank": "[rank{rank}]:{time} - root - INFO - {text}",
    "bare": "{time} INFO {text}",
}
PIECE_BYTES = 1 << 18
MISTAKES = ("import", "revision", "loop", "shape", "nan", "crash", "leak", "segfault", "skip")


@dataclass(frozen=True, slots=True)
class Mistake:
    """What one rank does wrong, from which step on."""

    kind: str = ""
    rank: int = -1
    step: int = 0

    def made(self, kind: str, step: int) -> bool:
        """Whether this rank makes this mistake at this step."""
        return self.kind == kind and self.rank == RANK and self.step <= step


def mistake(text: str) -> Mistake:
    """Read ``KIND:RANK:STEP``."""
    kind, rank, step = text.split(":")
    if kind not in MISTAKES:
        raise argparse.ArgumentTypeError(f"one of {', '.join(MISTAKES)}")
    return Mistake(kind, int(rank), int(step))


def arguments() -> argparse.Namespace:
    """What the job was told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--work", type=int, default=3, help="matrix products a step")
    parser.add_argument("--timeout", type=float, default=12.0, help="of collectives [s]")
    parser.add_argument("--style", default="host", choices=sorted(STYLES))
    parser.add_argument("--checkpoint-dir", type=Path)
    parser.add_argument("--checkpoint-every", type=int, default=10)
    parser.add_argument("--data", type=Path, help="a file that every step reads a piece of")
    parser.add_argument("--barrier", action="store_true", help="a monitored barrier before every step's collective")
    parser.add_argument("--links", action="store_true", help="measure the links between neighbours first")
    parser.add_argument("--pids", type=Path, help="folder for a file with the number of each rank's process")
    parser.add_argument("--mistake", type=mistake, default=Mistake(), help="KIND:RANK:STEP")
    return parser.parse_args()


SAID = arguments()


def say(text: str) -> None:
    """One line of the log."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    print(STYLES[SAID.style].format(time=now, host=HOST, rank=RANK, text=text), flush=True)


def read_piece(path: Path, step: int) -> None:
    """Read a piece of the data from the disk, never from the cache."""
    with path.open("rb") as handle:
        os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        handle.seek((step % 16) * PIECE_BYTES)
        handle.read(PIECE_BYTES)


def links() -> None:
    """Send to the next rank, receive from the one before, and say how fast the sending was."""
    message, other = torch.zeros(1 << 20), torch.zeros(1 << 20)
    for source in range(WORLD):
        target = (source + 1) % WORLD
        if source == RANK:
            dist.send(message, target)
            start = time.perf_counter()
            dist.send(message, target)
            dist.recv(other[:1], target)
            took_s = time.perf_counter() - start
            say(f"link test rank {source} -> rank {target}: {message.nbytes / took_s / 1e9:.3f} GB/s")
        elif target == RANK:
            dist.recv(message, source)  # the first one sets the connection up
            dist.recv(message, source)
            dist.send(other[:1], source)
        dist.barrier()


def checkpoint(folder: Path, step: int, weight: torch.Tensor) -> None:
    """Write the node's part of a checkpoint, then wait for the others."""
    if LOCAL_RANK == 0:
        start = time.perf_counter()
        with (folder / f"step{step}.pt").open("wb") as handle:
            torch.save({"weight": weight, "moment": torch.randn(4, *weight.shape)}, handle)
            handle.flush()
            os.fsync(handle.fileno())
        say(f"checkpoint of step {step} saved in {time.perf_counter() - start:.2f} s")
    dist.barrier()


def forward_and_backward(
    step: int, weight: torch.Tensor, kept: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss and the gradient of one step, with this rank's mistake where it makes one."""
    while SAID.mistake.made("loop", step):
        time.sleep(0.01)
    batch = torch.randn(64, len(weight) + (1 if SAID.mistake.made("shape", step) else 0))
    for _ in range(SAID.work):
        output = batch @ weight
    loss = output.square().mean() * (float("nan") if SAID.mistake.made("nan", step) else 1.0)
    if SAID.mistake.made("leak", step):
        kept += [torch.ones(30 << 20) for _ in range(2)]
    if not torch.isfinite(loss):
        raise AssertionError(f"loss is {loss.item()} at step {step} on rank {RANK}")
    if SAID.mistake.made("segfault", step):
        ctypes.string_at(0)
    if SAID.mistake.made("crash", step):
        raise RuntimeError("CUDA error: unspecified launch failure")
    return loss, batch.T @ output / 64e3


def train(weight: torch.Tensor) -> None:
    """All steps."""
    kept: list[torch.Tensor] = []
    for step in range(1, SAID.steps + 1):
        times = [time.perf_counter()]
        if SAID.data:
            read_piece(SAID.data, step)
        times.append(time.perf_counter())
        loss, gradient = forward_and_backward(step, weight, kept)
        times.append(time.perf_counter())
        if SAID.barrier:
            dist.monitored_barrier(timeout=dt.timedelta(seconds=SAID.timeout / 2))
        if not SAID.mistake.made("skip", step):
            dist.all_reduce(gradient)
        times.append(time.perf_counter())
        weight -= 0.01 * gradient / WORLD
        data_s, compute_s, comm_s = (later - earlier for earlier, later in itertools.pairwise(times))
        say(
            f"step {step}/{SAID.steps} loss {loss.item():.4f} time {times[-1] - times[0]:.3f} s "
            f"(data {data_s:.3f} s, compute {compute_s:.3f} s, comm {comm_s:.3f} s)"
        )
        if SAID.checkpoint_dir and step % SAID.checkpoint_every == 0:
            checkpoint(SAID.checkpoint_dir, step, weight)


def main() -> None:
    """One rank, from its start to its end."""
    torch.set_num_threads(1)
    say(f"starting: torch {torch.__version__}, world size {WORLD}, master {os.environ['MASTER_ADDR']}")
    if SAID.pids:
        (SAID.pids / f"rank{RANK}").write_text(str(os.getpid()))
    if SAID.mistake.made("import", 0):
        importlib.import_module("apex_of_another_image")
    dist.init_process_group("gloo", timeout=dt.timedelta(seconds=SAID.timeout))
    say(f"process group of {WORLD} ranks is up")
    if SAID.links:
        links()
    hidden = SAID.hidden * (2 if SAID.mistake.made("revision", 0) else 1)
    torch.manual_seed(1)
    weight = torch.randn(hidden, hidden) / hidden**0.5
    say(f"model of {weight.numel()} parameters")
    train(weight)
    say("training done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
