"""Observed runs estimated again: what their tables say becomes a job and a layout, what they leave out is assumed.

Degrees that are empty are 1, unknown recompute is the least that fits, an empty micro-batch the largest dividing one
that fits, no layout at all the best legal one; each is named.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clusterwright.estimators.calibrated import place_of
from clusterwright.estimators.grid import RECOMPUTES, SHARDINGS, Layouts
from clusterwright.estimators.job import Job
from clusterwright.estimators.offload import COHERENT
from clusterwright.estimators.residency import device_bytes, reserved_bytes
from clusterwright.estimators.said import GIB, measured_memory_gib, saving_of
from clusterwright.estimators.training import Estimates, run
from clusterwright.hardware import FabricKind, Node
from clusterwright.measurement import JOB_NUMBERS
from clusterwright.model import Attention, Block, Experts, FeedForward, Model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clusterwright.estimators.efficiency import Efficiency
    from clusterwright.estimators.keeping import Saving
    from clusterwright.hardware import Accelerator
    from clusterwright.measurement import Calibration, TrainingRun

PIPELINE_SPLIT_UNTIL = 2025.25
"""When torchtitan's pipeline began to run one sequence at a time, not one part for every stage (#1073, April 2025)."""
PACKED_SAMPLE = 250
"""Tokens of a sample of SQuAD, which NeMo's fine-tuning benchmarks packed into sequences until Megatron-Bridge."""
PACKED_UNTIL = 2025.5
GRACE_SHARE = 0.5
"""Share of the layers whose activations those recipes offload: 20 to 40 of Llama 3's 80."""
GATED = ("llama", "qwen", "mistral", "yi-", "deepseek")
"""Beginnings of names of models whose feed-forward parts all have a gate."""
FOUR = 4
"""Width of a feed-forward part without a gate, in widths of the network: what GPT-3 and its kin have."""
SAME_COUNT = 0.005
"""Relative difference of parameter counts that tells nothing: norms and biases."""
DEFAULT_NIC_BITS_PER_S = {"volta": 12.5e9, "ampere": 200e9, "ada": 25e9}
"""Scale-out bandwidth of one accelerator in the usual node of its time; 400 Gb/s for all later ones [bit/s]."""
RAN_IN = 0.97
"""Share of an accelerator's memory up to which a run that did run may be estimated: what there is beside context and
libraries, and the estimate's own error."""
COLUMNS = tuple(f for f in Layouts.__dataclass_fields__ if f != "schedule")  # runs do not state it: 1F1B


class Known(Protocol):
    """What must be known to estimate a run again: a catalogue is that."""

    @property
    def accelerators(self) -> Mapping[str, Accelerator]:
        """Accelerators by name."""

    @property
    def models(self) -> Mapping[str, Model]:
        """Models by name."""


@dataclass(frozen=True)
class Scored:
    """One run with its estimate."""

    run: TrainingRun
    step_s: float
    low_s: float
    high_s: float
    memory_gib: float
    assumptions: tuple[str, ...]
    parts: Mapping[str, float]
    """What the step time is the sum of [s]."""
    memory_parts: Mapping[str, float] = field(default_factory=dict)
    """What the allocated memory is the sum of [B]."""
    where: tuple[Job, Layouts, int] | None = None
    """The job, layouts, and which of them the run had."""

    @property
    def place(self) -> dict[str, float]:
        """Coordinates, by which runs are alike [1]."""
        if self.where is None:
            return {}
        job, lay, at = self.where
        one = Layouts(**{name: getattr(lay, name)[at : at + 1] for name in COLUMNS})
        return {name: float(value[0]) for name, value in place_of(job, one).items()}

    @property
    def measured_memory_gib(self) -> float | None:
        """The measured peak [GiB]."""
        return measured_memory_gib(self.run)

    def document(self) -> dict[str, Any]:
        """As printed; memory in GiB, as the sources print it."""
        return {
            "id": self.run.text("id"),
            "family": self.run.text("family"),
            "measured_step_s": self.run.number("step_time_s"),
            "estimated_step_s": self.step_s,
            "step_low_s": self.low_s,
            "step_high_s": self.high_s,
            "assumptions": list(self.assumptions),
            "measured_memory_gb": self.measured_memory_gib,
            "estimated_memory_gb": self.memory_gib,
        }


def score(
    runs: Iterable[TrainingRun],
    known: Known,
    calibration: Calibration | None = None,
    efficiency: Efficiency | None = None,
) -> tuple[list[Scored], list[tuple[str, str]]]:
    """Estimate observed runs; returns them with their estimates, and (id, reason) of those that cannot be."""
    skipped: list[tuple[str, str]] = []
    groups: dict[tuple[Any, ...], list[TrainingRun]] = defaultdict(list)
    for observed in runs:
        if reason := _unusable(observed, known):
            skipped.append((observed.text("id"), reason))
        else:
            groups[_key(observed)].append(observed)
    scored: list[Scored] = []
    for same in groups.values():
        job = job_of(same[0], known)
        if isinstance(job, str):
            skipped.extend((each.text("id"), job) for each in same)
        else:
            scored.extend(_score(job, same, calibration, efficiency))
    return scored, skipped


