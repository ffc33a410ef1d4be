"""dstack: a fleet whose nodes are placed together, and the task that runs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Noted
from clusterwright.emitters.cloud import rented
from clusterwright.emitters.kubernetes import MOUNT, Object
from clusterwright.emitters.launch import SCRIPT
from clusterwright.emitters.programs.program import KEYS_NEEDED, KEYS_TAKEN
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

BACKENDS = {
    "aws": "aws",
    "azure": "azure",
    "gcp": "gcp",
    "lambda": "lambda",
    "runpod": "runpod",
    "nebius": "nebius",
    "oci": "oci",
    "vast": "vastai",
    "crusoe": "crusoe",
}
_RUN = f'NODE_RANK="$DSTACK_NODE_RANK" MASTER_ADDR="$DSTACK_MASTER_NODE_IP" bash {MOUNT}/{SCRIPT}'


def _files(job: Job, chip: str, names: tuple[str, ...]) -> dict[str, str]:
    fleet = f"{job.nodes} nodes placed together.\ndstack apply -f fleet.dstack.yml"
    return {
        "fleet.dstack.yml": yaml_text([_fleet(job, chip)], head=fleet),
        "task.dstack.yml": yaml_text([_task(job, chip, names)], head="In this folder: dstack apply -f task.dstack.yml"),
    }


def _resources(job: Job, chip: str) -> Object:
    name, _, memory = chip.partition("-")
    gpu: Object = {
        "name": Noted(name, "[chosen.accelerator]"),
        "count": Noted(job.per_node, "[chosen.accelerators over chosen.nodes]"),
    }
    if memory:
        gpu["memory"] = Noted(memory, "[chosen.accelerator]")
    return {"gpu": gpu}


def _place(job: Job) -> Object:
    offer, found = job.chosen.offer, {}
    if offer.provider in BACKENDS:
        found["backends"] = [Noted(BACKENDS[offer.provider], "where the plan's price was seen [chosen.offer.provider]")]
    if offer.term in ("spot", "on-demand"):
        found["spot_policy"] = [Noted(offer.term, "[chosen.offer.term]")]
    return {key: value[0] if key == "spot_policy" else value for key, value in found.items()}


def _fleet(job: Job, chip: str) -> Object:
    return {
        "type": "fleet",
        "name": f"{job.name}-fleet",
        "nodes": Noted(job.nodes, "[chosen.nodes]"),
        "placement": Noted("cluster", "nodes on one network: the plan counts on it [chosen.fabric]"),
        "resources": _resources(job, chip),
        **_place(job),
    }


def _task(job: Job, chip: str, names: tuple[str, ...]) -> Object:
    data, checkpoints = job.need("data_dir"), job.need("checkpoint_dir")
    return {
        "type": "task",
        "name": job.name,
        "nodes": Noted(job.nodes, "[chosen.nodes]"),
        "image": job.need("image"),
        "files": [f"{name}:{MOUNT}/{name}" for name in names],
        "commands": [_RUN],
        "resources": _resources(job, chip),
        "volumes": [Noted(f"{data}:{data}", data.why), Noted(f"{checkpoints}:{checkpoints}", checkpoints.why)],
        "retry": {
            "on_events": [
                Noted(
                    "interruption", "a node that is taken back: the task starts again and continues from its checkpoint"
                ),
                "error",
            ],
            "duration": Noted("1d", "as long as the plan's nodes may be short"),
        },
        **_place(job),
    }


TARGET = Target(
    "dstack",
    "fleet with cluster placement, task and launcher",
    ("image", *KEYS_NEEDED),
    KEYS_TAKEN,
    rented("dstack", _files, BACKENDS, "they are folders of the instance here; mount the shared file system on them"),
)
