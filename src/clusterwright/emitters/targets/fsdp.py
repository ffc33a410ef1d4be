"""Plain torch: a device mesh for FSDP2 or HSDP as a module, and the launcher of the program that uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle
from clusterwright.emitters.launch import SCRIPT, announced, launcher, program_of
from clusterwright.emitters.programs.program import KEYS_NEEDED, KEYS_TAKEN
from clusterwright.emitters.ranks import FILE, rank_map
from clusterwright.emitters.target import Target

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job


def write(job: Job) -> Bundle:
    """What every node starts with."""
    program = program_of(job, "fsdp")
    if isinstance(program, tuple):
        return Bundle({}, program)
    return Bundle({SCRIPT: launcher(job, program), FILE: rank_map(job), **program.files}, announced(job, program))


TARGET = Target(
    "fsdp",
    "device mesh and FSDP2 wrapping for plain torch, and a launcher for your training program",
    KEYS_NEEDED,
    KEYS_TAKEN,
    write,
)