def _key(observed: TrainingRun) -> tuple[Any, ...]:
    columns = ("model", "gpu", "interconnect", "precision", "framework", "source_date")
    return (*(observed.text(c) for c in columns), *(observed.number(n) for n in JOB_NUMBERS), saving_of(observed))


def _unusable(observed: TrainingRun, known: Known) -> str:
    if observed.text("gpu") not in known.accelerators:
        return f"gpu {observed.text('gpu')!r} is not in the catalogue"
    if not observed.number("n_gpus"):
        return "n_gpus is empty"
    if not observed.number("gbs") and not observed.number("mbs"):
        return "neither gbs nor mbs is given"
    return ""


def known_model(name: str, known: Known) -> Model | None:
    """The catalogue's model of a printed name, where the words of a catalogue name are its beginning."""
    words = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    plain = words.replace("-", "")
    best = max((k for k in known.models if plain.startswith(k.replace("-", ""))), key=len, default=None)
    return known.models[best] if best else None


def job_of(observed: TrainingRun, known: Known) -> Job | str:
    """The job of a run, or the reason why its shape is not known."""
    model = model_of(observed, known)
    if isinstance(model, str):
        return model
    accelerator = known.accelerators[observed.text("gpu")]
    sequence = observed.whole("seq_len") or 0
    if not sequence:
        return "seq_len is empty"
    method = "full"
    if observed.number("lora"):
        method = "qlora" if "int" in observed.text("precision") or "qlora" in observed.text("model").lower() else "lora"
    precision = observed.text("precision")
    precision = precision if precision in ("bf16", "fp16", "fp8", "mxfp8", "nvfp4") else "bf16"
    return Job(
        model,
        accelerator,
        node_of(observed, accelerator),
        sequence,
        precision,
        _framework(observed),
        observed.year,
        method,
        sample_length=PACKED_SAMPLE if _packs(observed) else None,
        saving=_saving(observed),
    )


def _packs(observed: TrainingRun) -> bool:
    """Whether a run's sequences are short samples, none of which sees another."""
    tuned = observed.number("lora") or re.search(r"(?i)\bsft\b", observed.text("model"))
    return bool(tuned) and "nemo" in observed.text("framework").lower() and observed.year < PACKED_UNTIL


def _saving(observed: TrainingRun) -> Saving:
    """What a run does about memory, as its table says or as its maker's recipes do it."""
    said = saving_of(observed)
    return replace(said, offload_activations=True, offload_share=GRACE_SHARE) if _offloads(observed) else said


def _offloads(observed: TrainingRun) -> bool:
    """Whether activations go to a Grace where they do not fit: NVIDIA's recipes for full sharding offload some layers.

    Source: Megatron-Bridge, scripts/performance/configs/llama/workload_base_configs.py: cpu_offloading_num_layers.
    """
    framework = observed.text("framework").lower()
    recipe = observed.text("sharding") == "fsdp" and ("bridge" in framework or "nemo" in framework)
    return recipe and observed.text("gpu").startswith(COHERENT) and observed.text("recompute") not in RECOMPUTES[1:]


def _framework(observed: TrainingRun) -> str:
    """As printed; "megatron" alone is what somebody ran, not its maker's recipe, which it means in a workload."""
    text = observed.text("framework")
    return "megatron-lm" if text == "megatron" else text or "any"


def model_of(observed: TrainingRun, known: Known) -> Model | str:
    """The model's shape: the catalogue's where it is a known mixture or the columns are empty, else the columns'."""
    shape = known_model(observed.text("model"), known)
    layers = observed.whole("layers")
    if shape is not None and (shape.experts or not layers) and layers in (0, shape.layers):
        return shape
    missing = [c for c in ("layers", "hidden", "heads") if not observed.number(c)]
    if missing or not (observed.number("ffn") or observed.number("moe_ffn")):
        empty, name = ", ".join(missing or ["ffn"]), observed.text("model")
        return f"the model's shape is not given ({empty} empty) and {name!r} is not in the catalogue"
    hidden, heads = observed.whole("hidden"), observed.whole("heads")
    gated = bool(observed.whole("gated_mlp", int(observed.whole("ffn") != FOUR * hidden)))
    size = (
        shape.blocks[-1].mixer.head_size
        if shape and shape.hidden == hidden and isinstance(shape.blocks[-1].mixer, Attention)
        else hidden // heads
    )
    mixer = Attention(heads=heads, kv_heads=observed.whole("kv_heads", heads), head_size=max(size, 1))
    experts, width = observed.whole("moe_experts"), observed.whole("moe_ffn") or observed.whole("ffn")
    feed: FeedForward | Experts = FeedForward(ffn=observed.whole("ffn") or width, gated=gated)
    if experts > 1:
        feed = Experts(experts=experts, top_k=observed.whole("moe_topk", 1), ffn=width, gated=gated)
    plain = Model(
        name=observed.text("model") or "run",
        hidden=hidden,
        vocab=observed.whole("vocab", 32000),
        blocks=(Block(count=layers, mixer=mixer, feed=feed),),
    )
    return _by_count(plain, (observed.number("params_b") or 0.0) * 1e9)


