"""TrainJob of Kubeflow Trainer 2, with the TrainingRuntime it runs in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Noted, Unsupported
from clusterwright.emitters.jobset import MAX_RESTARTS
from clusterwright.emitters.kubernetes import MOUNT, NEEDS, TAKES, Object, config_map, gaps, metadata, pod
from clusterwright.emitters.launch import SCRIPT, program_of
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

API = "trainer.kubeflow.org/v1alpha1"
_START = (
    'export NODE_RANK="$PET_NODE_RANK" MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="$PET_MASTER_PORT"\n'
    f"exec bash {MOUNT}/{SCRIPT}\n"
)
"""The torch policy says by PET_* where a node stands."""


def write(job: Job) -> Bundle:
    """The job, its runtime and its ConfigMap."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes.\nkubectl apply -f job.yaml"
    files = {"job.yaml": yaml_text([config_map(job, program), _runtime(job), _train_job(job)], head=head)}
    gang = Unsupported(
        "gang start",
        "podGroupPolicy needs the coscheduling plugin or Volcano in the cluster; target volcano or kueue starts all or none",
    )
    return Bundle(files, (*gaps(job, program), gang))


def _runtime(job: Job) -> Object:
    spec = pod(job, start=_START)
    spec["containers"][0]["name"] = "node"
    label = {
        "trainer.kubeflow.org/trainjob-ancestor-step": Noted(
            "trainer", "the Job whose pods the TrainJob counts and changes"
        )
    }
    child: Object = {
        "backoffLimit": Noted(0, "a lost pod fails the child Job at once, and the set restarts as one"),
        "template": {"spec": spec},
    }
    return {
        "apiVersion": API,
        "kind": "TrainingRuntime",
        "metadata": metadata(job, f"{job.name}-runtime"),
        "spec": {
            "mlPolicy": {
                "numNodes": Noted(job.nodes, "[chosen.nodes]"),
                "torch": {},
            },
            "template": {
                "spec": {
                    "failurePolicy": {
                        "maxRestarts": Noted(
                            MAX_RESTARTS, "restarts of the whole job; each continues from the newest checkpoint"
                        )
                    },
                    "replicatedJobs": [{"name": "node", "template": {"metadata": {"labels": label}, "spec": child}}],
                }
            },
        },
    }


def _train_job(job: Job) -> Object:
    resources = pod(job, start=_START)["containers"][0]["resources"]
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": metadata(job, job.name),
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "TrainingRuntime",
                "name": f"{job.name}-runtime",
            },
            "trainer": {
                "image": job.need("image"),
                "command": ["/bin/bash", "-c", _START],
                "numNodes": Noted(job.nodes, "[chosen.nodes]"),
                "numProcPerNode": Noted(
                    job.per_node, "one process an accelerator [chosen.accelerators over chosen.nodes]"
                ),
                "resourcesPerNode": resources,
            },
        },
    }


TARGET = Target("trainjob", "TrainJob and TrainingRuntime of Kubeflow Trainer 2, with launcher", NEEDS, TAKES, write)
