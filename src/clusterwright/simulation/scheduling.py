"""Jobs that need all of their nodes at once, on a cluster of leaves, played event by event.

Four ways to hand out nodes: ``piecemeal`` gives each job what is free at the moment and lets it wait for the rest, as a
scheduler that places pods one by one does; ``gang`` gives all or nothing, in order; ``backfill`` lets a later job go
first where that does not delay the head of the queue (EASY: Lifka 1995, "The ANL/IBM SP scheduling system");
``topology`` is ``backfill`` that picks the leaves which hold the job on the fewest of them.
"""

from __future__ import annotations

import csv
import heapq
import io
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from clusterwright.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Policy(StrEnum):
    """How nodes are handed out."""

    PIECEMEAL = "piecemeal"
    GANG = "gang"
    BACKFILL = "backfill"
    TOPOLOGY = "topology"


@dataclass(frozen=True)
class Job:
    """What was asked for."""

    name: str
    nodes: int
    run_s: float
    submitted_s: float = 0.0


TWO_OF_48 = (Job("a", 48, 3600.0), Job("b", 48, 3600.0))
"""Each fits a cluster of 64 nodes, both together do not: the least example of the deadlock."""
MOST_JOBS = 100_000
_COLUMNS = {"name", "nodes", "run_s"}


def read_jobs(text: str, where: str) -> tuple[Job, ...]:
    r"""Jobs from CSV: columns ``name``, ``nodes``, ``run_s`` and, where they do not all come at once, ``submitted_s``.

    Args:
        text: Of the file.
        where: What to call it in a message.

    Raises:
        InputError: a column is missing, or a value cannot be; names the line.

    >>> read_jobs("name,nodes,run_s\na,4,60", "jobs.csv")
    (Job(name='a', nodes=4, run_s=60.0, submitted_s=0.0),)
    """
    rows = csv.DictReader(io.StringIO(text))
    missing = _COLUMNS - set(rows.fieldnames or ())
    if missing:
        raise InputError(f"{where}: column {', '.join(sorted(missing))} is missing; write name,nodes,run_s,submitted_s")
    jobs: dict[str, Job] = {}
    for row in rows:
        job = _job(row, f"{where}: line {rows.line_num}")
        if job.name in jobs:
            raise InputError(f"{where}: line {rows.line_num}: name {job.name!r} is there already")
        if len(jobs) == MOST_JOBS:
            raise InputError(f"{where}: more than {MOST_JOBS:,} jobs")
        jobs[job.name] = job
    if not jobs:
        raise InputError(f"{where}: no jobs")
    return tuple(jobs.values())


def _job(row: dict[str, str | None], where: str) -> Job:
    """One row as a job."""

    def number(key: str, least: float) -> float:
        text = row.get(key) or ("0" if key == "submitted_s" else "")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value >= least):
            raise InputError(f"{where}: {key} {text!r} is not a number of at least {least:g}")
        return value

    nodes = number("nodes", 1)
    if nodes != int(nodes):
        raise InputError(f"{where}: nodes {row['nodes']!r} is not a whole number")
    name = (row["name"] or "").strip()
    if not name:
        raise InputError(f"{where}: name is missing")
    return Job(name, int(nodes), number("run_s", 0), number("submitted_s", 0))


@dataclass(frozen=True)
class Ran:
    """What came of a job."""

    job: Job
    start_s: float
    leaves: int
    """Leaves that its nodes hang on."""
    least_leaves: int
    """The fewest that could hold it."""

    @property
    def wait_s(self) -> float:
        """Time in the queue."""
        return self.start_s - self.job.submitted_s


@dataclass(frozen=True)
class Schedule:
    """What came of all jobs."""

    policy: Policy
    ran: tuple[Ran, ...]
    stuck: tuple[str, ...]
    """Jobs that hold nodes, or wait for them, for ever."""
    held_idle: int
    """Nodes held by jobs that never start."""
    end_s: float
    held_node_s: float = 0.0
    """Node-seconds that jobs held while they waited for the rest of their nodes."""

    @property
    def deadlocked(self) -> bool:
        """Whether jobs wait for one another."""
        return bool(self.stuck)

    @property
    def mean_wait_s(self) -> float:
        """Over the jobs that ran."""
        return sum(r.wait_s for r in self.ran) / len(self.ran) if self.ran else float("inf")

    @property
    def mean_spread(self) -> float:
        """Leaves used over the fewest possible, over the jobs that ran; 1 is perfect."""
        return sum(r.leaves / r.least_leaves for r in self.ran) / len(self.ran) if self.ran else float("inf")


