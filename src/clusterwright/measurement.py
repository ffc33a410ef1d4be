"""What we saw: observed runs, ours or published, and the calibration fitted to them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterwright.errors import InputError
from clusterwright.noun import Noun

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUIRED = ("id", "gpu", "n_gpus", "layers", "hidden", "heads", "ffn", "seq_len", "step_time_s")
"""Columns that a table of training runs must have."""
JOB_NUMBERS = (
    "layers",
    "hidden",
    "ffn",
    "gated_mlp",
    "heads",
    "kv_heads",
    "vocab",
    "seq_len",
    "moe_experts",
    "moe_topk",
    "moe_ffn",
    "params_b",
    "lora",
    "gpus_per_node",
)
"""Columns of numbers that say what was trained on which node: everything but layout, batch and result."""
_NUMBERS = (
    *JOB_NUMBERS,
    "n_gpus",
    "tp",
    "cp",
    "pp",
    "vpp",
    "ep",
    "dp",
    "mbs",
    "gbs",
    "step_time_s",
    "tokens_per_s_per_gpu",
    "peak_mem_gb",
)
_MAY_BE_ZERO = ("gated_mlp", "lora")
_TEXTS = (
    "id",
    "family",
    "split",
    "source_group",
    "framework",
    "source_date",
    "model",
    "gpu",
    "interconnect",
    "precision",
    "precision_as_printed",
    "sharding",
    "recompute",
    "mem_kind",
    "saving",
    "notes",
)
_LARGEST = 1e15


class Factor(Noun):
    """A fitted, named factor with its spread (one standard deviation of its logarithm)."""

    value: float
    spread: float = 0.0


class Like(Noun):
    """A run that was fitted to, and what a run like it gains beyond the factors."""

    weight: float
    """Logarithm of the factor on a step, faded by how unlike two runs are."""
    place: dict[str, float]
    """What the run was: its coordinates."""
    shares: dict[str, float]
    """Share of its step that each factor multiplies."""


class Calibration(Noun):
    """Fitted factors on the parts of a step as shipped; empty means as shipped."""

    compute: Factor = Factor(value=1.0)
    """Matrix products."""
    attention: Factor = Factor(value=1.0)
    memory_bound: Factor = Factor(value=1.0)
    """Kernels bound by memory, and the optimizer step."""
    recompute: Factor = Factor(value=1.0)
    head: Factor = Factor(value=1.0)
    """Output head and loss."""
    launch: Factor = Factor(value=1.0)
    """What the host takes to launch a micro-batch."""
    communication: Factor = Factor(value=1.0)
    """Exposed communication of tensor, context and expert parallelism."""
    data_parallel: Factor = Factor(value=1.0)
    pipeline: Factor = Factor(value=1.0)
    """Point-to-point communication and bubble."""
    overhead: Factor = Factor(value=1.0)
    """Fixed time of a step."""
    stragglers: Factor = Factor(value=1.0)
    like: tuple[Like, ...] = ()
    """What the factors leave, run by run."""
    unexplained: float = 0.03
    """Spread of the logarithm of a step time when a run is repeated."""
    runs: int = 0
    error_before: float | None = None
    error_after: float | None = None


@dataclass(frozen=True)
class TrainingRun:
    """One observed training run, as its table says; a number that the table leaves empty is absent."""

    texts: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)

    def text(self, column: str) -> str:
        """The text of a column, empty when absent."""
        return self.texts.get(column, "")

    def number(self, column: str) -> float | None:
        """The number of a column, none when absent."""
        return self.numbers.get(column)

    def given(self, column: str) -> float | str:
        """What a column says, number or text; empty when absent."""
        return self.numbers.get(column, self.texts.get(column, ""))

    def whole(self, column: str, default: int = 0) -> int:
        """The whole number of a column, or ``default``."""
        value = self.numbers.get(column)
        return default if value is None else round(value)

    @property
    def year(self) -> float:
        """When the run was published, in years; 2024 when nothing says so."""
        match = re.search(r"(20\d\d)(?:[-/](\d\d))?", self.text("source_date"))
        return 2024.0 if match is None else int(match[1]) + (int(match[2] or 7) - 1) / 12


def check_columns(columns: list[str] | None, path: str) -> None:
    """Refuse a table that lacks a column.

    Raises:
        InputError: names the file and every missing column.
    """
    missing = [name for name in REQUIRED if name not in (columns or [])]
    if missing:
        needed = ", ".join(REQUIRED)
        msg = f"{path}: no column {', '.join(missing)} in the header; a table of training runs needs {needed}"
        raise InputError(msg)


def read_run(row: Mapping[str, str | None]) -> TrainingRun | str:
    """A run from a row of text, or the reason why it cannot be read, naming the column.

    >>> read_run({"id": "a", "layers": "-80"})
    "layers: '-80' is not a positive number"
    """
    numbers = {}
    for column in _NUMBERS:
        text = (row.get(column) or "").strip()
        if not text:
            continue
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value > _LARGEST or value < 0 or (value == 0 and column not in _MAY_BE_ZERO):
            return f"{column}: {text!r} is not a positive number"
        numbers[column] = value
    return TrainingRun({column: (row.get(column) or "").strip() for column in _TEXTS}, numbers)
