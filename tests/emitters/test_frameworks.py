from __future__ import annotations

import ast
import json
import tomllib

import pytest

from clusterwright.emitters import emit
from clusterwright.emitters.door import MANIFEST
from clusterwright.emitters.programs import bridge
from clusterwright.layout import Layout
from tests.emitters.plans import DEEPSEEK, LLAMA_70B, MIXTRAL, fitting, make_plan
from tests.emitters.readers import megatron_arguments
from tests.emitters.test_megatron import PLANS

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
        ("torchtitan", Layout(tp=8, pp=4, dp=2, schedule="zero-bubble", global_batch=64), "schedule"),
        ("megatron", Layout(tp=8, pp=4, dp=2, schedule="zero-bubble", global_batch=64), "schedule"),
        ("megatron-bridge", Layout(tp=8, pp=4, dp=2, schedule="zero-bubble", global_batch=64), "schedule"),
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


def test_torchtitan_fills_the_bubble_of_interleaved_stages_where_the_plan_does() -> None:
    layout = Layout(tp=8, pp=4, vpp=2, dp=2, sharding="fsdp", global_batch=64, schedule="zero-bubble")
    recipe = emit(make_plan(layout, model=LLAMA_70B), "torchtitan").files["recipe.py"]
    assert 'config.parallelism.pipeline_parallel_schedule = "InterleavedZeroBubble"' in recipe


def test_the_older_torchtitan_gets_toml_with_the_same_numbers_as_the_recipe() -> None:
    layout = Layout(tp=8, pp=4, vpp=2, dp=2, sharding="fsdp", global_batch=64, recompute="selective")
    bundle = emit(make_plan(layout), "torchtitan", {"torchtitan_version": "0.2"})
    assert "recipe.py" not in bundle.files
    assert '--job.config_file "$here/train.toml"' in bundle.files["launch.sh"]
    read = tomllib.loads(bundle.files["train.toml"])
    assert {"name": "llama3", "flavor": "70B", "hf_assets_path": "/data/tokenizer"} == read["model"]
    assert {"mode": "selective", "selective_ac_option": "op"} == read["activation_checkpoint"]
    recipe = emit(make_plan(layout), "torchtitan").files["recipe.py"]
    for section in ("parallelism", "checkpoint", "metrics", "lr_scheduler"):
        for key, value in read[section].items():
            shown = json.dumps(value) if isinstance(value, str) else repr(value)
            assert f"config.{section}.{key} = {shown} " in recipe


@pytest.mark.parametrize("target", ["megatron", "megatron-bridge", "torchtitan", "deepspeed", "fsdp"])
def test_what_the_plan_does_not_choose_is_left_to_the_user_aloud(target: str) -> None:
    plan, _ = fitting(target)
    said = [u.what for u in emit(plan, target).unsupported]
    assert ["learning rate", "learning rate's rise", "optimizer settings"] == said[:3]
    bundle = emit(plan, target, {"lr": "2e-4"})
    assert "learning rate" not in [u.what for u in bundle.unsupported]
    assert "--set lr" in "".join(text for name, text in bundle.files.items() if name != MANIFEST)


def test_the_program_of_megatron_bridge_holds_every_argument_of_megatron() -> None:
    for plan in PLANS.values():
        program = emit(plan, "megatron-bridge").files["pretrain.py"]
        calls = {
            call.func.id: {word.arg for word in call.keywords}
            for call in ast.walk(ast.parse(program))
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        }
        fields = set().union(*(names for names in calls.values() if names))
        arguments = {flag.removeprefix("--") for flag in megatron_arguments(emit(plan, "megatron").files["launch.sh"])}
        told = {bridge.NAMES.get(flag, flag.replace("-", "_")) for flag in arguments - set(bridge.SECTIONS[""])}
        assert set() == told - fields
        assert ("MLAModelProvider" in calls) == ("multi-latent-attention" in arguments)


def test_a_scheduler_starts_the_framework_that_the_workload_names() -> None:
    layout = Layout(tp=8, dp=8, sharding="fsdp", global_batch=64)
    files = emit(make_plan(layout, training={"framework": "torchtitan"}), "slurm").files
    assert "recipe.py" in files
    assert "command=(-m torchtitan.train)" in files["launch.sh"]
