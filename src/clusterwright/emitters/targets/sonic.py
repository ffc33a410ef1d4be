"""SONiC: the lossless class of RoCE on every port of a switch, from the values that the nodes use too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.network import (
    CNP_DSCP,
    CNP_PRIORITY,
    DSCP,
    ECN_MAX_BYTES,
    ECN_MIN_BYTES,
    ECN_PERCENT,
    MTU_BYTES,
    PRIORITY,
    traffic_class,
)
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import table
from clusterwright.hardware import FabricKind

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

FILE = "config_db.json"
MAP, PROFILE, WEIGHTED = "ROCE", "ROCE_LOSSLESS", "scheduler.roce"
WATCHDOG_MS = 200
"""Detection, restoration and polling that `pfcwd start_default` writes (sonic-net/sonic-utilities, pfcwd/main.py)."""
SHARE_PERCENT = 50
"""Bandwidth that the lossless queue is sure of: within 40 to 60 percent, https://losslessnetwork.com/learn/switch-qos/dcqcn-buffer-profiles-and-tuning."""


def write(job: Job) -> Bundle:
    """A fragment for `config load`, the same for every switch whose ports are so named, and its reasons."""
    if job.node.fabric != FabricKind.ROCE:
        return Bundle(
            {},
            (Unsupported("SONiC", f"the nodes' network is {job.node.fabric.value}; the lossless class is for RoCE"),),
        )
    given = job.get("dscp")
    dscp = int(str(given)) if given is not None else DSCP
    if dscp == CNP_DSCP:
        return Bundle(
            {}, (Unsupported("dscp", f"DSCP {dscp} is that of congestion notifications; data needs another"),)
        )
    ports = [port for port in str(job.need("switch_ports")).split(",") if port]
    config = _config(ports, dscp)
    text = json.dumps(config, indent=2) + "\n"
    return Bundle({FILE: text, "WHY.md": _why(job, dscp)}, _left())


def _config(ports: list[str], dscp: int) -> dict[str, Any]:
    classes = {str(d): "0" for d in range(64)} | {str(dscp): str(PRIORITY), str(CNP_DSCP): str(CNP_PRIORITY)}
    same = {str(tc): str(tc) for tc in range(8)}
    colors = {
        f"{color}_{key}": value
        for color in ("green", "yellow", "red")
        for key, value in (
            ("min_threshold", str(ECN_MIN_BYTES)),
            ("max_threshold", str(ECN_MAX_BYTES)),
            ("drop_probability", str(ECN_PERCENT)),
        )
    }
    enabled = {f"wred_{color}_enable": "true" for color in ("green", "yellow", "red")}
    port = {
        "dscp_to_tc_map": MAP,
        "tc_to_queue_map": MAP,
        "tc_to_pg_map": MAP,
        "pfc_to_queue_map": MAP,
        "pfc_enable": str(PRIORITY),
        "pfcwd_sw_enable": str(PRIORITY),
    }
    watch = {"action": "drop", "detection_time": str(WATCHDOG_MS), "restoration_time": str(WATCHDOG_MS)}
    return {
        "PORT": {name: {"mtu": str(MTU_BYTES)} for name in ports},
        "DSCP_TO_TC_MAP": {MAP: classes},
        "TC_TO_QUEUE_MAP": {MAP: same},
        "TC_TO_PRIORITY_GROUP_MAP": {MAP: {tc: (tc if tc == str(PRIORITY) else "0") for tc in same}},
        "MAP_PFC_PRIORITY_TO_QUEUE": {MAP: same},
        "WRED_PROFILE": {PROFILE: {"ecn": "ecn_all", **enabled, **colors}},
        "SCHEDULER": {WEIGHTED: {"type": "DWRR", "weight": str(SHARE_PERCENT)}, "scheduler.cnp": {"type": "STRICT"}},
        "PORT_QOS_MAP": dict.fromkeys(ports, port),
        "QUEUE": {
            f"{name}|{queue}": value
            for name in ports
            for queue, value in (
                (PRIORITY, {"wred_profile": PROFILE, "scheduler": WEIGHTED}),
                (CNP_PRIORITY, {"scheduler": "scheduler.cnp"}),
            )
        },
        "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": str(WATCHDOG_MS)}, **dict.fromkeys(ports, watch)},
    }


def _why(job: Job, dscp: int) -> str:
    rows = [
        ("PORT.mtu", MTU_BYTES, "room for RDMA messages of 4096 bytes and every header (AMD RoCE guide, 2026-09-15)"),
        (
            "DSCP_TO_TC_MAP",
            f"{dscp} to {PRIORITY}, {CNP_DSCP} to {CNP_PRIORITY}",
            f"data in the lossless class, notifications in their own; nodes set NCCL_IB_TC={traffic_class(dscp)} = DSCP {dscp} << 2 (target nccl)",
        ),
        ("pfc_enable", PRIORITY, "pause frames on this priority alone"),
        (
            "WRED_PROFILE",
            f"{ECN_MIN_BYTES} to {ECN_MAX_BYTES} bytes, {ECN_PERCENT} %",
            "marks before it pauses (SONiC's AZURE_LOSSLESS, sonic-buildimage files/build_templates/qos_config.j2)",
        ),
        (
            "SCHEDULER",
            f"weight {SHARE_PERCENT}; notifications strict",
            "share of the lossless queue (losslessnetwork.com, 40 to 60 %); a late notification is of no use",
        ),
        ("PFC_WD", f"{WATCHDOG_MS} ms", "ends a storm of pause frames (values of pfcwd start_default)"),
        ("ports", str(job.need("switch_ports")), job.need("switch_ports").why),
    ]
    return (
        "# Why each value of config_db.json\n\nLoad with `config load config_db.json` on top of what the switch has.\n\n"
        + table(("key", "value", "why"), rows)
    )


def _left() -> tuple[Unsupported, ...]:
    return (
        Unsupported(
            "buffers",
            "headroom and pools depend on the switch's chip and the cables' length: the platform's own BUFFER tables stand",
        ),
        Unsupported(
            "lanes and speed of the ports", "they are the platform's: the fragment adds to ports that are there"
        ),
    )


TARGET = Target(
    "sonic",
    "config_db.json fragment: MTU, DSCP map, PFC, ECN and watchdog of the lossless class, equal to the nodes' NCCL settings",
    ("switch_ports",),
    ("dscp",),
    write,
)
