"""What the network asks of NCCL: little, each with its reason, from the one set of values that the switches share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Setting, Unsupported
from clusterwright.hardware import FabricKind

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

DSCP = 26
"""DSCP of RoCE data (AMD RoCE guide, 2026-09-15; https://kubernetes.recipes/recipes/networking/dell-switch-rocev2-pfc-ecn-dscp/)."""
CNP_DSCP = 48
"""DSCP of congestion notifications (AMD RoCE guide, 2026-09-15)."""
PRIORITY = 3
"""The one lossless priority (https://kubernetes.recipes/recipes/networking/rdma-network-qos-traffic-classes-dcqcn/)."""
CNP_PRIORITY = 6
"""Traffic class of congestion notifications (the same recipe)."""
MTU_BYTES = 9216
"""Of switch ports (AMD RoCE guide, 2026-09-15)."""
ECN_MIN_BYTES, ECN_MAX_BYTES, ECN_PERCENT = 1 << 20, 2 << 20, 5
"""Marking begins and is certain at these queue lengths, with this probability between
(SONiC AZURE_LOSSLESS, sonic-buildimage files/build_templates/qos_config.j2, 2026-08-23)."""


def own_switches(job: Job) -> bool:
    """Whether the switches are the user's: bought, or built with the plan."""
    return job.chosen.offer.provider in ("own", "existing")


def traffic_class(dscp: int) -> int:
    """The traffic class byte of a DSCP: the DSCP stands above the two ECN bits.

    >>> traffic_class(26)
    104
    """
    return dscp << 2


def nccl(job: Job) -> tuple[tuple[Setting, ...], tuple[Unsupported, ...]]:
    """NCCL's environment for this job, and what is left to the site."""
    if job.nodes == 1:
        return (), ()
    settings, left = [], []
    interface = job.get("interface")
    if interface is not None:
        settings.append(
            Setting(
                "NCCL_SOCKET_IFNAME",
                f"={str(interface).lstrip('=')}",
                f"first contact between nodes goes over this interface alone: {interface.why}",
            )
        )
    fabric = job.node.fabric
    if fabric == FabricKind.ROCE:
        given = job.get("dscp")
        if given is not None or own_switches(job):
            dscp = int(str(given)) if given is not None else DSCP
            where = given.why if given is not None else "the value that the switch files of this plan use"
            settings.append(
                Setting(
                    "NCCL_IB_TC",
                    str(traffic_class(dscp)),
                    f"DSCP {dscp} << 2, so that switches treat it as lossless: {where}",
                )
            )
        else:
            left.append(
                Unsupported(
                    "NCCL_IB_TC", "the lossless DSCP is set by the provider's switches; ask for it and give --set dscp"
                )
            )
    if fabric == FabricKind.EFA:
        left.append(
            Unsupported(
                "EFA settings",
                "none is needed with libfabric 1.18 and aws-ofi-nccl 1.7 or newer (EFA cheatsheet, aws-samples/awsome-distributed-training); the image must hold them",
            )
        )
    if fabric == FabricKind.SLINGSHOT:
        left.append(
            Unsupported("Slingshot settings", "the libfabric plugin and its settings come with the site's image")
        )
    return tuple(settings), tuple(left)
