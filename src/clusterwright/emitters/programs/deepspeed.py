"""DeepSpeed: a plan as its JSON configuration, for a training program that people bring themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Setting, Unsupported
from clusterwright.emitters.programs.program import HERE, Program
from clusterwright.emitters.programs.rates import left_to_you, peak_rate, warmup_steps
from clusterwright.emitters.writing import table

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.workload import Training

CONFIG = "ds_config.json"
STAGES = {"none": 0, "zero1": 1, "distopt": 1, "zero2": 2, "zero3": 3, "fsdp": 3}
"""ZeRO stage of each way to share."""


def program(job: Job, training: Training) -> Program | tuple[Unsupported, ...]:
    """The program of a plan, or why DeepSpeed cannot run it."""
    refused = tuple(Unsupported(what, why) for what, wrong, why in _rules(job) if wrong)
    if refused:
        return refused
    given = job.get("program")
    arguments = (
        Setting("--deepspeed", None, "the program reads its settings from a file"),
        Setting(
            "--deepspeed_config",
            f'"$here/{CONFIG}"',
            "beside the launcher; its values are explained in WHY.md",
            raw=True,
        ),
    )
    values = _values(job, training)
    why = "# Why each value of ds_config.json\n\n" + table(
        ("key", "value", "why"), [(k, json.dumps(v), w) for k, v, w in values]
    )
    gaps = [
        *left_to_you(job, training, "betas and weight decay are torch's defaults"),
        Unsupported(
            "training program",
            "DeepSpeed has none: yours reads --deepspeed_config, DATA_DIR, CHECKPOINT_DIR and TOKENIZER; name it with --set program",
        ),
    ]
    if training.method != "full":
        gaps.append(Unsupported(f"method = {training.method}", "adapters are your program's own"))
    if job.layout.recompute != "none":
        gaps.append(
            Unsupported(
                f"recompute = {job.layout.recompute}", "layers are computed again only where your program asks for it"
            )
        )
    return Program(
        "deepspeed", str(given) if given else "${PROGRAM:?path of your training program}", arguments, (), prepare=f"{HERE}\n",
        files={CONFIG: json.dumps(_nested(values), indent=2) + "\n", "WHY.md": why}, unsupported=tuple(gaps),
    )  # fmt: skip


def _rules(job: Job) -> list[tuple[str, bool, str]]:
    layout = job.layout
    return [
        ("pp", layout.pp > 1, "DeepSpeed's pipeline needs a program written for it; the configuration cannot say it"),
        ("cp", layout.cp > 1, "context parallelism is no key of DeepSpeed's configuration"),
        ("ep", layout.ep > 1, "expert parallelism is built into the program, not into the configuration"),
        (
            f"sharding = {layout.sharding}",
            layout.sharding not in STAGES,
            "the plan does not say over how many ranks a copy is shared",
        ),
        ("tp", layout.tp > 1 and layout.sharding in ("zero3", "fsdp"), "AutoTP goes with ZeRO stages 0 to 2"),
        (
            f"precision = {layout.precision}",
            layout.precision not in ("bf16", "fp16"),
            "DeepSpeed's configuration knows bf16 and fp16",
        ),
        ("global_batch", layout.global_batch % (layout.dp * layout.micro_batch) > 0, "must divide by dp x micro_batch"),
    ]


def _values(job: Job, training: Training) -> list[tuple[str, object, str]]:
    layout, (rate, rate_why) = job.layout, peak_rate(job)
    found: list[tuple[str, object, str]] = [
        ("train_batch_size", layout.global_batch, "chosen.layout.global_batch"),
        ("train_micro_batch_size_per_gpu", layout.micro_batch, "chosen.layout.micro_batch"),
        ("gradient_accumulation_steps", layout.micro_batches, "global batch over dp x micro-batch [chosen.layout]"),
        (f"{layout.precision}.enabled", True, "chosen.layout.precision"),
        (
            "gradient_clipping",
            1.0,
            "not of the plan: the usual norm of language models (Llama 2, arXiv 2307.09288 section 2.2)",
        ),
        ("zero_optimization.stage", STAGES[layout.sharding], "what the replicas share [chosen.layout.sharding]"),
        ("steps_per_print", 1, "a line for each step, for comparison with the plan [chosen.estimate.step_time_s]"),
        ("wall_clock_breakdown", False, "it would synchronize each step"),
        ("optimizer.type", "AdamW", "AdamW: decoupled weight decay [workload.training.optimizer]"),
        ("optimizer.params.lr", float(rate), rate_why),
        ("scheduler.type", "WarmupCosineLR", "the schedule of Llama 3, arXiv 2407.21783 section 3.4.1"),
        ("scheduler.params.total_num_steps", training.steps, "steps for all tokens [workload.training]"),
        (
            "scheduler.params.warmup_num_steps",
            max(2, warmup_steps(training)),
            "not of the plan: 8000 of 1200000 steps in Llama 3, the same share here (arXiv 2407.21783 section 3.4.1)",
        ),
    ]
    if STAGES[layout.sharding] > 1:
        found.append(
            (
                "zero_optimization.overlap_comm",
                True,
                "gradients travel during the backward pass [chosen.layout.sharding]",
            )
        )
    if STAGES[layout.sharding] > 2:  # noqa: PLR2004 - the stage that shares weights
        found.append(
            ("zero_optimization.stage3_gather_16bit_weights_on_model_save", True, "checkpoints hold whole weights")
        )
    if layout.tp > 1:
        found.append(("tensor_parallel.autotp_size", layout.tp, "chosen.layout.tp"))
    return found


def _nested(values: list[tuple[str, object, str]]) -> dict[str, object]:
    tree: dict[str, object] = {}
    for path, value, _ in values:
        *parents, leaf = path.split(".")
        place = tree
        for parent in parents:
            inner = place.setdefault(parent, {})
            place = inner if isinstance(inner, dict) else place
        place[leaf] = value
    return tree
