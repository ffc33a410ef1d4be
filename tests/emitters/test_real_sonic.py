"""The emitted config_db.json before SONiC's own YANG models, read by yanglint.

``CLUSTERWRIGHT_YANG`` names the folder of the models (src/sonic-yang-models/yang-models of sonic-net/sonic-buildimage,
templates rendered); yanglint comes with Debian's libyang2-tools.
"""

from __future__ import annotations

import copy
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clusterwright.emitters import emit
from clusterwright.hardware import FabricKind
from tests.emitters.plans import ethernet_plan, fitting, make_plan

MODULES = {
    "PORT": "sonic-port",
    "DSCP_TO_TC_MAP": "sonic-dscp-tc-map",
    "TC_TO_QUEUE_MAP": "sonic-tc-queue-map",
    "TC_TO_PRIORITY_GROUP_MAP": "sonic-tc-priority-group-map",
    "MAP_PFC_PRIORITY_TO_QUEUE": "sonic-pfc-priority-queue-map",
    "WRED_PROFILE": "sonic-wred-profile",
    "SCHEDULER": "sonic-scheduler",
    "PORT_QOS_MAP": "sonic-port-qos-map",
    "QUEUE": "sonic-queue",
    "PFC_WD": "sonic-pfcwd",
    "DEVICE_METADATA": "sonic-device_metadata",
}
NESTED = {
    "DSCP_TO_TC_MAP": ("dscp", "tc"),
    "TC_TO_QUEUE_MAP": ("tc", "qindex"),
    "TC_TO_PRIORITY_GROUP_MAP": ("tc", "pg"),
    "MAP_PFC_PRIORITY_TO_QUEUE": ("pfc_priority", "qindex"),
}
KEYS = {"PORT": ("name",), "PORT_QOS_MAP": ("ifname",), "QUEUE": ("ifname", "qindex"), "PFC_WD": ("ifname",)}
NUMBERS = {"mtu", "weight", "detection_time", "restoration_time", "POLL_INTERVAL", "tc", "speed"}


def value_of(leaf: str, value: str) -> object:
    if value in ("true", "false"):
        return value == "true"
    small = leaf in NUMBERS and value.isdigit()
    return int(value) if small else value


def as_yang(config: dict[str, Any]) -> dict[str, Any]:
    """A config_db as the YANG models see it: tables are lists, their keys leaves."""
    out: dict[str, Any] = {}
    for name, rows in config.items():
        module = MODULES[name]
        place = out.setdefault(f"{module}:{module}", {}).setdefault(name, {})
        for key, row in rows.items():
            if name == "DEVICE_METADATA":
                place[key] = row
                continue
            entry: dict[str, Any] = dict(zip(KEYS.get(name, ("name",)), key.split("|"), strict=True))
            if name in NESTED:
                left, right = NESTED[name]
                entry[name] = [{left: value_of(left, a), right: value_of(right, b)} for a, b in row.items()]
            else:
                entry |= {leaf: value_of(leaf, value) for leaf, value in row.items()}
            place.setdefault(f"{name}_LIST", []).append(entry)
    return out


def verdict(config: dict[str, Any], folder: Path) -> str:
    """What yanglint says of a configuration, on top of ports that a switch has."""
    models = os.environ.get("CLUSTERWRIGHT_YANG", "")
    why = (
        ""
        if models and shutil.which("yanglint")
        else "CLUSTERWRIGHT_YANG or yanglint (Debian: libyang2-tools) is absent"
    )
    if why and os.environ.get("CLUSTERWRIGHT_CI") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    whole = copy.deepcopy(config) | {"DEVICE_METADATA": {"localhost": {"hostname": "leaf1", "type": "LeafRouter"}}}
    for index, port in enumerate(whole["PORT"].values()):
        lanes = ",".join(str(8 * index + lane) for lane in range(8))
        port |= {"lanes": lanes, "speed": "400000", "alias": f"etp{index}", "admin_status": "up"}
    path = folder / "config.json"
    path.write_text(json.dumps(as_yang(whole)), encoding="utf-8")
    files = [str(Path(models) / f"{MODULES[name]}.yang") for name in whole]
    command = ["yanglint", "-p", models, "-t", "config", *files, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def emitted() -> dict[str, Any]:
    plan, given = fitting("sonic")
    read: dict[str, Any] = json.loads(emit(plan, "sonic", given).files["config_db.json"])
    return read


@pytest.mark.reader("SONiC's own YANG models, by yanglint", "sonic")
def test_the_models_of_sonic_accept_the_fragment(tmp_path: Path) -> None:
    assert "" == verdict(emitted(), tmp_path)


@pytest.mark.reader("SONiC's own YANG models, by yanglint", "sonic")
@pytest.mark.parametrize(
    ("name", "key", "leaf", "value"),
    [
        ("PORT", "Ethernet0", "mtu", "99999"),
        ("QUEUE", "Ethernet0|3", "wred_profile", "ABSENT"),
        ("WRED_PROFILE", "ROCE_LOSSLESS", "ecn", "ecn_everything"),
        ("WRED_PROFILE", "ROCE_LOSSLESS", "green_min_threshold", "99999999"),
        ("PFC_WD", "Ethernet0", "detection_time", "50"),
    ],
)
def test_the_models_of_sonic_refuse_what_is_wrong(tmp_path: Path, name: str, key: str, leaf: str, value: str) -> None:
    config = emitted()
    config[name][key][leaf] = value
    assert "" != verdict(config, tmp_path)


def test_switch_and_node_agree_on_the_lossless_class() -> None:
    plan = ethernet_plan()
    for given in ({}, {"dscp": "24"}):
        config = json.loads(emit(plan, "sonic", {"switch_ports": "Ethernet0", **given}).files["config_db.json"])
        lossless = [int(d) for d, tc in config["DSCP_TO_TC_MAP"]["ROCE"].items() if tc == "3"]
        (line,) = re.findall(r"NCCL_IB_TC=(\d+)", emit(plan, "nccl", given).files["nccl.sh"])
        assert [int(line) >> 2] == lossless
        assert "3" == config["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"]


def test_the_lossless_class_is_written_for_roce_alone() -> None:
    given = {"switch_ports": "Ethernet0"}
    assert {} == emit(make_plan(), "sonic", given).files
    assert {} == emit(ethernet_plan(fabric=FabricKind.TCP), "sonic", given).files
    assert {} == emit(ethernet_plan(), "sonic", {**given, "dscp": "48"}).files
