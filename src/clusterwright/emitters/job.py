"""What every target reads of a plan: the job, with its site values and their origins."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import ValidationError

from clusterwright.emitters.bundle import Noted, Unsupported
from clusterwright.emitters.keys import KEYS
from clusterwright.errors import InputError
from clusterwright.hardware import FabricKind
from clusterwright.workload import Training

if TYPE_CHECKING:
    from clusterwright.hardware import Accelerator, Node
    from clusterwright.layout import Layout
    from clusterwright.model import Model
    from clusterwright.plan import Candidate, Plan

RDMA = (FabricKind.INFINIBAND, FabricKind.ROCE, FabricKind.EFA, FabricKind.SLINGSHOT)
NETWORK_KEYS = ("rdma_resource", "rdma_per_node", "interface")
RESOURCE = {"nvidia": "nvidia.com/gpu", "amd": "amd.com/gpu", "intel": "gpu.intel.com/xe"}
"""Extended resource of each vendor's device plugin."""


@dataclass(frozen=True)
class Job:
    """A plan's chosen candidate as something to run."""

    plan: Plan
    chosen: Candidate
    site: dict[str, tuple[str | int | tuple[str, ...], str]] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    """Needed keys that stay without a value (``--allow-unset``)."""

    @cached_property
    def training(self) -> Training | None:
        """The workload's training section; none for serving."""
        section = self.plan.workload.get("training")
        if section is None:
            return None
        try:
            return Training.model_validate(section)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            msg = f"plan: workload.training.{place}: {first['msg']}"
            raise InputError(msg) from None

    @property
    def layout(self) -> Layout:
        """Degrees and batches."""
        return self.chosen.layout

    @property
    def model(self) -> Model:
        """The network's shape."""
        return self.plan.model

    @property
    def node(self) -> Node:
        """The node's hardware, which a plan carries."""
        if self.plan.hardware_node is None:
            msg = "plan: hardware_node is missing; write the plan again with this version"
            raise InputError(msg)
        return self.plan.hardware_node

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator's hardware, which a plan carries."""
        if self.plan.hardware_accelerator is None:
            msg = "plan: hardware_accelerator is missing; write the plan again with this version"
            raise InputError(msg)
        return self.plan.hardware_accelerator

    @property
    def resource(self) -> str:
        """Extended resource by which Kubernetes counts the accelerator."""
        return "habana.ai/gaudi" if self.accelerator.name.startswith("gaudi") else RESOURCE[self.accelerator.vendor]

    @property
    def nodes(self) -> int:
        """Nodes the job runs on, without spares."""
        return self.chosen.nodes

    @property
    def per_node(self) -> int:
        """Accelerators the job uses of each node."""
        return -(-self.chosen.accelerators // self.chosen.nodes)

    @property
    def even(self) -> bool:
        """Whether every node gives the same number of accelerators."""
        return self.per_node * self.nodes == self.chosen.accelerators

    @property
    def rdma(self) -> bool:
        """Whether nodes talk through RDMA adapters."""
        return self.nodes > 1 and self.node.fabric in RDMA

    @property
    def name(self) -> str:
        """A name that Slurm and Kubernetes accept.

        A DNS label of at most 40 characters, so that controllers can append theirs.
        """
        slug = re.sub(r"[^a-z0-9]+", "-", f"{self.model.name}".lower()).strip("-")[:32].strip("-") or "model"
        slug = slug if slug[0].isalpha() else f"m-{slug}"[:32].strip("-")
        return f"{slug}-{self.chosen.accelerators}"

    def get(self, key: str) -> Noted | None:
        """A site value with its origin, or none when it is not given."""
        if key in self.unset:
            known = KEYS[key]
            return Noted(known.unset, f"UNSET: {known.about}; give {key} in [site] or with --set")
        if key not in self.site:
            return None
        value, origin = self.site[key]
        return Noted(value if isinstance(value, (str, int)) else " ".join(value), f"{KEYS[key].about} [{origin}]")

    def need(self, key: str) -> Noted:
        """A site value that the door has made sure of."""
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the nodes as the user gave them; empty when not given."""
        value = self.site.get("hosts", ((), ""))[0]
        return value if isinstance(value, tuple) else ()

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of the nodes and spares: the user's, else numbered after the plan's node."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.chosen.node.lower()).strip("-") or "node"
        count = self.nodes + self.chosen.spares
        return self.hosts or tuple(f"{slug}-{i}" for i in range(1, count + 1))

    @cached_property
    def leaf_groups(self) -> tuple[tuple[str, ...], ...]:
        """Node names by the leaf switches they share (with a leaf a rail: by the group of leaves)."""
        names, leaves, rails = self.node_names, self.chosen.fabric.leaf, max(self.node.nics, 1)
        groups = leaves // rails if leaves and leaves % rails == 0 else leaves
        size = math.ceil(len(names) / max(groups, 1))
        return tuple(names[i : i + size] for i in range(0, len(names), size))

    @property
    def checkpoint_s(self) -> float:
        """Time to write one checkpoint [s]."""
        storage = self.chosen.storage
        return storage.checkpoint_bytes / storage.write_bytes_per_s if storage.write_bytes_per_s > 0 else 0.0

    @property
    def grace_s(self) -> int:
        """Time a job is given to save and leave [s]: two steps and two checkpoints, at least a minute, in whole minutes."""
        seconds = 2.0 * self.chosen.estimate.step_time_s + 2.0 * self.checkpoint_s
        return 60 * max(1, math.ceil(seconds / 60.0))

    @property
    def save_steps(self) -> int:
        """Steps between checkpoints."""
        return max(1, int(self.chosen.storage.checkpoint_interval_s / self.chosen.estimate.step_time_s))


def not_for(job: Job) -> tuple[Unsupported, ...]:
    """Why a plan is not a training run that the launchers can start; empty when it is."""
    if job.training is None:
        return (Unsupported("serving", "this target starts training runs; the plan's workload has no [training]"),)
    if not job.even:
        nodes = f"{job.chosen.accelerators} accelerators on {job.nodes} nodes"
        return (Unsupported("uneven nodes", f"{nodes}: every node must run the same number of processes"),)
    return ()
