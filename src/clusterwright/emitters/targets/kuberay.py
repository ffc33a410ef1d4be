"""KubeRay: a RayJob whose cluster starts whole or not at all, and the program that starts every node's launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Noted, Unsupported
from clusterwright.emitters.kubernetes import MOUNT, NEEDS, TAKES, Object, config_map, gaps, metadata, pod
from clusterwright.emitters.launch import PORT, SCRIPT, program_of
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

START = "start.py"
BACKOFF = 10
QUEUE_LABEL = "volcano.sh/queue-name"
"""By which KubeRay's operator makes Volcano's PodGroup (ray-operator/controllers/ray/batchscheduler/volcano of ray-project/kuberay)."""


def write(job: Job) -> Bundle:
    """The job with its ConfigMap."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes.\nkubectl apply -f rayjob.yaml"
    files = config_map(job, program)
    files["data"][START] = _start(job)
    return Bundle({"rayjob.yaml": yaml_text([files, _ray_job(job)], head=head)}, (*gaps(job, program), *_left(job)))


def _ray_job(job: Job) -> Object:
    meta = metadata(job, job.name)
    queue = job.need("queue")
    meta["labels"][QUEUE_LABEL] = Noted(
        str(queue), f"one PodGroup of head and nodes: all of them start or none; {queue.why}"
    )
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": meta,
        "spec": {
            "entrypoint": Noted(f"python {MOUNT}/{START}", "starts the launcher on every node, and ends with the first that fails"),
            "backoffLimit": Noted(
                BACKOFF, "restarts with a new cluster, all ranks together; each continues from the newest checkpoint"
            ),
            "shutdownAfterJobFinishes": Noted(value=True, why="the nodes are free when the last step is done"),
            "rayClusterSpec": {"headGroupSpec": _head(job), "workerGroupSpecs": [_nodes(job)]},
        },
    }  # fmt: skip


def _head(job: Job) -> Object:
    container: Object = {
        "name": "ray-head",
        "image": job.need("image"),
        "volumeMounts": [{"name": "launch", "mountPath": MOUNT, "readOnly": True}],
    }
    spec: Object = {
        "restartPolicy": Noted("Never", "without its head the cluster is lost, and the job starts again whole"),
        "containers": [container],
        "volumes": [{"name": "launch", "configMap": {"name": f"{job.name}-launch"}}],
    }
    why = "the head has no accelerator: it only starts the others"
    return {
        "rayStartParams": {"num-cpus": Noted("0", why), "num-gpus": Noted("0", why)},
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": job.name}}, "spec": spec},
    }


def _nodes(job: Job) -> Object:
    spec = pod(job, start="")
    (container,) = spec["containers"]
    del container["command"]
    container["name"] = "ray-worker"
    count = Noted(job.nodes, "one pod a node, and no fewer: the layout needs them all [chosen.nodes]")
    return {
        "groupName": "nodes",
        "replicas": count,
        "minReplicas": count,
        "maxReplicas": count,
        "rayStartParams": {
            "num-gpus": Noted(str(job.per_node), "what start.py asks for [chosen.accelerators over chosen.nodes]")
        },
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": job.name}}, "spec": spec},
    }


def _start(job: Job) -> str:
    return f'''\
"""Start the launcher once on every node, all at the same time; Ray runs this on the head."""

import os
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

NODES = {job.nodes}  # [chosen.nodes]
PER_NODE = {job.per_node}  # accelerators [chosen.accelerators over chosen.nodes]
LAUNCHER = os.environ.get("LAUNCHER", "{MOUNT}/{SCRIPT}")


@ray.remote(num_cpus=0, max_retries=0)
def address() -> str:
    """Where node 0 is."""
    return ray.util.get_node_ip_address()


@ray.remote(num_cpus=0, num_gpus=PER_NODE, max_retries=0)
def start(node: int, first: str) -> int:
    """Run the launcher of this node to its end."""
    place = {{"NODE_RANK": str(node), "MASTER_ADDR": first, "MASTER_PORT": "{PORT}"}}
    return subprocess.call(["bash", LAUNCHER], env={{**os.environ, **place}})


def main() -> int:
    """The code of the first node that fails; 0 when all are done."""
    ray.init()
    # A bundle a node, never two on one: ranks of a node are neighbours in the layout.
    group = placement_group([{{"GPU": PER_NODE}}] * NODES, strategy="STRICT_SPREAD")
    ray.get(group.ready())
    at = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=node) for node in range(NODES)]
    first = ray.get(address.options(scheduling_strategy=at[0]).remote())
    running = [start.options(scheduling_strategy=at[node]).remote(node, first) for node in range(NODES)]
    while running:
        (done,), running = ray.wait(running)
        if code := ray.get(done):
            return code  # the others would wait for it for ever: the job ends, and starts again whole
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


def _left(job: Job) -> list[Unsupported]:
    found = [
        Unsupported("gang start", "the queue label counts only where KubeRay's operator runs with --batch-scheduler=volcano"),
        Unsupported("Ray in the image", "the image must hold ray beside the training program, of a version that the operator supports"),
        Unsupported("resources of the head", "the plan has none for it; the operator's own sample advises 8 GB of memory (ray-cluster.complete.yaml)"),
    ]  # fmt: skip
    if job.nodes > 1:
        found.append(
            Unsupported(
                "networkTopology", "it needs the network's HyperNodes; target volcano writes them for named hosts"
            )
        )
    return found


TARGET = Target(
    "kuberay",
    "RayJob with gang start through Volcano, and the program that starts the launcher on every node",
    ("queue", *NEEDS),
    TAKES,
    write,
)
