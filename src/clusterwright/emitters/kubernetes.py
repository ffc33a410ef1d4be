"""What the Kubernetes targets share: the pod of one node and its launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from clusterwright.emitters.bundle import Noted, Unsupported
from clusterwright.emitters.launch import PORT, SCRIPT, announced, launcher
from clusterwright.emitters.programs.program import KEYS_TAKEN

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.emitters.programs.program import Program

Object: TypeAlias = dict[str, Any]
NEEDS = ("image", "namespace", "rdma_resource", "rdma_per_node", "interface", "data_dir", "checkpoint_dir", "tokenizer")
TAKES = (
    "data_claim",
    "checkpoint_claim",
    "cpus_per_node",
    "memory_gib_per_node",
    "gpu_product",
    *KEYS_TAKEN,
)
MOUNT = "/opt/clusterwright"
SHUTDOWN_S = 30
"""Time that torchrun leaves its processes after SIGTERM."""


def metadata(job: Job, name: str, **more: object) -> Object:
    """Name, namespace and the label that finds all objects of the job."""
    return {
        "name": name,
        "namespace": job.need("namespace"),
        "labels": {"app.kubernetes.io/name": job.name, "app.kubernetes.io/managed-by": "clusterwright"},
        **more,
    }


def config_map(job: Job, program: Program) -> Object:
    """The launcher and the files it reads."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(job, f"{job.name}-launch"),
        "data": {SCRIPT: launcher(job, program), **program.files},
    }


def pod(job: Job, *, start: str, restart: str = "Never", scheduler: str = "") -> Object:
    """The pod of one node: it takes the node's accelerators and starts the launcher."""
    claims = [
        _volume("data", job, "data_dir", "data_claim"),
        _volume("checkpoints", job, "checkpoint_dir", "checkpoint_claim"),
    ]
    spec: Object = {
        "restartPolicy": Noted(restart, "a lost process ends the whole step: the job restarts as one"),
        "terminationGracePeriodSeconds": Noted(
            job.grace_s,
            "two steps and two checkpoints, to save before leaving [chosen.estimate.step_time_s, chosen.storage]",
        ),
        "containers": [_container(job, start)],
        "volumes": [
            {"name": "launch", "configMap": {"name": f"{job.name}-launch"}},
            {
                "name": "shm",
                "emptyDir": {
                    "medium": Noted(
                        "Memory",
                        "NCCL and data loaders share buffers of a node here; the default of 64 MiB is too small",
                    )
                },
            },
            *claims,
        ],
    }
    if scheduler:
        spec = {"schedulerName": scheduler, **spec}
    product = job.get("gpu_product")
    if product is not None:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": product}
    return spec


def _container(job: Job, start: str) -> Object:
    return {
        "name": "train",
        "image": job.need("image"),
        "command": ["/bin/bash", "-c", start],
        "ports": [{"name": "rendezvous", "containerPort": PORT}],
        "resources": {"requests": _resources(job), "limits": _resources(job)},
        "securityContext": {"capabilities": {"add": [Noted("IPC_LOCK", "RDMA pins memory")]}} if job.rdma else {},
        "volumeMounts": [
            {"name": "launch", "mountPath": MOUNT, "readOnly": True},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a mount point of the container
            {"name": "data", "mountPath": job.need("data_dir"), "readOnly": True},
            {"name": "checkpoints", "mountPath": job.need("checkpoint_dir")},
        ],
    }


def _resources(job: Job) -> Object:
    found: Object = {
        job.resource: Noted(job.per_node, "whole accelerators of a node [chosen.accelerators over chosen.nodes]")
    }
    resource, count = job.get("rdma_resource"), job.get("rdma_per_node")
    if job.rdma and resource is not None and count is not None:
        found[str(resource)] = Noted(count.value, f"{resource.why}; {count.why}")
    cpus, memory = job.get("cpus_per_node"), job.get("memory_gib_per_node")
    if cpus is not None:
        found["cpu"] = Noted(str(cpus), cpus.why)
    if memory is not None:
        found["memory"] = Noted(f"{memory}Gi", memory.why)
    return found


def _volume(name: str, job: Job, folder: str, claim: str) -> Object:
    given = job.get(claim)
    if given is not None:
        return {"name": name, "persistentVolumeClaim": {"claimName": given}}
    return {
        "name": name,
        "hostPath": {
            "path": job.need(folder),
            "type": Noted("Directory", "must be there: an empty one would train on nothing"),
        },
    }


def gaps(job: Job, program: Program) -> tuple[Unsupported, ...]:
    """What the pod does not express for want of a value, and what the program does not."""
    found = [*announced(job, program)]
    if job.get("cpus_per_node") is None or job.get("memory_gib_per_node") is None:
        found.append(
            Unsupported(
                "guaranteed quality of service",
                "the plan knows no processors or memory of the node; give cpus_per_node and memory_gib_per_node with --set",
            )
        )
    if job.get("gpu_product") is None:
        found.append(
            Unsupported(
                "node selector",
                f"nodes of {job.chosen.accelerator} are told by the cluster's own label; give gpu_product with --set where it has several kinds",
            )
        )
    if job.checkpoint_s > SHUTDOWN_S:
        found.append(
            Unsupported(
                "a checkpoint on eviction",
                f"torchrun ends its processes {SHUTDOWN_S} s after SIGTERM and this checkpoint takes {job.checkpoint_s:.0f} s; at most one interval of {job.save_steps} steps is lost",
            )
        )
    return tuple(found)


def start_line(rank: str, address: str) -> str:
    """The shell command of a pod, once its scheduler has said where it stands."""
    return f"export NODE_RANK={rank} MASTER_ADDR={address} MASTER_PORT={PORT}\nexec bash {MOUNT}/{SCRIPT}\n"
