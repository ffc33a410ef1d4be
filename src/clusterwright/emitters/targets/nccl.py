"""NCCL's environment alone, for jobs that people start in their own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.network import nccl
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import comment, shell_exports

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job


def write(job: Job) -> Bundle:
    """A file to be sourced."""
    settings, left = nccl(job)
    if not settings:
        one = (
            (Unsupported("NCCL settings", "the job runs on one node: NCCL's defaults are right there"),)
            if job.nodes == 1
            else ()
        )
        return Bundle({}, (*one, *left))
    kind = job.node.fabric.value
    head = f"NCCL on {job.nodes} nodes over {kind} [hardware_node.fabric]: source it in every rank's environment.\nAll that is not here keeps NCCL's default."
    return Bundle({"nccl.sh": "# shellcheck shell=bash\n" + comment(head) + shell_exports(settings)}, left)


TARGET = Target(
    "nccl", "the few NCCL settings that the fabric asks for, each with its why", ("interface",), ("dscp",), write
)
