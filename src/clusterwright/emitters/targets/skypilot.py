"""SkyPilot: one task of all nodes, where the plan's offer is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Noted
from clusterwright.emitters.cloud import rented
from clusterwright.emitters.launch import SCRIPT
from clusterwright.emitters.programs.program import KEYS_NEEDED, KEYS_TAKEN
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.emitters.kubernetes import Object

CLOUDS = (
    "aws",
    "azure",
    "gcp",
    "lambda",
    "runpod",
    "nebius",
    "oci",
    "fluidstack",
    "vast",
    "paperspace",
    "cudo",
    "ibm",
    "do",
    "kubernetes",
)
"""Names of SkyPilot's infrastructures."""
_RUN = f'export NODE_RANK="$SKYPILOT_NODE_RANK"\nMASTER_ADDR="$(head -n 1 <<<"$SKYPILOT_NODE_IPS")"\nexport MASTER_ADDR\nexec bash {SCRIPT}\n'


def _files(job: Job, chip: str, names: tuple[str, ...]) -> dict[str, str]:
    del names  # the whole folder is copied
    head = f"{job.chosen.accelerators} x {job.chosen.accelerator} on {job.nodes} nodes.\nIn this folder: sky jobs launch task.yaml"
    return {"task.yaml": yaml_text([_task(job, chip)], head=head)}


def _task(job: Job, chip: str) -> Object:
    offer = job.chosen.offer
    resources: Object = {
        "accelerators": Noted(f"{chip}:{job.per_node}", "[chosen.accelerator, chosen.accelerators over chosen.nodes]")
    }
    if offer.provider in CLOUDS:
        where = f"{offer.provider}/{offer.region}" if offer.region and "*" not in offer.region else offer.provider
        resources["infra"] = Noted(where, "where the plan's price was seen [chosen.offer]")
    if offer.term == "spot":
        resources["use_spot"] = Noted(value=True, why="[chosen.offer.term]")
        resources["job_recovery"] = {
            "strategy": Noted(
                "FAILOVER", "another place when this one takes the nodes back; it continues from the newest checkpoint"
            )
        }
    if job.rdma:
        resources["network_tier"] = Noted("best", "the plan counts on the fast network [hardware_node.fabric]")
    resources["image_id"] = Noted(f"docker:{job.need('image')}", job.need("image").why)
    return {
        "name": job.name,
        "num_nodes": Noted(job.nodes, "[chosen.nodes]"),
        "workdir": Noted(".", "the launcher and what it reads are copied to every node"),
        "resources": resources,
        "run": _RUN,
    }


TARGET = Target(
    "skypilot",
    "task for sky jobs launch, with launcher",
    ("image", *KEYS_NEEDED),
    KEYS_TAKEN,
    rented("SkyPilot", _files, CLOUDS, "they must be on every node; mount your bucket or volume with file_mounts"),
)
