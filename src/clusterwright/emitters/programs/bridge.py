"""Megatron Bridge 0.6: Megatron's arguments as the fields of its ConfigContainer, in a Python program of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Setting
from clusterwright.emitters.programs import megatron
from clusterwright.emitters.programs.program import HERE, Program
from clusterwright.model import LatentAttention

if TYPE_CHECKING:
    from clusterwright.emitters.bundle import Unsupported
    from clusterwright.emitters.job import Job
    from clusterwright.workload import Training

FILE = "pretrain.py"
SECTIONS = {
    "train": ("micro-batch-size", "global-batch-size", "train-iters", "exit-signal-handler"),
    "optimizer": ("lr",),
    "scheduler": ("lr-decay-style", "lr-warmup-iters"),
    "ddp": (
        "overlap-grad-reduce", "overlap-param-gather", "use-megatron-fsdp", "data-parallel-sharding-strategy",
        "use-distributed-optimizer",
    ),
    "dataset": ("data-path", "split"),
    "validation": ("eval-iters",),
    "tokenizer": ("tokenizer-type", "tokenizer-model"),
    "checkpoint": ("save", "load", "save-interval", "ckpt-format"),
    "logger": ("log-interval", "log-throughput"),
    "dist": ("distributed-timeout-minutes",),
    "": ("bf16", "fp16", "fp8-format", "fp8-recipe", "fp4-format", "group-query-attention", "multi-latent-attention", "max-position-embeddings"),
}  # fmt: skip
"""Where an argument of Megatron stands; those of no section are told in another way, all others are of the model."""
NAMES = {
    "num-experts": "num_moe_experts",
    "num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size",
    "untie-embeddings-and-output-weights": "share_embeddings_and_output_weights",
    "disable-bias-linear": "add_bias_linear",
    "no-gradient-accumulation-fusion": "gradient_accumulation_fusion",
    "swiglu": "gated_linear_unit",
}
"""Arguments whose field has another name."""
OFF = ("untie-embeddings-and-output-weights", "disable-bias-linear", "no-gradient-accumulation-fusion")
"""Switches that turn their field off."""
VALUES = {
    "data-path": "data",
    "tokenizer-model": 'os.environ["TOKENIZER"]',
    "save": 'os.environ["CHECKPOINT_DIR"]',
    "load": 'os.environ["CHECKPOINT_DIR"]',
}
"""Values that the launcher gives when the job starts."""
PRECISION = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_delayed_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}
"""Megatron Bridge's own recipe of each precision (megatron/bridge/training/mixed_precision.py)."""
CLASSES = {
    "train": "TrainingConfig", "optimizer": "OptimizerConfig", "scheduler": "SchedulerConfig",
    "ddp": "DistributedDataParallelConfig", "dataset": "GPTDatasetConfig", "validation": "ValidationConfig",
    "tokenizer": "TokenizerConfig", "checkpoint": "CheckpointConfig", "logger": "LoggerConfig",
    "dist": "DistributedInitConfig",
}  # fmt: skip


def program(job: Job, training: Training) -> Program | tuple[Unsupported, ...]:
    """The program of a plan, or why Megatron cannot run it."""
    base = megatron.program(job, training)
    if isinstance(base, tuple):
        return base
    prefixes = Setting('"${prefixes[@]}"', None, "every indexed dataset of the folder [site.data_dir]")
    return Program(
        "megatron-bridge", f"$here/{FILE}", (prefixes,), base.environment, prepare=f"{HERE}\n{base.prepare}",
        files={FILE: _program(job, training, base.arguments)}, unsupported=base.unsupported,
    )  # fmt: skip


def _program(job: Job, training: Training, arguments: tuple[Setting, ...]) -> str:
    fields = _fields(job, training, arguments)
    latent = any(isinstance(block.mixer, LatentAttention) for block in job.model.blocks)
    provider, module = ("MLAModelProvider", "mla_provider") if latent else ("GPTModelProvider", "gpt_provider")
    classes = {"model": provider, **CLASSES}
    parts = "".join(
        f"        {section}={classes[section]}(\n"
        + "".join(f"            {name}={value},  # {why}\n" for name, value, why in fields[section])
        + "        ),\n"
        for section in classes
        if fields.get(section)
    )
    names = sorted([*(CLASSES[s] for s in CLASSES if fields.get(s)), "ConfigContainer"])
    gated = "import torch.nn.functional as F\n" if any(one.name == "--swiglu" for one in arguments) else ""
    return f'''\
"""Pre-training with Megatron Bridge 0.6: {job.chosen.accelerators} ranks on {job.nodes} nodes."""

import os
import sys

{gated}from megatron.bridge.models.{module} import {provider}
from megatron.bridge.training.config import (
{"".join(f"    {name},{chr(10)}" for name in names)})


def configuration(data: list[str]) -> ConfigContainer:
    """The plan; data are the prefixes of its indexed datasets."""
    return ConfigContainer(
{parts}        mixed_precision="{PRECISION[job.layout.precision]}",  # [chosen.layout.precision]
    )


if __name__ == "__main__":
    from megatron.bridge.training.gpt_step import forward_step
    from megatron.bridge.training.pretrain import pretrain

    pretrain(configuration(sys.argv[1:]), forward_step)
'''


def _fields(job: Job, training: Training, arguments: tuple[Setting, ...]) -> dict[str, list[tuple[str, str, str]]]:
    """Name, value and why of each section's fields."""
    place = {flag: section for section, flags in SECTIONS.items() for flag in flags}
    found: dict[str, list[tuple[str, str, str]]] = {section: [] for section in ("model", *CLASSES)}
    for one in arguments:
        flag = one.name.removeprefix("--")
        if section := place.get(flag, "model"):
            found[section].append((NAMES.get(flag, flag.replace("-", "_")), _value(flag, one), one.why))
    found["model"] += [
        ("vocab_size", str(job.model.vocab), "[model.vocab]"),
        ("should_pad_vocab", "True", "so that it divides by tp [chosen.layout.tp]"),
    ]
    flags = {one.name for one in arguments}
    if "--swiglu" in flags:
        found["model"].append(("activation_func", "F.silu", "the gate of a gated layer, as with Megatron's --swiglu"))
    if job.model.mtp:
        found["model"].append(("mtp_enabled", "True", "[model.mtp]"))
    found["optimizer"] += [
        ("optimizer", '"adam"', "AdamW, as in Megatron: decoupled weight decay [workload.training.optimizer]")
    ]
    if "--use-distributed-optimizer" in flags:
        found["optimizer"].append(("use_distributed_optimizer", "True", "as in ddp [chosen.layout.sharding]"))
    if "--use-megatron-fsdp" in flags:
        found["dist"].append(("use_megatron_fsdp", "True", "as in ddp [chosen.layout.sharding]"))
    found["dataset"] += [
        ("seq_length", str(training.sequence_length), "[workload.training.sequence_length]"),
        ("random_seed", "1234", "not of the plan: Megatron's default seed"),
        *(
            (name, "False", "documents follow one another in a sequence, as in Megatron's default")
            for name in ("reset_position_ids", "reset_attention_mask", "eod_mask_loss")
        ),
    ]
    return found


def _value(flag: str, one: Setting) -> str:
    """The value of an argument in Python."""
    if flag in VALUES:
        return VALUES[flag]
    if one.value is None:
        return str(flag not in OFF)
    if flag == "moe-layer-freq":
        return one.value.strip("()").replace("*", " * ").replace("+", " + ")
    try:
        return repr(int(one.value) if one.value.isdigit() else float(one.value))
    except ValueError:
        return json.dumps(one.value)
