"""The frameworks' own readers on what is emitted for them.

They are heavy, and stand in an environment of their own: ``CLUSTERWRIGHT_FRAMEWORKS`` names its interpreter, which
holds torch, deepspeed and transformers. Wheels of another Python, or of several versions, lie unpacked beside it in
``wheels``. ``.ci/libraries`` makes it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright import catalog
from clusterwright.emitters import emit
from clusterwright.layout import Layout
from tests.emitters.plans import DEEPSEEK, LLAMA_8B, LLAMA_70B, LLAMA_405B, make_plan
from tests.emitters.test_megatron import PLANS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusterwright.plan import Plan

PYTHON = os.environ.get("CLUSTERWRIGHT_FRAMEWORKS", "")
PROBES = Path(__file__).parent / "probes"
MANY_LAYERS = 32
MEGATRON = "megatron-core-0.19"
NEEDS_NEWER_KERNELS = {"llama-8b-nvfp4"}
"""Megatron refuses fp4 without Transformer Engine 2.7, which needs a GPU."""

pytestmark = pytest.mark.interpreter("CLUSTERWRIGHT_FRAMEWORKS")


def ask(probe: str, question: object, *wheels: str) -> Any:  # noqa: ANN401 - JSON
    """What a framework answers."""
    beside = [str(Path(PYTHON).parents[1] / "wheels" / name) for name in wheels]
    done = subprocess.run(
        [PYTHON, str(PROBES / f"{probe}_probe.py")],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(beside), "DS_ACCELERATOR": "cpu"},
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWERS ")]
    assert answers, done.stderr[-2000:]
    return json.loads(answers[-1].removeprefix("ANSWERS "))


def words_of(script: str) -> list[str]:
    array = script[script.index("arguments=(") : script.index("\n)\n") + 3]
    text = f"TOKENIZER=/t CHECKPOINT_DIR=/c prefixes=(a b)\n{array}printf '%s\\0' \"${{arguments[@]}}\""
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


def with_environment(plan: Plan, files: Mapping[str, str]) -> dict[str, Any]:
    """World and environment that the launcher gives the program."""
    assert plan.chosen is not None
    one = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if "export CUDA_DEVICE_MAX_CONNECTIONS=1" in files["launch.sh"] else {}
    return {"world": plan.chosen.accelerators, "environment": one}


def catalogue_plans() -> dict[str, Plan]:
    """A plan of each network of the catalogue that Megatron-LM can run."""
    found = {}
    for name, model in catalog.load().models.items():
        layout = Layout(
            tp=next(size for size in (8, 4, 2, 1) if model.heads % size == 0),
            pp=4 if model.layers >= MANY_LAYERS else 1,
            ep=next((size for size in (8, 4, 2) if model.experts and model.experts % size == 0), 1),
            dp=8,
            sharding="distopt",
            global_batch=64,
        )
        plan = make_plan(layout, model=model, training={"sequence_length": model.positions or 8192})
        if emit(plan, "megatron").files:
            found[name] = plan
    return found


@pytest.mark.reader("Megatron 0.19: parse_args, validate_args, TransformerConfig", "megatron")
def test_megatron_accepts_the_arguments_of_every_plan() -> None:
    plans = {**PLANS, **catalogue_plans()}
    assert len(plans) > 100
    cases, expected = [], {}
    for name, plan in plans.items():
        assert plan.chosen is not None
        if name not in NEEDS_NEWER_KERNELS:
            files = emit(plan, "megatron").files
            words = words_of(files["launch.sh"])
            cases.append({"name": name, "arguments": words, **with_environment(plan, files)})
            expected[name] = f"dp {plan.chosen.layout.dp}"
    assert expected == ask("megatron", cases, MEGATRON)


@pytest.mark.reader("Megatron Bridge 0.6: ConfigContainer and all that it checks", "megatron-bridge")
def test_megatron_bridge_accepts_the_configuration_of_every_plan() -> None:
    cases, expected = [], {}
    for name, plan in {**PLANS, **catalogue_plans()}.items():
        assert plan.chosen is not None
        if name not in NEEDS_NEWER_KERNELS:
            files = emit(plan, "megatron-bridge").files
            cases.append({"name": name, "program": files["pretrain.py"], **with_environment(plan, files)})
            layout, model = plan.chosen.layout, plan.model
            shape = (model.layers, model.hidden, model.heads, model.experts)
            degrees = (layout.tp, layout.cp, layout.pp, layout.ep, layout.dp)
            expected[name] = [*degrees, *shape, layout.global_batch, ["/d/a", "/d/b"]]
    assert expected == ask("bridge", cases, MEGATRON, "megatron-bridge-0.6")


@pytest.mark.reader("DeepSpeed 0.19: DeepSpeedConfig", "deepspeed")
def test_deepspeed_reads_the_batch_and_the_stage_of_the_plan() -> None:
    stages = {
        Layout(dp=64, sharding="zero3", global_batch=512): 3,
        Layout(tp=8, dp=8, sharding="zero2", global_batch=512): 2,
        Layout(tp=2, dp=32, sharding="zero1", global_batch=128, micro_batch=2, precision="fp16"): 1,
        Layout(dp=64, sharding="none", global_batch=64): 0,
    }
    cases = [
        {"dp": one.dp, "config": json.loads(emit(make_plan(one), "deepspeed").files["ds_config.json"])}
        for one in stages
    ]
    expected = [[one.dp, one.global_batch, one.micro_batches, stage] for one, stage in stages.items()]
    assert expected == ask("deepspeed", {"world": 64, "cases": cases})


TITAN_CASES = [
    (LLAMA_8B, Layout(dp=64, sharding="fsdp", global_batch=512)),
    (LLAMA_70B, Layout(tp=8, dp=8, sharding="fsdp", global_batch=512, recompute="full")),
    (LLAMA_70B, Layout(tp=8, pp=4, vpp=2, dp=2, sharding="zero2", global_batch=64, recompute="selective")),
    (LLAMA_405B, Layout(tp=8, pp=8, cp=2, dp=4, sharding="fsdp", global_batch=64, recompute="full")),
    (DEEPSEEK, Layout(tp=1, ep=32, dp=64, sharding="fsdp", global_batch=512, recompute="full")),
]


@pytest.mark.reader("torchtitan 0.3 and 0.2: ConfigManager", "torchtitan")
@pytest.mark.parametrize("version", ["0.3", "0.2"])
def test_torchtitan_reads_the_degrees_of_the_plan(version: str, tmp_path: Path) -> None:
    cases, expected = [], []
    for number, (model, layout) in enumerate(TITAN_CASES):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, text in emit(
            make_plan(layout, model=model), "torchtitan", {"torchtitan_version": version}
        ).files.items():
            (folder / name).write_text(text, encoding="utf-8")
        recipe, toml = ["--module", "recipe", "--config", "run"], [f"--job.config_file={folder}/train.toml"]
        cases.append((str(folder), recipe if version == "0.3" else toml))
        expected.append({"tp": layout.tp, "cp": layout.cp, "pp": layout.pp, "ep": layout.ep, "dp": layout.dp})
    assert expected == ask("torchtitan", cases, f"torchtitan-{version}")


@pytest.mark.reader("torch 2.13: DeviceMesh and fully_shard", "fsdp")
def test_torch_shares_a_network_over_the_mesh_of_the_plan() -> None:
    meshes = {
        Layout(dp=64, sharding="fsdp", global_batch=512): [1, 64],
        Layout(dp=64, sharding="hsdp", global_batch=512, recompute="full"): [8, 8],
        Layout(dp=64, sharding="zero2", global_batch=512): [1, 64],
        Layout(dp=64, sharding="none", global_batch=512): [64, 1],
    }
    programs = [emit(make_plan(one, model=LLAMA_8B), "fsdp").files["plan_fsdp.py"] for one in meshes]
    expected = [{"mesh": mesh, "names": ["replicate", "shard"], "rows": 128 // mesh[1]} for mesh in meshes.values()]
    assert expected == ask("fsdp", {"world": 64, "width": 128, "programs": programs})


@pytest.mark.reader("Megatron-Core 0.19: groups of 200 layouts", "megatron")
def test_a_rank_talks_with_those_that_the_rank_map_puts_beside_it() -> None:
    draw = random.Random(20261130)
    cases, expected = [], []
    for _ in range(200):
        tp, cp, dp, pp = (draw.choice(sizes) for sizes in ((1, 2, 4, 8), (1, 2, 4), (1, 2, 3, 5, 8), (1, 2, 3, 4)))
        ep = draw.choice([size for size in (1, 2, 3, 4, 8, 16) if tp * cp * dp % size == 0])
        layout = Layout(tp=tp, cp=cp, dp=dp, pp=pp, ep=ep, global_batch=dp)
        rank = draw.randrange(layout.accelerators)
        cases.append({"tp": tp, "cp": cp, "pp": pp, "ep": ep, "world": layout.accelerators, "rank": rank})
        at = layout.coordinates_of(rank)
        groups = {axis: [layout.rank_of(**{**at, axis: i}) for i in range(getattr(layout, axis))] for axis in at}
        expected.append({**groups, "ep": list(range(rank - rank % ep, rank - rank % ep + ep))})
    assert expected == ask("ranks", cases, MEGATRON)
