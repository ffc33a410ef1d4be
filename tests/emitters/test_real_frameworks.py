"""The frameworks' own readers on what is emitted for them.

They are heavy, so they are asked for: ``CLUSTERWRIGHT_FRAMEWORKS`` names a Python interpreter that holds torch,
deepspeed and tensorboard, and whose PYTHONPATH reaches megatron-core 0.19 and torchtitan 0.3 (their wheels, unzipped:
megatron-core with ``pip download --no-deps --only-binary :all: --python-version 3.12 megatron-core==0.19.2``).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.emitters import emit
from clusterwright.layout import Layout
from tests.emitters.plans import DEEPSEEK, LLAMA_8B, LLAMA_70B, LLAMA_405B, make_plan
from tests.emitters.test_megatron import PLANS

if TYPE_CHECKING:
    from clusterwright.model import Model

PYTHON = os.environ.get("CLUSTERWRIGHT_FRAMEWORKS", "")
PROBES = Path(__file__).parent / "probes"
NEEDS_NEWER_KERNELS = {"llama-8b-nvfp4"}
"""Megatron refuses fp4 without Transformer Engine 2.7, which needs a GPU."""

pytestmark = pytest.mark.interpreter("CLUSTERWRIGHT_FRAMEWORKS")


def ask(probe: str, question: object, *, path: Path | None = None) -> Any:  # noqa: ANN401 - JSON
    """What a framework answers."""
    reach = os.pathsep.join(filter(None, [str(path) if path else "", os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [PYTHON, str(PROBES / f"{probe}_probe.py")],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": reach, "DS_ACCELERATOR": "cpu"},
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert answers, done.stderr[-2000:]
    return json.loads(answers[-1].removeprefix("ANSWERS "))


def words_of(script: str) -> list[str]:
    array = script[script.index("arguments=(") : script.index("\n)\n") + 3]
    text = f"TOKENIZER=/t CHECKPOINT_DIR=/c prefixes=(a b)\n{array}printf '%s\\0' \"${{arguments[@]}}\""
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


def test_megatron_accepts_the_arguments_of_every_plan() -> None:
    cases, expected = [], {}
    for name, plan in PLANS.items():
        assert plan.chosen is not None
        if name in NEEDS_NEWER_KERNELS:
            continue
        script = emit(plan, "megatron").files["launch.sh"]
        one = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if "export CUDA_DEVICE_MAX_CONNECTIONS=1" in script else {}
        cases.append(
            {"name": name, "world": plan.chosen.accelerators, "arguments": words_of(script), "environment": one}
        )
        expected[name] = f"dp {plan.chosen.layout.dp}"
    assert expected == ask("megatron", cases)


@pytest.mark.parametrize(
    ("layout", "stage"),
    [
        (Layout(dp=64, sharding="zero3", global_batch=512), 3),
        (Layout(tp=8, dp=8, sharding="zero2", global_batch=512), 2),
        (Layout(tp=2, dp=32, sharding="zero1", global_batch=128, micro_batch=2, precision="fp16"), 1),
    ],
)
def test_deepspeed_reads_the_batch_and_the_stage_of_the_plan(layout: Layout, stage: int) -> None:
    config = json.loads(emit(make_plan(layout), "deepspeed").files["ds_config.json"])
    answer = ask("deepspeed", {"world": 64, "dp": layout.dp, "config": config})
    assert [layout.dp, layout.global_batch, layout.micro_batches, stage] == answer


@pytest.mark.parametrize(
    ("model", "layout"),
    [
        (LLAMA_8B, Layout(dp=64, sharding="fsdp", global_batch=512)),
        (LLAMA_70B, Layout(tp=8, dp=8, sharding="fsdp", global_batch=512, recompute="full")),
        (LLAMA_70B, Layout(tp=8, pp=4, vpp=2, dp=2, sharding="zero2", global_batch=64, recompute="selective")),
        (LLAMA_405B, Layout(tp=8, pp=8, cp=2, dp=4, sharding="fsdp", global_batch=64, recompute="full")),
        (DEEPSEEK, Layout(tp=1, ep=32, dp=64, sharding="fsdp", global_batch=512, recompute="full")),
    ],
)
def test_torchtitan_reads_the_degrees_of_the_plan(model: Model, layout: Layout, tmp_path: Path) -> None:
    bundle = emit(make_plan(layout, model=model), "torchtitan")
    (tmp_path / "recipe.py").write_text(bundle.files["recipe.py"], encoding="utf-8")
    expected = {"tp": layout.tp, "cp": layout.cp, "pp": layout.pp, "ep": layout.ep, "dp": layout.dp}
    assert expected == ask("torchtitan", None, path=tmp_path)


def test_every_rank_stands_where_megatron_itself_puts_it() -> None:
    draw = random.Random(20261130)
    cases, expected = [], []
    for _ in range(200):
        tp, cp, dp, pp = (draw.choice(sizes) for sizes in ((1, 2, 4, 8), (1, 2, 4), (1, 2, 3, 5), (1, 2, 3, 4)))
        layout = Layout(tp=tp, cp=cp, dp=dp, pp=pp, global_batch=dp)
        rank = draw.randrange(layout.accelerators)
        cases.append({"tp": tp, "cp": cp, "pp": pp, "world": layout.accelerators, "rank": rank})
        at = layout.coordinates_of(rank)
        expected.append([at["tp"], at["cp"], at["dp"], at["pp"]])
    assert expected == ask("ranks", cases)