def _by_count(model: Model, count: float) -> Model:
    """The model with its embedding tied to its head where that gives its parameter count, and a Llama with its gate.

    A gate that is missed and a head of its own too many can make up for each other: a Llama always has a gate.
    """
    block = model.blocks[0]
    choices = [model, _changed(model, tied=True)]
    if isinstance(block.feed, FeedForward) and not block.feed.gated and model.name.lower().startswith(GATED):
        gated = block.model_copy(update={"feed": block.feed.model_copy(update={"gated": True})})
        choices = [_changed(m, blocks=(gated,)) for m in choices] + choices
    if not count:
        return model
    least = min(abs(m.parameters / count - 1) for m in choices)
    return next(m for m in choices if abs(m.parameters / count - 1) < least + SAME_COUNT)


def _changed(model: Model, **fields: Any) -> Model:  # noqa: ANN401 - fields of Model
    return Model.model_validate({**{name: getattr(model, name) for name in Model.model_fields}, **fields})


def node_of(observed: TrainingRun, accelerator: Accelerator) -> Node:
    """The node a run sat in, as its interconnect column says, or as usual for its accelerator."""
    text, per_node = observed.text("interconnect"), observed.whole("gpus_per_node", 8)
    lower = text.lower()
    domain = 72 if "nvl72" in lower or (accelerator.name in ("gb200", "gb300") and not text) else per_node
    bits = DEFAULT_NIC_BITS_PER_S.get(accelerator.architecture, 400e9)
    if match := re.search(r"(\d+)\s*x\s*(\d+)\s*gb", lower):
        bits = int(match[1]) * int(match[2]) * 1e9 / per_node
    elif match := re.search(r"(\d+)\s*gb(?:ps|/s)?[^;]*(?:per gpu|per accelerator|a gpu)", lower):
        bits = int(match[1]) * 1e9
    elif match := re.search(r"(\d+)\s*gbps", lower):
        bits = int(match[1]) * 1e9 / per_node
    elif "slingshot" in lower:
        bits = 8 * 200e9 / per_node
    words = {
        "efa": FabricKind.EFA,
        "roce": FabricKind.ROCE,
        "rdma": FabricKind.ROCE,
        "slingshot": FabricKind.SLINGSHOT,
        "tcp": FabricKind.TCP,
    }
    kind = next((fabric for word, fabric in words.items() if word in lower), FabricKind.INFINIBAND)
    return Node(
        name="observed",
        provider="-",
        accelerator=accelerator.name,
        accelerators=per_node,
        scale_up_domain=domain,
        nics=per_node,
        nic_bits_per_s=bits,
        fabric=kind,
    )


