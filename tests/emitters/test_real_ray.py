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
printf '%s %s %s\\n' "$MASTER_ADDR" "$MASTER_PORT" "$CUDA_VISIBLE_DEVICES" >"{folder}/{name}.$NODE_RANK"
[ "$NODE_RANK" != "{bad}" ]
"""


def test_ray_starts_the_launcher_on_every_node_with_all_its_accelerators_and_fails_with_the_first(
    tmp_path: Path,
) -> None:
    (config, _) = load_all(emit(make_plan(Layout(tp=8, dp=2, global_batch=8)), "kuberay").files["rayjob.yaml"])
    (tmp_path / "start.py").write_text(config["data"]["start.py"], encoding="utf-8")
    for name, bad in (("good", "none"), ("bad", "1")):
        text = PAYLOAD.format(folder=tmp_path, name=name, bad=bad)
        (tmp_path / f"{name}.sh").write_text(text, encoding="utf-8")
    launchers = [str(tmp_path / "good.sh"), str(tmp_path / "bad.sh")]
    question = {"nodes": 2, "per_node": 8, "launchers": launchers, "start": str(tmp_path / "start.py")}
    done = subprocess.run(
        [os.environ["CLUSTERWRIGHT_RAY"], str(PROBE)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ["ANSWERS [0, 1]"] == [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")], done.stderr
    said = [(tmp_path / f"good.{rank}").read_text("utf-8").split() for rank in range(2)]
    assert said[0] == said[1]
    assert ["29500", "0,1,2,3,4,5,6,7"] == said[0][1:]
