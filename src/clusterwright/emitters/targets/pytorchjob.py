"""PyTorchJob of the training operator (version 1): a master and workers, all or none where a gang scheduler is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Noted, Unsupported
from clusterwright.emitters.kubernetes import MOUNT, NEEDS, TAKES, Object, config_map, gaps, metadata, pod
from clusterwright.emitters.launch import PORT, SCRIPT, program_of
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

BACKOFF = 10
_START = f'export NODE_RANK="$RANK"\nunset RANK WORLD_SIZE\nexec bash {MOUNT}/{SCRIPT}\n'
"""The operator counts pods in RANK and WORLD_SIZE; the launcher counts accelerators."""


def write(job: Job) -> Bundle:
    """The job with its ConfigMap."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes.\nkubectl apply -f job.yaml"
    files = {"job.yaml": yaml_text([config_map(job, program), _job(job)], head=head)}
    gang = Unsupported(
        "gang start", "minAvailable counts only where the operator runs with a gang scheduler (--gang-scheduler-name)"
    )
    return Bundle(files, (*gaps(job, program), gang))


def _job(job: Job) -> Object:
    replicas: Object = {"Master": _replica(job, 1, "node 0 [chosen.nodes]")}
    if job.nodes > 1:
        replicas["Worker"] = _replica(job, job.nodes - 1, "the other nodes [chosen.nodes]")
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata(job, job.name),
        "spec": {
            "runPolicy": {
                "backoffLimit": Noted(BACKOFF, "restarts; each continues from the newest checkpoint"),
                "cleanPodPolicy": Noted(
                    "Running", "pods that still run when the job ends are removed, logs of the others stay"
                ),
                "schedulingPolicy": {"minAvailable": Noted(job.nodes, "all pods or none [chosen.nodes]")},
            },
            "pytorchReplicaSpecs": replicas,
        },
    }


def _replica(job: Job, count: int, why: str) -> Object:
    spec = pod(job, start=_START)
    spec.pop("restartPolicy")
    spec["containers"][0]["name"] = "pytorch"
    spec["containers"][0]["ports"] = [{"name": "pytorchjob-port", "containerPort": PORT}]
    return {
        "replicas": Noted(count, why),
        "restartPolicy": Noted(
            "OnFailure", "a lost pod comes back; the others leave at the same error and come back too"
        ),
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": job.name}}, "spec": spec},
    }


TARGET = Target("pytorchjob", "PyTorchJob of Kubeflow's training operator 1, with launcher", NEEDS, TAKES, write)