@dataclass
class _Cluster:
    """The state while jobs are played."""

    nodes: int
    leaf_nodes: int
    policy: Policy
    free: set[int] = field(default_factory=set)
    queue: list[Job] = field(default_factory=list)
    held: dict[str, list[int]] = field(default_factory=dict)
    ends: list[tuple[float, str]] = field(default_factory=list)
    ran: list[Ran] = field(default_factory=list)

    def start(self, job: Job, nodes: list[int], now: float) -> None:
        """Run a job that has all of its nodes."""
        self.held[job.name] = nodes
        self.free.difference_update(nodes)
        self.queue.remove(job)
        heapq.heappush(self.ends, (now + job.run_s, job.name))
        leaves = len({node // self.leaf_nodes for node in nodes})
        self.ran.append(Ran(job, now, leaves, -(-job.nodes // self.leaf_nodes)))

    def pick(self, count: int) -> list[int]:
        """Nodes for a job: the lowest numbers, or whole leaves first."""
        if self.policy is not Policy.TOPOLOGY:
            return sorted(self.free)[:count]
        by_leaf: dict[int, list[int]] = {}
        for node in sorted(self.free):
            by_leaf.setdefault(node // self.leaf_nodes, []).append(node)
        picked: list[int] = []
        while len(picked) < count:
            missing = count - len(picked)
            # The leaf that fits the rest most tightly; else the emptiest one whole.
            fits = [leaf for leaf, there in by_leaf.items() if len(there) >= missing]
            leaf = min(fits, key=lambda k: len(by_leaf[k])) if fits else max(by_leaf, key=lambda k: len(by_leaf[k]))
            picked += by_leaf.pop(leaf)[:missing]
        return picked


def play(jobs: Iterable[Job], nodes: int, policy: Policy | str, *, leaf_nodes: int = 32) -> Schedule:
    """Play the jobs to the end, or until nothing can move any more.

    Args:
        jobs: In any order; names must differ.
        nodes: Of the cluster [1].
        policy: How nodes are handed out.
        leaf_nodes: Nodes on one leaf [1].

    Returns:
        When each job started, where, and which are stuck.

    Two jobs of 48 nodes on 64 wait for each other for ever when nodes are given piecemeal:

    >>> two = [Job("a", 48, 3600.0), Job("b", 48, 3600.0)]
    >>> play(two, 64, "piecemeal").stuck
    ('a', 'b')
    >>> [ran.start_s for ran in play(two, 64, "gang").ran]
    [0.0, 3600.0]
    """
    cluster = _Cluster(nodes, leaf_nodes, Policy(policy), free=set(range(nodes)))
    coming = sorted(jobs, key=lambda job: (job.submitted_s, job.name))
    for job in coming:
        if job.nodes > nodes:
            raise InputError(f"job {job.name} asks for {job.nodes} of {nodes} nodes; it could never run")
    now = held_node_s = 0.0
    while coming or cluster.ends:
        before = now
        now = min([*(job.submitted_s for job in coming[:1]), *(end for end, _ in cluster.ends[:1])])
        held_node_s += (now - before) * _held_idle(cluster)
        while coming and coming[0].submitted_s <= now:
            cluster.queue.append(coming.pop(0))
        while cluster.ends and cluster.ends[0][0] <= now:
            cluster.free.update(cluster.held.pop(heapq.heappop(cluster.ends)[1]))
        _hand_out(cluster, now)
    waiting = tuple(job.name for job in cluster.queue)
    return Schedule(cluster.policy, tuple(cluster.ran), waiting, _held_idle(cluster), now, held_node_s)


def _held_idle(cluster: _Cluster) -> int:
    """Nodes of jobs that wait for more."""
    if cluster.policy is not Policy.PIECEMEAL:
        return 0
    return sum(len(cluster.held.get(job.name, ())) for job in cluster.queue)


def _hand_out(cluster: _Cluster, now: float) -> None:
    """Give nodes to the queue, by the policy."""
    if cluster.policy is Policy.PIECEMEAL:
        _hand_out_piecemeal(cluster, now)
        return
    while cluster.queue and cluster.queue[0].nodes <= len(cluster.free):
        head = cluster.queue[0]
        cluster.start(head, cluster.pick(head.nodes), now)
    if cluster.queue and cluster.policy is not Policy.GANG:
        _backfill(cluster, now)


def _hand_out_piecemeal(cluster: _Cluster, now: float) -> None:
    """One free node to each waiting job in turn; a job that has all of its nodes starts."""
    while cluster.free and cluster.queue:
        for job in list(cluster.queue):
            if cluster.free:
                node = min(cluster.free)
                cluster.free.discard(node)
                cluster.held.setdefault(job.name, []).append(node)
            if len(cluster.held.get(job.name, ())) == job.nodes:
                cluster.start(job, cluster.held[job.name], now)


def _backfill(cluster: _Cluster, now: float) -> None:
    """Start later jobs that end before the head of the queue can start, or leave it the nodes that it will need."""
    head = cluster.queue[0]
    at, free = now, len(cluster.free)
    for end, name in sorted(cluster.ends):
        at, free = end, free + len(cluster.held[name])
        if free >= head.nodes:
            break
    extra = free - head.nodes
    for job in cluster.queue[1:]:
        fits = job.nodes <= len(cluster.free)
        if fits and (now + job.run_s <= at or job.nodes <= extra):
            if now + job.run_s > at:
                extra -= job.nodes
            cluster.start(job, cluster.pick(job.nodes), now)
