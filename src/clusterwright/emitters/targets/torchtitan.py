"""torchtitan: recipe (a Python function) and launcher for torchtitan 0.3."""

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
    program = program_of(job, "torchtitan")
    if isinstance(program, tuple):
        return Bundle({}, program)
    return Bundle({SCRIPT: launcher(job, program), FILE: rank_map(job), **program.files}, announced(job, program))


TARGET = Target(
    "torchtitan", "recipe (a Python function) and launcher for torchtitan 0.3", KEYS_NEEDED, KEYS_TAKEN, write
)
