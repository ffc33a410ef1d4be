"""Time of what the host's memory holds: an optimizer that steps there, and activations that go there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from clusterwright.estimators import residency
from clusterwright.laws import work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.grid import Layouts
    from clusterwright.estimators.job import Device, Job

    Floats = NDArray[Any]

COHERENT = ("gh200", "gb200", "gb300")
"""Accelerators with a Grace beside them, over NVLink-C2C."""
COHERENT_BYTES_PER_S = 360e9
"""Link to a Grace: 450 GB/s one direction at nameplate, four fifths of it taken [B/s]."""
LINK_BYTES_PER_S = {"volta": 12e9, "ampere": 25e9, "ada": 25e9, "cdna2": 25e9, "gaudi2": 25e9}
"""Link to the host that copies sustain: PCIe 3.0 and 4.0, sixteen lanes [B/s]."""
NEWER_LINK_BYTES_PER_S = 50e9
"""The same of PCIe 5.0: 54 to 55 GB/s measured on Aurora (ALCF user guides, node-performance-overview) [B/s]."""
GRACE_BYTES_PER_S = {"gh200": 400e9}
OF_TWO_GRACE_BYTES_PER_S = 200e9
"""Memory bandwidth that a Grace of 500 GB/s sustains for its one accelerator, or for each of two [B/s], estimated."""
HOST_BYTES_PER_S = 250e9
"""Memory bandwidth that an optimizer on the processors of a node sustains, two sockets [B/s], estimated: no run of the
fitted ones says it."""


def links(job: Job) -> tuple[float, float]:
    """Bandwidth of the link to the host, and of the host's memory, that one accelerator has [B/s]."""
    if job.accelerator.name.startswith(COHERENT):
        return COHERENT_BYTES_PER_S, GRACE_BYTES_PER_S.get(job.accelerator.name, OF_TWO_GRACE_BYTES_PER_S)
    link = LINK_BYTES_PER_S.get(job.accelerator.architecture, NEWER_LINK_BYTES_PER_S)
    return link, HOST_BYTES_PER_S / job.node.accelerators


def optimizer(job: Job, device_bytes_per_s: float, owned: Floats) -> dict[str, Floats]:
    """Time of an optimizer's step: on the accelerator, and what of it the host does [s].

    Args:
        job: What is trained.
        device_bytes_per_s: Sustained memory bandwidth of the accelerator.
        owned: Parameters whose states a rank owns, shape (n,).
    """
    keep = residency.habits(job)
    gradient = keep.main_gradient or keep.gradient
    moved = work.optimizer_bytes(keep.master, keep.moments, gradient, keep.weight)
    away = job.saving.offload_optimizer or 0.0
    found = {"optimizer step": (1.0 - away) * owned * moved / device_bytes_per_s}
    if away:
        link, host = links(job)
        copied = gradient + keep.weight
        found["optimizer on the host"] = away * owned * (copied / link + moved / host)
    return found


def activations(job: Job, lay: Layouts, device: Device) -> Floats:
    """Time that a layer's activations take to and from the host beyond what a layer takes anyway [s], shape (n,)."""
    copy = job.saving.offload_share * residency.kept_bytes(job, lay) / min(links(job))
    layer = np.maximum(device.busy, device.launch / device.layers)
    forward = layer / 3.0
    return np.asarray(np.maximum(copy - forward, 0.0) + np.maximum(copy - (layer - forward), 0.0))
