"""JobSet: one child Job of all nodes, restarted as one, with names for its pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.jobset import job_set
from clusterwright.emitters.kubernetes import NEEDS, TAKES, config_map, gaps
from clusterwright.emitters.launch import program_of
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

_GANG = Unsupported(
    "gang start",
    "JobSet itself starts pods one by one, and two jobs may each hold a part of the nodes; a queue that admits whole jobs is target kueue",
)


def write(job: Job) -> Bundle:
    """The JobSet with its ConfigMap."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes.\nkubectl apply -f jobset.yaml"
    files = {"jobset.yaml": yaml_text([config_map(job, program), job_set(job)], head=head)}
    return Bundle(files, (*gaps(job, program), _GANG))


TARGET = Target("jobset", "JobSet that restarts as one, with pod names and launcher", NEEDS, TAKES, write)
