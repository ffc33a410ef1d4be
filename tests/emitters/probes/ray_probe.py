# mypy: ignore-errors
"""Run an emitted start.py on a real Ray on this machine: a head without accelerators, and the nodes of the plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    case = json.load(sys.stdin)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "num_gpus": 0, "include_dashboard": False})
    try:
        for _ in range(case["nodes"]):
            cluster.add_node(num_cpus=1, num_gpus=case["per_node"])
        place = {**os.environ, "RAY_ADDRESS": cluster.address, "LAUNCHER": case["launcher"]}
        code = subprocess.run([sys.executable, case["start"]], env=place, check=False, stdout=sys.stderr).returncode
    finally:
        cluster.shutdown()
    sys.stdout.write("\nANSWERS " + json.dumps(code) + "\n")
