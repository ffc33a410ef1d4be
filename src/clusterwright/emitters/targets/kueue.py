"""Kueue: the quota of the plan's nodes, the topology they are placed by, and the job that waits for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Noted, Unsupported
from clusterwright.emitters.jobset import job_set
from clusterwright.emitters.kubernetes import NEEDS, TAKES, Object, config_map, gaps, metadata
from clusterwright.emitters.launch import program_of
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

API = "kueue.x-k8s.io/v1beta2"
HOST_LABEL = "kubernetes.io/hostname"


def write(job: Job) -> Bundle:
    """The queue's objects and the job that goes through them."""
    program = program_of(job)
    if isinstance(program, tuple):
        return Bundle({}, program)
    head = f"Quota of {job.nodes} nodes and {job.chosen.spares} spares; an administrator applies it once."
    files = {
        "queue.yaml": yaml_text(_queue(job), head=head),
        "job.yaml": yaml_text(
            [config_map(job, program), _waiting(job)], head="The job; Kueue starts it when all its pods have a place."
        ),
    }
    return Bundle(files, (*gaps(job, program), *_left(job)))


def _levels(job: Job) -> list[str]:
    given = job.get("topology_labels")
    return [*(str(given).split(",") if given else []), HOST_LABEL]


def _waiting(job: Job) -> Object:
    wanted = {
        "kueue.x-k8s.io/podset-required-topology": Noted(
            _levels(job)[0], "one domain of this level holds the whole job, or it waits [chosen.fabric]"
        )
    }
    unconstrained = {
        "kueue.x-k8s.io/podset-unconstrained-topology": Noted(
            "true", "any nodes, but all pods have one before the first starts"
        )
    }
    labels = {"kueue.x-k8s.io/queue-name": job.need("queue")}
    return job_set(
        job, labels=labels, annotations=wanted if job.get("topology_labels") else unconstrained, suspend=True
    )


def _queue(job: Job) -> list[Object]:
    flavor, topology = f"{job.name}-nodes", f"{job.name}-topology"
    product = job.get("gpu_product")
    labels = (
        {"nvidia.com/gpu.product": product}
        if product
        else {
            "kubernetes.io/os": Noted(
                "linux", "a flavor with a topology needs a label; give gpu_product for the right one"
            )
        }
    )
    queue = str(job.need("queue"))
    return [
        {
            "apiVersion": API,
            "kind": "Topology",
            "metadata": {"name": topology},
            "spec": {"levels": [{"nodeLabel": label} for label in _levels(job)]},
        },
        {
            "apiVersion": API,
            "kind": "ResourceFlavor",
            "metadata": {"name": flavor},
            "spec": {"nodeLabels": labels, "topologyName": topology},
        },
        {
            "apiVersion": API,
            "kind": "ClusterQueue",
            "metadata": {"name": queue},
            "spec": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": job.need("namespace")}},
                "queueingStrategy": Noted("StrictFIFO", "a large job is not overtaken for ever by small ones"),
                "resourceGroups": [_group(job, flavor)],
            },
        },
        {"apiVersion": API, "kind": "LocalQueue", "metadata": metadata(job, queue), "spec": {"clusterQueue": queue}},
    ]


def _group(job: Job, flavor: str) -> Object:
    nodes, quota = job.nodes + job.chosen.spares, {}
    quota[job.resource] = Noted(nodes * job.node.accelerators, "nodes and spares [chosen.nodes, chosen.spares]")
    resource, count = job.get("rdma_resource"), job.get("rdma_per_node")
    if job.rdma and resource and count:
        quota[str(resource)] = Noted(nodes * int(str(count)), f"{count.why}, over nodes and spares")
    cpus, memory = job.get("cpus_per_node"), job.get("memory_gib_per_node")
    if cpus:
        quota["cpu"] = Noted(nodes * int(str(cpus)), f"{cpus.why}, over nodes and spares")
    if memory:
        quota["memory"] = Noted(f"{nodes * int(str(memory))}Gi", f"{memory.why}, over nodes and spares")
    resources = [{"name": name, "nominalQuota": value} for name, value in quota.items()]
    return {"coveredResources": list(quota), "flavors": [{"name": flavor, "resources": resources}]}


def _left(job: Job) -> list[Unsupported]:
    if job.get("topology_labels"):
        return []
    return [
        Unsupported(
            "placement under few leaves",
            "which node labels say block and rack is the site's; give topology_labels with --set",
        )
    ]


TARGET = Target(
    "kueue", "ClusterQueue, LocalQueue, ResourceFlavor, Topology, and the JobSet that waits in them for all its pods",
    ("queue", *NEEDS), ("topology_labels", *TAKES), write,
)  # fmt: skip
