"""Volcano: one Job that starts all its pods or none, with its launcher and, for named hosts, the network's HyperNodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Noted, Unsupported
from clusterwright.emitters.kubernetes import NEEDS, TAKES, Object, config_map, gaps, metadata, pod, start_line
from clusterwright.emitters.launch import program_of
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

TASK = "worker"
MAX_RETRY = 10
_GROUP_TIER, _FABRIC_TIER = 1, 2


def write(job: Job) -> Bundle:
    """The Job with its ConfigMap; HyperNodes where the hosts are named."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes, all or none.\nkubectl apply -f job.yaml"
    files = {"job.yaml": yaml_text([config_map(job, program), _job(job)], head=head)}
    if job.hosts:
        files["hypernodes.yaml"] = yaml_text(
            _hypernodes(job), head="The network's leaves, as Volcano's scheduler sees them; cluster-wide, applied once."
        )
    return Bundle(files, (*gaps(job, program), *_left(job)))


def _job(job: Job) -> Object:
    spec: Object = {
        "schedulerName": Noted("volcano", "the scheduler that starts all pods or none"),
        "queue": job.need("queue"),
        "minAvailable": Noted(
            job.nodes, "all pods or none: a part of them would hold accelerators and wait for ever [chosen.nodes]"
        ),
        "maxRetry": Noted(MAX_RETRY, "restarts of the whole job; each continues from the newest checkpoint"),
        "plugins": {"env": [], "svc": []},
        "policies": [
            {"event": "PodEvicted", "action": Noted("RestartJob", "all ranks start again together")},
            {"event": "PodFailed", "action": Noted("RestartJob", "all ranks start again together")},
            {"event": "TaskCompleted", "action": Noted("CompleteJob", "the last step is done")},
        ],
        "tasks": [_task(job)],
    }
    if job.hosts:
        spec["networkTopology"] = {
            "mode": Noted("hard", "the plan's times hold only within the designed network [chosen.fabric]"),
            "highestTierAllowed": Noted(_tier(job), "the lowest tier that holds the whole job [chosen.fabric]"),
        }
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata(job, job.name), "spec": spec}


def _task(job: Job) -> Object:
    start = start_line('"$VC_TASK_INDEX"', f'"${{VC_{TASK.upper()}_HOSTS%%,*}}"')
    return {
        "name": TASK,
        "replicas": Noted(job.nodes, "one pod a node [chosen.nodes]"),
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": job.name}}, "spec": pod(job, start=start)},
    }


def _tier(job: Job) -> int:
    return _GROUP_TIER if job.nodes <= min(len(group) for group in job.leaf_groups) else _FABRIC_TIER


def _hypernodes(job: Job) -> list[Object]:
    groups = job.leaf_groups
    found = [_hypernode(f"leaf-{i}", _GROUP_TIER, "Node", group) for i, group in enumerate(groups, 1)]
    return [
        *found,
        _hypernode("fabric", _FABRIC_TIER, "HyperNode", tuple(f"leaf-{i}" for i in range(1, len(groups) + 1))),
    ]


def _hypernode(name: str, tier: int, kind: str, members: tuple[str, ...]) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def _left(job: Job) -> list[Unsupported]:
    if job.hosts:
        return []
    return [
        Unsupported(
            "HyperNodes and networkTopology",
            "they name nodes; give hosts in [site] or with --set, in the order of the racks",
        )
    ]


TARGET = Target(
    "volcano",
    "Job with gang start, queue, restart policies and launcher; HyperNodes for named hosts",
    ("queue", *NEEDS),
    ("hosts", *TAKES),
    write,
)
