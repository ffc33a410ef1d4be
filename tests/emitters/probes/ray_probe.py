# mypy: ignore-errors
"""Run an emitted start.py on a real Ray on this machine: a head without accelerators, and the nodes of the plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback

from ray.cluster_utils import Cluster

TRIES = 4
STORE_BYTES = 80 << 20


def started(nodes: int, accelerators: int) -> Cluster:
    """A cluster; Ray gives each of its nodes 30 s to start, which is too little where the machine is busy."""
    for left in reversed(range(TRIES)):
        cluster = Cluster()
        try:
            cluster.add_node(num_cpus=0, num_gpus=0, include_dashboard=False, object_store_memory=STORE_BYTES)
            for _ in range(nodes):
                cluster.add_node(num_cpus=1, num_gpus=accelerators, object_store_memory=STORE_BYTES)
        except Exception:
            traceback.print_exc()
            cluster.shutdown()
            if not left:
                raise
        else:
            return cluster
    raise AssertionError


if __name__ == "__main__":
    case = json.load(sys.stdin)
    cluster = started(case["nodes"], case["per_node"])
    try:
        codes = []
        for launcher in case["launchers"]:
            place = {**os.environ, "RAY_ADDRESS": cluster.address, "LAUNCHER": launcher}
            codes.append(subprocess.call([sys.executable, case["start"]], env=place, stdout=sys.stderr))
    finally:
        cluster.shutdown()
    sys.stdout.write("\nANSWERS " + json.dumps(codes) + "\n")
