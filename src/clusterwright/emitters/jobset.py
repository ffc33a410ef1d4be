"""A JobSet of one child Job, for the targets that queue it and for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Noted
from clusterwright.emitters.kubernetes import Object, metadata, pod, start_line

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

ROLE = "node"
MAX_RESTARTS = 10


def job_set(
    job: Job, *, labels: Object | None = None, annotations: Object | None = None, suspend: bool = False
) -> Object:
    """The JobSet; ``labels`` go to it, ``annotations`` to its pods."""
    meta = metadata(job, job.name)
    meta["labels"] |= labels or {}
    spec: Object = {"suspend": Noted(value=True, why="the queue starts it when the whole job fits")} if suspend else {}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": meta,
        "spec": {
            **spec,
            "failurePolicy": {
                "maxRestarts": Noted(
                    MAX_RESTARTS, "restarts of the whole job; each continues from the newest checkpoint"
                )
            },
            "network": {
                "enableDNSHostnames": Noted(value=True, why="ranks find node 0 by its name"),
                "publishNotReadyAddresses": Noted(value=True, why="they look for it before any of them is ready"),
            },
            "replicatedJobs": [{"name": ROLE, "replicas": 1, "template": {"spec": _child(job, annotations or {})}}],
        },
    }


def _child(job: Job, annotations: Object) -> Object:
    address = f"{job.name}-{ROLE}-0-0.{job.name}"
    labels = {"app.kubernetes.io/name": job.name}
    return {
        "parallelism": Noted(job.nodes, "one pod a node [chosen.nodes]"),
        "completions": Noted(job.nodes, "every node finishes [chosen.nodes]"),
        "completionMode": Noted("Indexed", "the index is the number of the node in the rank map [chosen.layout]"),
        "backoffLimit": Noted(0, "a lost pod fails the child Job at once, and the set restarts as one"),
        "template": {
            "metadata": {"labels": labels, "annotations": annotations} if annotations else {"labels": labels},
            "spec": pod(job, start=start_line('"$JOB_COMPLETION_INDEX"', address)),
        },
    }
