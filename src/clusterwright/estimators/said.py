"""What the words of an observed run say about its memory: optimizer, offload, recompute, loss, and whose peak it is."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

from clusterwright.estimators.keeping import Saving, shipped
from clusterwright.estimators.kept import MODULES

if TYPE_CHECKING:
    from collections.abc import Collection

    from clusterwright.measurement import TrainingRun

GIB, GB = float(2**30), 1e9
OPTIMIZERS = {
    r"paged[ _-]?adamw?[ _-]?8[ _-]?bit|8-bit \(paged\)": "paged-adamw-8bit",
    r"8[ _-]?bit adamw?|adamw?[ _-]?8[ _-]?bit": "adamw-8bit",
    r"precision[ _-]aware": "precision-aware",
    r"adafactor": "adafactor",
}
QUANTISED = {r"int8": "int8", r"gptq|awq": "int4", r"nf4|bnb|int4|qlora": "nf4"}
OPTIONAL_SEQUENCE_PARALLEL = ("megatron-lm", "flagscale")
"""Stacks where sequence parallelism is off unless a flag asks for it: notes that tell the flags would tell it."""
TELLING = re.compile(
    r"adam|adafactor|offload|optimizer|recompute_modules|ablation|chunked|cumulative|fus|liger|compile|flash|rank|lora|int[48]|nf4"
    r"|lengths? var"
)
"""What is in every text that tells something."""
FLAGS = tuple(field.name for field in fields(Saving) if "bool" in str(field.type))
CHOICES = {"loss": ("fused", "chunked", "whole"), "rank": ("fullest", "first", "last")}
STEPS = (
    "packed",
    "compile",
    "chunked ce",
    "activation checkpointing",
    "optimizer in backward",
    "activation offloading",
    "8-bit adamw",
)
"""torchtune's optimization flags, in the order in which its README adds one to the others."""


def saving_of(run: TrainingRun) -> Saving:
    """What a run does about memory: as its column ``saving`` says, or its model's name, precision and notes."""
    if column := run.text("saving"):
        return from_column(column)
    words = " ".join(run.text(c) for c in ("model", "precision_as_printed", "precision", "notes")).lower()
    told = any(word in run.text("framework").lower() for word in OPTIONAL_SEQUENCE_PARALLEL) and bool(run.text("notes"))
    if not (told or TELLING.search(words)):
        return Saving()
    words = _with_earlier_steps(words)
    if "single-device full" in words and (run.whole("n_gpus") > 1 or run.number("lora")):
        words = re.sub(r"single-device full[^;]*", "", words)
    facts: dict[str, Any] = {**_optimizer(run, words), **_loss(words)}
    if (modules := _modules(words)) is not None:
        facts["recomputed"] = modules
    if run.number("lora"):
        facts["quantised"] = next((name for pattern, name in QUANTISED.items() if re.search(pattern, words)), "")
    if compiled := re.search(r"\b(no )?compile\b( off)?", words):
        facts["compiled"] = not (compiled[1] or compiled[2])
    if attention := re.search(r"flash[ _-]attn=(on|off)", words):
        facts["fused_attention"] = attention[1] == "on"
    if told:
        facts["sequence_parallel"] = bool(re.search(r"seq(uence)?[ -]parallel", words))
    if length := re.search(r"lengths? var[a-z]*:? mean (\d+)", words):
        facts["mean_length"] = float(length[1])
    return Saving(rank=_rank(run, words), **facts)


def to_column(saving: Saving) -> str:
    """What a run does about memory in a column of a table: fields that are not left to the stack.

    >>> to_column(Saving(optimizer="adamw-8bit", recomputed=("mlp", "moe_act"), offload_activations=True))
    'optimizer=adamw-8bit offload_activations=yes recomputed=mlp+moe_act'
    """
    found = []
    for field in fields(Saving):
        value = getattr(saving, field.name)
        if value == field.default:
            continue
        text = "+".join(value) or "none" if isinstance(value, tuple) else str(value)
        found.append(f"{field.name}={ {'True': 'yes', 'False': 'no'}.get(text, text) }")
    return " ".join(found)


