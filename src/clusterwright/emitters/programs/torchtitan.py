"""torchtitan: a plan as a recipe for 0.3 (the Python function that it starts from), or as TOML for 0.2."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Setting, Unsupported
from clusterwright.emitters.programs.program import HERE, Program
from clusterwright.emitters.programs.rates import left_to_you, peak_rate, warmup_steps
from clusterwright.emitters.writing import comment
from clusterwright.model import Attention

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.workload import Training

RECIPE, TOML = "recipe.py", "train.toml"
BASES = {
    (32, 4096, 32, 0): ("llama3", "llama3_8b"),
    (80, 8192, 64, 0): ("llama3", "llama3_70b"),
    (126, 16384, 128, 0): ("llama3", "llama3_70b"),
    (28, 1024, 16, 0): ("qwen3", "qwen3_0_6b"),
    (28, 2048, 16, 0): ("qwen3", "qwen3_1_7b"),
    (40, 5120, 40, 0): ("qwen3", "qwen3_14b"),
    (64, 5120, 64, 0): ("qwen3", "qwen3_32b"),
    (48, 2048, 32, 128): ("qwen3", "qwen3_30b_a3b"),
    (27, 2048, 16, 64): ("deepseek_v3", "deepseek_v3_16b"),
    (61, 7168, 128, 256): ("deepseek_v3", "deepseek_v3_671b"),
}
"""Layers, width, heads and experts of the networks that torchtitan 0.3.0 has a recipe for: its module and function."""
_FLAVORS = {(126, 16384, 128, 0): "405B"}
"""Networks whose own recipe is in 8 bits: they start from another one, in bf16, and take the network from the registry."""
FLAVORS_0_2 = {
    (32, 4096, 32, 0): ("llama3", "8B"),
    (80, 8192, 64, 0): ("llama3", "70B"),
    (126, 16384, 128, 0): ("llama3", "405B"),
    (28, 1024, 16, 0): ("qwen3", "0.6B"),
    (28, 2048, 16, 0): ("qwen3", "1.7B"),
    (36, 2560, 32, 0): ("qwen3", "4B"),
    (36, 4096, 32, 0): ("qwen3", "8B"),
    (40, 5120, 40, 0): ("qwen3", "14B"),
    (64, 5120, 64, 0): ("qwen3", "32B"),
    (48, 2048, 32, 128): ("qwen3", "30B-A3B"),
    (94, 4096, 64, 128): ("qwen3", "235B-A22B"),
    (27, 2048, 16, 64): ("deepseek_v3", "16B"),
    (60, 5120, 128, 160): ("deepseek_v3", "236B"),
    (61, 7168, 128, 256): ("deepseek_v3", "671B"),
}
"""The same of torchtitan 0.2.2: model.name and model.flavor (torchtitan/models/*/__init__.py)."""
_NORMED = ("qwen3",)
"""Modules whose attention normalizes query and key."""


def program(job: Job, training: Training) -> Program | tuple[Unsupported, ...]:
    """The program of a plan, or why torchtitan cannot run it."""
    refused = tuple(Unsupported(what, why) for what, wrong, why in _rules(job, training) if wrong)
    old = str(job.get("torchtitan_version") or "").startswith("0.2")
    base = _base(job, FLAVORS_0_2 if old else BASES)
    if refused or base is None:
        missing = Unsupported(
            "model shape",
            f"torchtitan has no recipe of {job.model.layers} layers of {job.model.hidden}, {job.model.heads} heads",
        )
        return refused or (missing,)
    left = Unsupported(
        "data",
        "torchtitan reads data in the form of C4 here; another needs its own loader in torchtitan (torchtitan/hf_datasets)",
    )
    replicas = Unsupported(
        "replicas of hsdp", "the plan does not say over how many ranks a copy is shared; it is shared over all of them"
    )
    rest = "betas, weight decay and clipping are torchtitan's defaults"
    gaps = (*left_to_you(job, training, rest), left, *((replicas,) if job.layout.sharding == "hsdp" else ()))
    if old:
        settings = Setting("--job.config_file", f'"$here/{TOML}"', "beside the launcher", raw=True)
        return Program(
            "torchtitan", "torchtitan.train", (settings,), (), module=True, prepare=f"{HERE}\n",
            files={TOML: _toml(job, training, *base)}, unsupported=gaps,
        )  # fmt: skip
    arguments = (
        Setting("--module", "recipe", f"the file {RECIPE} beside the launcher"),
        Setting("--config", "run", f"the function in it, made from {base[1]}"),
    )
    return Program(
        "torchtitan", "torchtitan.train", arguments, (), module=True, prepare=_PREPARE,
        files={RECIPE: _recipe(job, training, *base)}, unsupported=gaps,
    )  # fmt: skip


_PREPARE = f"""\
{HERE}
export PYTHONPATH="$here${{PYTHONPATH:+:$PYTHONPATH}}" # {RECIPE} lies beside this script
"""


def _base(job: Job, known: dict[tuple[int, int, int, int], tuple[str, str]]) -> tuple[str, str] | None:
    model = job.model
    found = known.get(_shape(job))
    mixer = next((block.mixer for block in model.blocks if isinstance(block.mixer, Attention)), None)
    if found is None or (mixer is not None and (mixer.qk_norm == "head") != (found[0] in _NORMED)):
        return None
    return found


def _shape(job: Job) -> tuple[int, int, int, int]:
    return job.model.layers, job.model.hidden, job.model.heads, job.model.experts


def _rules(job: Job, training: Training) -> list[tuple[str, bool, str]]:
    layout = job.layout
    uneven = layout.pp > 1 and _placed(job) is None
    return [
        (f"method = {training.method}", training.method != "full", "the recipe trains all weights"),
        (f"precision = {layout.precision}", layout.precision != "bf16", "the recipe is written for bf16 alone"),
        (f"sharding = {layout.sharding}", layout.sharding in ("zero1", "distopt"), "torchtitan shares weights too (fsdp) or nothing; it has no optimizer sharding alone"),
        ("pp x vpp", uneven, f"{job.model.layers} layers do not divide over {layout.pp * layout.vpp} stages, the ends counted or not"),
        ("vpp", layout.vpp > 1 and (layout.pp == 1 or layout.micro_batches % layout.pp > 0), "the interleaved schedule needs pp > 1 and micro-batches that divide by pp"),
        ("schedule", layout.schedule == "zero-bubble" and layout.vpp == 1, "torchtitan's zero-bubble schedule needs vpp > 1 (distributed/pipeline_parallel.py)"),
        ("cp", layout.cp > 1 and training.sequence_length % (2 * layout.cp) > 0, f"sequence_length must divide by 2 x cp = {2 * layout.cp}"),
        ("tp", job.model.heads % layout.tp > 0, f"{job.model.heads} heads do not divide by tp {layout.tp}"),
        ("ep", layout.ep > 1 and not job.model.experts, "the model has no experts"),
        ("global_batch", layout.global_batch % (layout.dp * layout.micro_batch) > 0, "must divide by dp x micro_batch"),
    ]  # fmt: skip


def _placed(job: Job) -> tuple[int, int] | None:
    """Layers of a stage, and how many less the first and the last have; none when they do not divide."""
    stages, layers = job.layout.pp * job.layout.vpp, job.model.layers
    for less in (0, 1):
        if (layers + 2 * less) % stages == 0:
            return (layers + 2 * less) // stages, less
    return None


def _lines(job: Job, training: Training) -> list[tuple[str, object, str]]:
    """What both versions call by the same name."""
    layout = job.layout
    shared = layout.sharding != "none"
    local = layout.micro_batch if layout.pp == 1 else layout.global_batch // layout.dp
    found: list[tuple[str, object, str]] = [
        ("training.steps", training.steps, "steps for all tokens [workload.training.tokens, global_batch, sequence_length]"),
        ("training.seq_len", training.sequence_length, "[workload.training.sequence_length]"),
        ("training.global_batch_size", layout.global_batch, "[chosen.layout.global_batch]"),
        ("training.local_batch_size", local, "sequences a replica takes at once; with stages, all of its step [chosen.layout.micro_batch]"),
        ("parallelism.tensor_parallel_degree", layout.tp, "[chosen.layout.tp]"),
        ("parallelism.context_parallel_degree", layout.cp, "[chosen.layout.cp]"),
        ("parallelism.pipeline_parallel_degree", layout.pp, "[chosen.layout.pp]"),
        ("parallelism.expert_parallel_degree", layout.ep, "[chosen.layout.ep]"),
        ("parallelism.data_parallel_shard_degree", layout.dp if shared else 1, "ranks that share one copy [chosen.layout.sharding, dp]"),
        ("parallelism.data_parallel_replicate_degree", 1 if shared else layout.dp, "copies [chosen.layout.sharding, dp]"),
    ]  # fmt: skip
    if layout.sharding == "zero2":
        why = "weights stay whole until the backward pass [chosen.layout.sharding]"
        found.append(("parallelism.fsdp_reshard_after_forward", "never", why))
    warmup = "not of the plan: 8000 of 1200000 steps in Llama 3, the same share here (arXiv 2407.21783 section 3.4.1)"
    return [
        *found,
        *_stages(job),
        ("lr_scheduler.warmup_steps", warmup_steps(training), warmup),
        ("checkpoint.enable", True, "saves and continues in the dump folder [chosen.storage]"),
        ("checkpoint.interval", job.save_steps, "[chosen.storage.checkpoint_interval_s over chosen.estimate.step_time_s]"),
        ("metrics.log_freq", 1, "a line for each step, for comparison with the plan [chosen.estimate.step_time_s]"),
    ]  # fmt: skip


def _stages(job: Job) -> list[tuple[str, object, str]]:
    layout, placed = job.layout, _placed(job)
    if layout.pp == 1 or placed is None:
        return []
    interleaved = "InterleavedZeroBubble" if layout.schedule == "zero-bubble" else "Interleaved1F1B"
    schedule = interleaved if layout.vpp > 1 else "1F1B"
    name = "parallelism.pipeline_parallel_"
    return [
        (f"{name}schedule", schedule, "[chosen.layout.vpp, schedule]"),
        (f"{name}layers_per_stage", placed[0], "layers over all stages [chosen.layout.pp, vpp]"),
        (f"{name}first_stage_less_layers", placed[1], "the embedding counts as so many layers [chosen.layout.pp]"),
        (f"{name}last_stage_less_layers", placed[1], "the output head counts as so many layers [chosen.layout.pp]"),
        (f"{name}microbatch_size", layout.micro_batch, "[chosen.layout.micro_batch]"),
    ]


_RECOMPUTED = "what the backward pass computes again [chosen.layout.recompute]"
_DATA = "data in the form of C4"


def _recipe(job: Job, training: Training, module: str, function: str) -> str:
    layout, (rate, rate_why), flavor = job.layout, peak_rate(job), _FLAVORS.get(_shape(job))
    recompute = {"none": "", "full": "FullAC", "selective": "SelectiveAC"}[layout.recompute]
    rows = [
        ("hf_assets_path", json.dumps(str(job.need("tokenizer"))), job.need("tokenizer").why),
        ("dump_folder", json.dumps(str(job.need("checkpoint_dir"))), job.need("checkpoint_dir").why),
        *((name, _python(value), why) for name, value, why in _lines(job, training)),
        ("optimizer", f"default_adamw(lr={float(rate)!r})", rate_why),
        ("dataloader.dataset", '"c4"', _DATA),
        ("dataloader.dataset_path", json.dumps(str(job.need("data_dir"))), job.need("data_dir").why),
        ("activation_checkpoint", f"{recompute}.Config()" if recompute else "None", _RECOMPUTED),
        ("validator.enable", "False", "the plan has no time for evaluation"),
    ]
    if flavor is not None:
        why = "the network in bf16: its own recipe is in 8 bits [model, chosen.layout.precision]"
        rows.insert(0, ("model_spec", f"model_registry({flavor!r})", why))
    if layout.pp > 1:
        why = "torchtitan refuses CUDA graphs with pipeline stages [chosen.layout.pp]"
        rows.append(("training.disable_cuda_graphs", "True", why))
    lines = "".join(f"    config.{name} = {value}  # {why}\n" for name, value, why in rows)
    extra = f"from torchtitan.distributed.activation_checkpoint import {recompute}\n" if recompute else ""
    extra += f"from torchtitan.models.{module} import model_registry\n" if flavor is not None else ""
    return (
        f'"""Recipe for torchtitan 0.3: {job.chosen.accelerators} ranks on {job.nodes} nodes."""\n\n'
        f"from torchtitan.components.optimizer import default_adamw\n{extra}"
        f"from torchtitan.models.{module}.config_registry import {function}\nfrom torchtitan.trainer import Trainer\n\n\n"
        f"def run() -> Trainer.Config:\n"
        f'    """The plan, as changes to the recipe of the same network."""\n    config = {function}()\n{lines}    return config\n'
    )


def _python(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _toml(job: Job, training: Training, name: str, flavor: str) -> str:
    rate, rate_why = peak_rate(job)
    rows: list[tuple[str, object, str]] = [
        ("job.dump_folder", str(job.need("checkpoint_dir")), job.need("checkpoint_dir").why),
        ("model.name", name, "[model]"),
        ("model.flavor", flavor, "the network of this shape [model]"),
        ("model.hf_assets_path", str(job.need("tokenizer")), job.need("tokenizer").why),
        ("optimizer.lr", float(rate), rate_why),
        ("training.dataset", "c4", _DATA),
        ("training.dataset_path", str(job.need("data_dir")), job.need("data_dir").why),
        ("activation_checkpoint.mode", job.layout.recompute, _RECOMPUTED),
        *_lines(job, training),
    ]
    if job.layout.recompute == "selective":
        why = "by operation, not by every second layer [chosen.layout.recompute]"
        rows.append(("activation_checkpoint.selective_ac_option", "op", why))
    sections: dict[str, str] = {}
    for path, value, why in rows:
        section, _, key = path.partition(".")
        sections[section] = sections.get(section, "") + f"{key} = {json.dumps(value)}  # {why}\n"
    head = comment(f"For torchtitan 0.2: {job.chosen.accelerators} ranks on {job.nodes} nodes.")
    return head + "".join(f"\n[{section}]\n{lines}" for section, lines in sections.items())