def _options(job: Job, observed: TrainingRun) -> tuple[list[dict[str, int]], list[str]]:
    """Every layout that a run may have had, with what is assumed."""
    world, assumed = observed.whole("n_gpus"), list[str]()
    degrees = [n for n in ("tp", "cp", "pp") if observed.number(n)]
    fixed = _given(observed, assumed)
    choices = [fixed]
    if not degrees and not observed.number("dp"):
        assumed.append("layout: the best legal one")
        choices = list(_legal(job, world))
    elif len(degrees) < 3:  # noqa: PLR2004 - tp, cp, pp
        assumed.append("degrees not given: 1")
    recompute = observed.text("recompute")
    kinds = [RECOMPUTES.index(recompute)] if recompute in RECOMPUTES else [0, 1, 2]
    if _offloads(observed):
        kinds = [0]
        assumed.append("recompute: none, activations of half the layers go to the Grace's memory")
    if len(kinds) > 1:
        assumed.append("recompute: the least that fits")
    sharding = observed.text("sharding")
    code = (
        SHARDINGS.index(sharding) if sharding in SHARDINGS else (SHARDINGS.index("distopt") if len(choices) > 1 else 0)
    )
    found = []
    for choice, kind in itertools.product(choices, kinds):
        dp = observed.whole("dp") or max(world // (choice["tp"] * choice["cp"] * choice["pp"]), 1)
        for mbs, gbs in _batches(observed, dp):
            found.append(
                {**choice, "dp": dp, "micro_batch": mbs, "global_batch": gbs, "sharding": code, "recompute": kind}
            )
    if _splits_local_batch(observed):
        assumed.append("micro-batch: the local batch is split over the pipeline")
    if _packs(observed):
        assumed.append(f"samples of {PACKED_SAMPLE} tokens, packed")
    if not observed.number("mbs"):
        assumed.append("micro-batch: the largest that fits")
    return found, assumed


def _given(observed: TrainingRun, assumed: list[str]) -> dict[str, int]:
    """The degrees that a run's table gives, and what it leaves to be told from the rest."""
    fixed = {n: observed.whole(n, 1) for n in ("tp", "cp", "pp", "vpp", "ep")}
    if not observed.number("pp") and observed.number("dp"):
        rest, over = divmod(observed.whole("n_gpus"), fixed["tp"] * fixed["cp"] * observed.whole("dp"))
        if rest > 1 and not over:
            assumed.append("pipeline: the accelerators that the other degrees leave")
            fixed["pp"] = rest
    if fixed["pp"] > 1 and not observed.number("vpp") and re.search(r"(?i)(^|; )interleaved", observed.text("notes")):
        assumed.append("interleaved pipeline: two chunks a stage")
        fixed["vpp"] = 2
    return fixed


def _legal(job: Job, world: int) -> Iterator[dict[str, int]]:
    for tp, pp in itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16)):
        if (
            world % (tp * pp) == 0
            and job.model.heads % tp == 0
            and job.model.layers % pp == 0
            and tp <= job.node.accelerators
        ):
            ep = 1
            while job.model.experts and ep * 2 <= min(8, world // pp) and job.model.experts % (ep * 2) == 0:
                ep *= 2
            yield {"tp": tp, "cp": 1, "pp": pp, "vpp": 1, "ep": ep}


def _splits_local_batch(observed: TrainingRun) -> bool:
    """Whether the printed batch is the rank's local batch, which torchtitan's pipeline runs one sequence at a time."""
    return "torchtitan" in observed.text("framework").lower() and observed.whole("pp", 1) > 1


def _batches(observed: TrainingRun, dp: int) -> Iterator[tuple[int, int]]:
    gbs = observed.whole("gbs") or observed.whole("mbs") * dp
    if observed.number("mbs"):
        local = observed.whole("mbs")
        if _splits_local_batch(observed):
            local = max(local // observed.whole("pp"), 1) if observed.year < PIPELINE_SPLIT_UNTIL else 1
        yield local, gbs
        return
    each = max(gbs // dp, 1)
    yield from ((mbs, gbs) for mbs in (1, 2, 4, 8, 16, 32, 64) if each % mbs == 0)


def _score(
    job: Job, same: list[TrainingRun], calibration: Calibration | None, efficiency: Efficiency | None
) -> Iterator[Scored]:
    options = [_options(job, observed) for observed in same]
    flat = [choice for choices, _ in options for choice in choices]
    lay = Layouts(**{name: np.array([choice[name] for choice in flat], dtype=np.int64) for name in COLUMNS})
    found = run(job, lay, calibration, efficiency)
    start = 0
    for observed, (choices, assumed) in zip(same, options, strict=True):
        best = start + _pick(job, observed, found, lay, slice(start, start + len(choices)))
        start += len(choices)
        memory = float(found.memory_bytes[best])
        if observed.text("mem_kind") not in ("allocated", "device"):
            memory = float(reserved_bytes(job, found.memory_parts)[best])
        elif observed.text("mem_kind") == "device":
            memory = float(device_bytes(job, lay, found.memory_parts)[best])
        yield Scored(
            observed,
            float(found.step_time_s[best]),
            float(found.low_s[best]),
            float(found.high_s[best]),
            memory / GIB,
            tuple(assumed),
            {name: float(seconds[best]) for name, seconds in found.parts.items()},
            {name: float(part[best]) for name, part in found.memory_parts.items()},
            (job, lay, best),
        )


def _pick(job: Job, observed: TrainingRun, found: Estimates, lay: Layouts, part: slice) -> int:
    """Which option is meant: the fastest that fits; with a layout, the least recompute, the largest micro-batch.

    A run that fits by no option did fit: then the states are estimated too large, which says nothing of recompute.
    """
    fits = found.memory_bytes[part] <= RAN_IN * job.accelerator.memory_bytes
    if not any(observed.number(n) for n in ("tp", "cp", "pp", "dp")):
        if not fits.any():
            return int(np.argmin(found.memory_bytes[part]))
        return int(np.argmin(np.where(fits, found.step_time_s[part], np.inf)))
    if not fits.any():
        fits = lay.micro_batch[part] == lay.micro_batch[part].min()
    order = lay.recompute[part] * 1000 - lay.micro_batch[part]
    return int(np.argmin(np.where(fits, order, 10**9)))
