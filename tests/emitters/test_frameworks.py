from __future__ import annotations

import json

import pytest

from clusterwright.emitters import emit
from clusterwright.layout import Layout
from tests.emitters.plans import DEEPSEEK, LLAMA_70B, MIXTRAL, make_plan

KEYS = {
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "bf16",
    "fp16",
    "gradient_clipping",
    "zero_optimization",
    "steps_per_print",
    "wall_clock_breakdown",
    "optimizer",
    "scheduler",
    "tensor_parallel",
}
"""Top-level keys of DeepSpeed's configuration (https://www.deepspeed.ai/docs/config-json/): it lets a typo pass."""


def test_the_batch_of_deepspeed_is_micro_batch_times_steps_times_replicas() -> None:
    layout = Layout(tp=2, dp=32, sharding="zero1", micro_batch=2, global_batch=256)
    config = json.loads(emit(make_plan(layout), "deepspeed").files["ds_config.json"])
    assert set() == set(config) - KEYS
    product = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * layout.dp
    assert 256 == config["train_batch_size"] == product
    assert {"autotp_size": 2} == config["tensor_parallel"]


def test_every_value_of_the_json_has_its_line_in_the_reasons() -> None:
    bundle = emit(make_plan(Layout(dp=64, sharding="zero3", global_batch=512)), "deepspeed")
    config, why = json.loads(bundle.files["ds_config.json"]), bundle.files["WHY.md"]

    def leaves(tree: dict[str, object], head: str = "") -> list[str]:
        found: list[str] = []
        for key, value in tree.items():
            found += leaves(value, f"{head}{key}.") if isinstance(value, dict) else [f"{head}{key}"]
        return found

    assert [] == [key for key in leaves(config) if f"| {key} |" not in why]


@pytest.mark.parametrize(
    ("target", "layout", "word"),
    [
        ("deepspeed", Layout(tp=8, pp=4, dp=2, global_batch=64), "pp"),
        ("deepspeed", Layout(cp=2, dp=32, global_batch=64), "cp"),
        ("deepspeed", Layout(tp=2, dp=32, sharding="zero3", global_batch=64), "tp"),
        ("deepspeed", Layout(dp=64, sharding="hsdp", global_batch=64), "hsdp"),
        ("deepspeed", Layout(dp=64, precision="fp8", global_batch=64), "fp8"),
        ("torchtitan", Layout(dp=64, sharding="zero1", global_batch=64), "zero1"),
        ("torchtitan", Layout(dp=64, precision="fp8", global_batch=64), "fp8"),
        ("torchtitan", Layout(pp=3, dp=8, global_batch=64), "pp x vpp"),
    ],
)
def test_what_a_framework_cannot_do_is_said_and_not_written(target: str, layout: Layout, word: str) -> None:
    bundle = emit(make_plan(layout), target)
    assert {} == bundle.files
    assert [] != [u for u in bundle.unsupported if word in u.what]


def test_torchtitan_writes_only_networks_that_it_has() -> None:
    layout = Layout(dp=64, sharding="fsdp", global_batch=64)
    assert {} == emit(make_plan(layout, model=MIXTRAL), "torchtitan").files
    assert "deepseek_v3_671b()" in emit(make_plan(layout, model=DEEPSEEK), "torchtitan").files["recipe.py"]


def test_a_recipe_divides_the_world_as_the_plan_does() -> None:
    layout = Layout(tp=8, pp=4, vpp=2, dp=2, sharding="fsdp", global_batch=64)
    recipe = emit(make_plan(layout, model=LLAMA_70B), "torchtitan").files["recipe.py"]
    assert "config.parallelism.data_parallel_shard_degree = 2 " in recipe
    assert 'config.parallelism.pipeline_parallel_schedule = "Interleaved1F1B"' in recipe
    assert "config.parallelism.pipeline_parallel_layers_per_stage = 10 " in recipe
    assert "config.training.local_batch_size = 32 " in recipe


def test_a_scheduler_starts_the_framework_that_the_workload_names() -> None:
    layout = Layout(tp=8, dp=8, sharding="fsdp", global_batch=64)
    files = emit(make_plan(layout, training={"framework": "torchtitan"}), "slurm").files
    assert "recipe.py" in files
    assert "command=(-m torchtitan.train)" in files["launch.sh"]
