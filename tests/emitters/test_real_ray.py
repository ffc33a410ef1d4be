"""The program of a RayJob on a real Ray, with as many nodes as the plan has; only the launcher is another one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from clusterwright.emitters import emit
from clusterwright.layout import Layout
from tests.emitters.plans import make_plan
from tests.emitters.schemas import load_all

pytestmark = [
    pytest.mark.interpreter("CLUSTERWRIGHT_RAY"),
    pytest.mark.reader("Ray 2.60, running the program of the RayJob", "kuberay"),
]
PROBE = Path(__file__).parent / "probes" / "ray_probe.py"
PAYLOAD = """\
#!/usr/bin/env bash
printf '%s %s %s\\n' "$MASTER_ADDR" "$MASTER_PORT" "$CUDA_VISIBLE_DEVICES" >"{folder}/node.$NODE_RANK"
[ "$NODE_RANK" != "{bad}" ]
"""


def code_of(folder: Path, bad: str) -> int:
    """What the program ends with where one node's launcher fails."""
    (config, _) = load_all(emit(make_plan(Layout(tp=8, dp=2, global_batch=8)), "kuberay").files["rayjob.yaml"])
    (folder / "start.py").write_text(config["data"]["start.py"], encoding="utf-8")
    (folder / "launch.sh").write_text(PAYLOAD.format(folder=folder, bad=bad), encoding="utf-8")
    question = {
        "nodes": 2,
        "per_node": 8,
        "launcher": str(folder / "launch.sh"),
        "start": str(folder / "start.py"),
    }
    done = subprocess.run(
        [os.environ["CLUSTERWRIGHT_RAY"], str(PROBE)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert answers, done.stderr[-2000:]
    return int(json.loads(answers[-1].removeprefix("ANSWERS ")))


def test_ray_starts_the_launcher_once_on_every_node_with_all_its_accelerators(tmp_path: Path) -> None:
    assert 0 == code_of(tmp_path, bad="none")
    said = [(tmp_path / f"node.{rank}").read_text("utf-8").split() for rank in range(2)]
    assert said[0] == said[1]
    assert ["29500", "0,1,2,3,4,5,6,7"] == said[0][1:]


def test_a_launcher_that_fails_ends_the_job_so_that_it_starts_again_whole(tmp_path: Path) -> None:
    assert 1 == code_of(tmp_path, bad="1")
