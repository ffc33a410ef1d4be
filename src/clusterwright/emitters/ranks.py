"""Which rank sits where, and what it does: the plan's rank map as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

FILE = "ranks.tsv"


def rank_map(job: Job) -> str:
    """Node index, local rank and coordinates of every rank, tab-separated."""
    lines = ["rank\tnode\tlocal_rank\ttp\tcp\tdp\tpp"]
    for rank in range(job.chosen.accelerators):
        at = job.layout.coordinates_of(rank)
        node, local = divmod(rank, job.per_node)
        lines.append(f"{rank}\t{node}\t{local}\t{at['tp']}\t{at['cp']}\t{at['dp']}\t{at['pp']}")
    return "\n".join(lines) + "\n"
