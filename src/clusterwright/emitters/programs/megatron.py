"""Megatron-LM: a plan as the arguments of pretrain_gpt.py (names of core 0.19 and 0.20)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Setting, Unsupported
from clusterwright.emitters.programs.megatron_model import feed, mixer, one, shape, switch
from clusterwright.emitters.programs.program import Program
from clusterwright.emitters.programs.rates import left_to_you, peak_rate, warmup_steps
from clusterwright.model import Attention, Experts, FeedForward, LatentAttention, StateSpace

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job
    from clusterwright.workload import Training

FSDP = ("zero2", "zero3", "fsdp", "hsdp")


def program(job: Job, training: Training) -> Program | tuple[Unsupported, ...]:
    """The program of a plan, or why Megatron-LM cannot run it."""
    refused = (*_refused(job, training),)
    if refused:
        return refused
    arguments = (
        *_degrees(job), *_pipeline(job), *_batch(job, training), *shape(job), *mixer(job), *feed(job),
        *_memory(job), *_precision(job), *_sharding(job), *_schedule(job, training), *_data(job), *_saving(job),
    )  # fmt: skip
    rest = "weight decay, betas, clipping, the last rate, the seed and the first weights are Megatron's defaults"
    notes = (*left_to_you(job, training, rest), *_left_out(job))
    environment = _environment(job)
    return Program(
        "megatron",
        _path(job),
        arguments,
        environment,
        prepare=_PREPARE,
        finished=_finished(training),
        unsupported=notes,
    )


_PREPARE = """\
# Every indexed dataset below the folder; Megatron takes them by their prefix, without the suffix.
mapfile -t indexes < <(find "$DATA_DIR" -name '*.idx' | LC_ALL=C sort)
if ((${#indexes[@]} == 0)); then
  echo "no *.idx below $DATA_DIR: tokenize first with Megatron's tools/preprocess_data.py" >&2
  exit 1
fi
prefixes=("${indexes[@]%.idx}")
"""


def _finished(training: Training) -> str:
    return f'[ "$(cat "$CHECKPOINT_DIR/latest_checkpointed_iteration.txt" 2>/dev/null)" = "{training.steps}" ]'


def _path(job: Job) -> str:
    given = job.get("program")
    return str(given) if given else "${MEGATRON_DIR:-.}/pretrain_gpt.py"


def _refused(job: Job, training: Training) -> list[Unsupported]:
    return [
        Unsupported(what, why)
        for what, wrong, why in (*_refused_shape(job, training), *_refused_layout(job, training))
        if wrong
    ]


def _refused_shape(job: Job, training: Training) -> list[tuple[str, bool, str]]:
    blocks = job.model.blocks
    mixers, feeds = {block.mixer for block in blocks}, {block.feed for block in blocks}
    mixed = (
        len({type(mixer) for mixer in mixers}) > 1
        or any(isinstance(m, StateSpace) for m in mixers)
        or {None} & (mixers | feeds)
    )
    shapes = {
        m if isinstance(m, LatentAttention) else (m.heads, m.kv_heads, m.head_size)
        for m in mixers
        if isinstance(m, (Attention, LatentAttention))
    }
    widths = max(sum(isinstance(f, kind) for f in feeds) for kind in (Experts, FeedForward))
    return [
        (f"method = {training.method}", training.method != "full", "pretrain_gpt.py of Megatron-LM has no adapters"),
        (
            "model shape",
            bool(mixed),
            "layers of several kinds need a hybrid pattern and another program than pretrain_gpt.py",
        ),
        (
            "model shape",
            len(shapes) > 1 or widths > 1,
            "layers of several widths in one network are not in Megatron-LM's arguments",
        ),
    ]


def _refused_layout(job: Job, training: Training) -> list[tuple[str, bool, str]]:
    layout, model = job.layout, job.model
    experts = not model.experts or model.experts % layout.ep or job.chosen.accelerators % (layout.ep * layout.pp)
    groups = {m.kv_heads for b in model.blocks if isinstance(m := b.mixer, Attention)}
    odd = [group for group in groups if group % layout.tp and layout.tp % group]
    return [
        ("tp", model.heads % layout.tp > 0, f"{model.heads} heads do not divide by tp {layout.tp} (TransformerConfig)"),
        (
            "tp",
            bool(odd),
            f"{odd} key heads are neither a multiple nor a divisor of tp {layout.tp} (TransformerConfig)",
        ),
        (
            "cp",
            layout.cp > 1 and training.sequence_length % (2 * layout.cp) > 0,
            f"sequence_length must divide by 2 x cp = {2 * layout.cp} (arguments.py)",
        ),
        ("pp", layout.pp * layout.vpp > model.layers, f"{layout.pp * layout.vpp} stages for {model.layers} layers"),
        (
            "global_batch",
            layout.global_batch % (layout.dp * layout.micro_batch) > 0,
            "must divide by dp x micro_batch (microbatch calculator)",
        ),
        (
            "vpp",
            layout.vpp > 1 and (layout.pp == 1 or layout.micro_batches % layout.pp > 0),
            "the interleaved schedule needs pp > 1 and micro-batches that divide by pp",
        ),
        ("schedule", layout.schedule == "zero-bubble", "Megatron has 1F1B and its interleaved form (schedules.py)"),
        ("ep", layout.ep > 1 and bool(experts), "experts must divide by ep, and the world by ep x pp (parallel_state)"),
        (
            f"sharding = {layout.sharding}",
            layout.sharding in FSDP and layout.pp > 1,
            "Megatron-FSDP is written only without pipeline stages",
        ),
    ]


def _degrees(job: Job) -> list[Setting]:
    layout, found = job.layout, []
    if layout.tp > 1:
        found += [
            one(
                "--tensor-model-parallel-size",
                layout.tp,
                "each layer is split over so many accelerators [chosen.layout.tp]",
            ),
            switch("--sequence-parallel", "splits norms and their activations too; needs tp > 1 [chosen.layout.tp]"),
        ]
    else:
        found.append(one("--tensor-model-parallel-size", 1, "layers are not split [chosen.layout.tp]"))
    if layout.cp > 1:
        found.append(
            one("--context-parallel-size", layout.cp, "each sequence is split over so many ranks [chosen.layout.cp]")
        )
    if layout.pp > 1:
        found.append(
            one(
                "--pipeline-model-parallel-size",
                layout.pp,
                "the layers are split into so many stages [chosen.layout.pp]",
            )
        )
    if layout.ep > 1:
        found += [
            one("--expert-model-parallel-size", layout.ep, "experts are split over so many ranks [chosen.layout.ep]"),
            one(
                "--expert-tensor-parallel-size",
                1,
                "one expert is not split: the estimate counts it whole [chosen.layout.ep]",
            ),
        ]
    return found


def _pipeline(job: Job) -> list[Setting]:
    layout, layers = job.layout, job.model.layers
    if layout.pp == 1:
        return []
    stages = layout.pp * layout.vpp
    if layers % stages == 0:
        if layout.vpp == 1:
            return []
        why = "each rank holds so many pieces of the pipeline, for a smaller bubble [chosen.layout.vpp]"
        return [one("--num-virtual-stages-per-pipeline-rank", layout.vpp, why)]
    if (layers + 2) % stages == 0:
        why = f"{layers} layers and two ends divide by {stages} stages: this end counts as a layer [chosen.layout.pp, vpp]"
        found = [
            switch("--account-for-embedding-in-pipeline-split", why),
            switch("--account-for-loss-in-pipeline-split", why),
        ]
        return (
            found
            if layout.vpp == 1
            else [
                *found,
                one("--num-virtual-stages-per-pipeline-rank", layout.vpp, "pieces a rank [chosen.layout.vpp]"),
            ]
        )
    return [
        one(
            "--pipeline-model-parallel-layout",
            _stages(layers, stages, job.model.mtp),
            f"{layers} layers over {stages} stages, unevenly; the ends have least [chosen.layout.pp, vpp]",
        )
    ]


def _stages(layers: int, stages: int, mtp: int = 0) -> str:
    """Layers of each stage as Megatron writes them; what is left over goes to the middle stages.

    >>> _stages(5, 4)
    'Et|tt|t|tL'
    """
    least, more = divmod(layers, stages)
    start = (stages - more) // 2
    counts = [least + (start <= i < start + more) for i in range(stages)]
    return "|".join(f"{'E' * (i == 0)}{'t' * n}{('m' * mtp + 'L') * (i == stages - 1)}" for i, n in enumerate(counts))


def _batch(job: Job, training: Training) -> list[Setting]:
    layout = job.layout
    return [
        one("--micro-batch-size", layout.micro_batch, "sequences a rank takes at once [chosen.layout.micro_batch]"),
        one(
            "--global-batch-size",
            layout.global_batch,
            f"sequences of one step; {layout.micro_batches} micro-batches on each of {layout.dp} replicas [chosen.layout.global_batch]",
        ),
        one("--seq-length", training.sequence_length, "tokens of a sequence [workload.training.sequence_length]"),
        one(
            "--max-position-embeddings",
            max(training.sequence_length, job.model.positions),
            "at least the sequence [workload.training.sequence_length]",
        ),
        one(
            "--train-iters",
            training.steps,
            "steps for all tokens [workload.training.tokens, global_batch, sequence_length]",
        ),
    ]


def _memory(job: Job) -> list[Setting]:
    if job.layout.recompute == "selective":
        return [
            one(
                "--recompute-granularity",
                "selective",
                "attention is computed again in the backward pass [chosen.layout.recompute]",
            )
        ]
    if job.layout.recompute == "full":
        why = "every layer is computed again in the backward pass [chosen.layout.recompute]"
        return [
            one("--recompute-granularity", "full", why),
            one("--recompute-method", "uniform", "full recompute needs a method [chosen.layout.recompute]"),
            one("--recompute-num-layers", 1, "keeps the input of each layer [chosen.layout.recompute]"),
        ]
    return []


def _precision(job: Job) -> list[Setting]:
    why = "[chosen.layout.precision]"
    precision = job.layout.precision
    if precision == "fp16":
        return [switch("--fp16", why)]
    found = [switch("--bf16", f"weights and activations {why}")]
    if precision == "fp8":
        return [
            *found,
            one("--fp8-format", "hybrid", f"matrix products in 8 bits; Megatron's own recipe (delayed) {why}"),
        ]
    if precision == "mxfp8":
        return [
            *found,
            one("--fp8-format", "e4m3", f"matrix products in 8 bits {why}"),
            one("--fp8-recipe", "mxfp8", f"one scale for 32 values {why}"),
        ]
    if precision == "nvfp4":
        return [*found, one("--fp4-format", "e2m1", f"matrix products in 4 bits {why}")]
    return found


def _sharding(job: Job) -> list[Setting]:
    sharding, why = job.layout.sharding, "[chosen.layout.sharding]"
    overlap = [
        switch("--overlap-grad-reduce", f"gradients travel during the backward pass {why}"),
        switch("--overlap-param-gather", f"weights travel during the forward pass {why}"),
    ]
    if sharding in ("zero1", "distopt"):
        return [
            switch("--use-distributed-optimizer", f"each replica keeps its share of the optimizer {why}"),
            *overlap,
        ]
    if sharding in FSDP:
        strategy = "optim_grads" if sharding == "zero2" else "optim_grads_params"
        return [
            switch("--use-megatron-fsdp", f"gradients and weights are shared among replicas too {why}"),
            one("--data-parallel-sharding-strategy", strategy, why),
            switch("--use-distributed-optimizer", f"each replica keeps its share of the optimizer {why}"),
            switch("--no-gradient-accumulation-fusion", f"Megatron-FSDP owns the gradients {why}"),
            one("--ckpt-format", "fsdp_dtensor", f"the only format Megatron-FSDP saves {why}"),
        ]
    return [overlap[0]] if job.layout.dp > 1 else []


def _schedule(job: Job, training: Training) -> list[Setting]:
    dropout = "not of the plan, and not in its estimate: language models of this kind are trained without"
    return [
        one("--attention-dropout", 0.0, dropout),
        one("--hidden-dropout", 0.0, dropout),
        one("--lr", *peak_rate(job)),
        one("--lr-decay-style", "cosine", "not of the plan: the schedule of Llama 3 (arXiv 2407.21783 section 3.4.1)"),
        one(
            "--lr-warmup-iters",
            warmup_steps(training),
            "not of the plan: 8000 of 1200000 steps in Llama 3, the same share here (arXiv 2407.21783 section 3.4.1)",
        ),
    ]


def _data(job: Job) -> list[Setting]:
    del job
    return [
        one("--tokenizer-type", "HuggingFaceTokenizer", "reads a folder or a name on Hugging Face [site.tokenizer]"),
        Setting("--tokenizer-model", '"$TOKENIZER"', "[site.tokenizer]", raw=True),
        Setting("--data-path", '"${prefixes[@]}"', "every indexed dataset of the folder [site.data_dir]", raw=True),
        one("--split", "100,0,0", "all data is for training: the plan has no time for evaluation"),
        one("--eval-iters", 0, "the plan has no time for evaluation"),
    ]


def _saving(job: Job) -> list[Setting]:
    minutes = max(10, math.ceil(2 * job.checkpoint_s / 60) + 5)
    found = [
        Setting("--save", '"$CHECKPOINT_DIR"', "[site.checkpoint_dir]", raw=True),
        Setting(
            "--load", '"$CHECKPOINT_DIR"', "continues from the newest checkpoint there [site.checkpoint_dir]", raw=True
        ),
        one(
            "--save-interval", job.save_steps, "[chosen.storage.checkpoint_interval_s over chosen.estimate.step_time_s]"
        ),
        switch("--exit-signal-handler", "saves and leaves when the scheduler says so (SIGTERM)"),
        one(
            "--log-interval", 1, "a step time for each step, for comparison with the plan [chosen.estimate.step_time_s]"
        ),
        switch("--log-throughput", "FLOP/s beside each step, for comparison with the plan [chosen.estimate.mfu]"),
    ]
    if minutes > 10:  # noqa: PLR2004 - Megatron's default
        found.append(one("--distributed-timeout-minutes", minutes, "longer than two checkpoints [chosen.storage]"))
    return found


def _environment(job: Job) -> tuple[Setting, ...]:
    layout = job.layout
    early = job.accelerator.architecture.lower() in ("ampere", "hopper", "ada", "volta", "turing")
    if (layout.tp > 1 or layout.cp > 1) and early and layout.sharding not in FSDP:
        why = "Megatron asks for it with tp or cp before Blackwell: it orders communication before computing [chosen.layout]"
        return (Setting("CUDA_DEVICE_MAX_CONNECTIONS", "1", why),)
    return ()


def _left_out(job: Job) -> list[Unsupported]:
    model, found = job.model, []
    if not model.positions and model.rotary_base is None and job.get("rotary_base") is None:
        found.append(
            Unsupported(
                "rotary base",
                "the catalogue does not know it; Megatron's default 10000 stands; give it with --set rotary_base=500000",
            )
        )
    mixers = [b.mixer for b in model.blocks if isinstance(b.mixer, Attention)]
    if any(m.window for m in mixers):
        found.append(
            Unsupported(
                "sliding window", "which layers have it is not in the plan's order; the whole sequence is attended"
            )
        )
    if any(m.qk_norm == "full" for m in mixers):
        found.append(Unsupported("norm over all query heads", "Megatron normalizes by head; the norm is left out"))
    if any(
        m.out_bias and not any(isinstance(b.feed, FeedForward) and b.feed.bias for b in model.blocks) for m in mixers
    ):
        found.append(Unsupported("bias of the attention output", "Megatron has one switch for all linear layers"))
    if any(not b.feed.gated for b in model.blocks if b.feed is not None):
        found.append(
            Unsupported(
                "activation function",
                "a plan's model is its shape: Megatron's default (GELU) stands for layers without a gate",
            )
        )
    if any(isinstance(b.feed, Experts) for b in model.blocks):
        found.append(
            Unsupported(
                "balance of the router", "the plan chooses none: Megatron's default has no auxiliary loss coefficient"
            )
        )
    if job.layout.sharding == "hsdp":
        found.append(
            Unsupported(
                "replicas of hsdp",
                "the plan does not say over how many ranks a copy is shared; it is shared over all of them",
            )
        )
    return found
