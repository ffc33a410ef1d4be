"""Megatron-LM: a launcher with all arguments, and the rank map."""

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
    """The launcher of every node."""
    program = program_of(job, "megatron")
    if isinstance(program, tuple):
        return Bundle({}, program)
    return Bundle({SCRIPT: launcher(job, program), FILE: rank_map(job)}, announced(job, program))


TARGET = Target(
    "megatron",
    "Megatron-LM arguments and launcher (core 0.19, 0.20), with the rank map",
    KEYS_NEEDED,
    KEYS_TAKEN,
    write,
)