def from_column(text: str) -> Saving:
    """The inverse of `to_column`; what it does not know is left to the stack.

    >>> from_column("rank=last recomputed=none offload_optimizer=0.25 optimizer=none-such")
    Saving(optimizer='', ..., offload_optimizer=0.25, ..., recomputed=(), ..., rank='last')
    """
    words = (word.partition("=") for word in text.split())
    told = {name: _value(name, value) for name, _, value in words}
    return Saving(**{name: value for name, value in told.items() if value is not None})


def _value(name: str, text: str) -> Any:  # noqa: ANN401 - the value of any field
    """The value of a field of `Saving`; none where there is no such field or value."""
    if name in FLAGS:
        return {"yes": True, "no": False}.get(text)
    if name == "recomputed":
        modules = () if text == "none" else tuple(text.split("+"))
        return modules if all(module in MODULES for module in modules) else None
    if name == "mean_length":
        return float(text) if re.fullmatch(r"[1-9]\d{0,8}(\.\d+)?", text) else None
    if name in {"offload_optimizer", "offload_share"}:
        share = re.fullmatch(r"(0|1|0?\.\d+|1\.0+|0\.0+)", text)
        return float(text) if share else None
    table = shipped()
    tables: dict[str, Collection[str]] = {"optimizer": table.optimizer, "quantised": table.quantised, **CHOICES}
    return text if text in tables.get(name, ()) else None


def measured_memory_gib(run: TrainingRun) -> float | None:
    """The measured peak in GiB: sources print that, save those that count in GB and say so, and Megatron-Bridge's log.

    Megatron-Bridge divides by 1e9 (``report_memory`` of training/utils/train_utils.py).
    """
    value = run.number("peak_mem_gb")
    if value is None:
        return None
    said = re.search(r"\(([\d.]+) GB\)", run.text("notes"))
    decimal = "bridge" in run.text("framework").lower() or (said is not None and float(said[1]) == value)
    return value * GB / GIB if decimal else value


def _with_earlier_steps(words: str) -> str:
    """With the flags that came before, where the table adds one to the others."""
    if "cumulative flags" not in words:
        return words
    named = [i for i, step in enumerate(STEPS) if "+" + step in words]
    return words + " " + " ".join(STEPS[: max(named) + 1]) if named else words


def _optimizer(run: TrainingRun, words: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if optimizer := next((name for pattern, name in OPTIMIZERS.items() if re.search(pattern, words)), None):
        facts["optimizer"] = optimizer
    if re.search(r"optimizer[ _-]in[ _-](backward|bwd)", words):
        facts["in_backward"] = True
    if found := re.search(r"offload (\d+)pct", words):
        facts["offload_optimizer"] = int(found[1]) / 100
    elif re.search(r"cpu offload|offload(ed)? (the )?optimizer|optimizer offload", words):
        full = run.text("sharding") in ("fsdp", "zero3", "hsdp")
        facts["offload_parameters" if full else "offload_optimizer"] = True if full else 1.0
    if re.search(r"activation offload|offload(ed)? activations", words):
        facts["offload_activations"] = True
    return facts


def _loss(words: str) -> dict[str, str]:
    if re.search(r"chunked (ce|cross)", words):
        return {"loss": "chunked"}
    if "cumulative flags" in words and not re.search(r"\bq?lora\b", words):
        return {"loss": "whole"}
    return {"loss": "fused"} if re.search(r"\bce fusion|fused (ce|cross.entropy)|liger", words) else {}


def _rank(run: TrainingRun, words: str) -> Literal["fullest", "first", "last"]:
    """Whose memory is printed: Megatron writes its log on the last rank, which is of the last stage."""
    if re.search(r"\bon rank 0\b|\brank[ -]?0 (measured )?peak", words):
        return "first"
    return "last" if "logging rank" in words and "megatron" in run.text("framework").lower() else "fullest"


def _modules(words: str) -> tuple[str, ...] | None:
    """Modules that selective recompute drops, as a recipe names them."""
    found = re.search(r"recompute_modules=([a-z_+]+)", words) or re.search(r"\bablation ([a-z_+]+):", words)
    names = tuple(found[1].split("+")) if found else ()
    if names == ("none",):
        return ()
    return names if names and all(name in MODULES for name in names) else None
