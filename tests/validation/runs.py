"""Scored runs to judge, made up: no estimate is asked."""

from __future__ import annotations

from clusterwright.estimators.observed import Scored
from clusterwright.measurement import TrainingRun

ROW = {
    "id": "run", "model": "mine", "layers": "32", "hidden": "4096", "ffn": "14336", "gated_mlp": "1", "heads": "32",
    "kv_heads": "8", "vocab": "128256", "gpu": "h100-sxm", "precision": "bf16", "tp": "1", "cp": "1", "pp": "1",
    "sharding": "distopt", "recompute": "none",
}  # fmt: skip
"""A run as a line of a table has it, without its software, size and time."""
TEXTS = {
    "id": "one", "family": "f", "split": "check", "source_group": "s", "framework": "NeMo", "source_date": "2025-01",
    "model": "m", "gpu": "h100-sxm", "interconnect": "", "precision": "bf16", "sharding": "distopt",
    "recompute": "none", "mem_kind": "",
}  # fmt: skip
NUMBERS = {
    "layers": 32.0, "hidden": 4096.0, "n_gpus": 8.0, "gpus_per_node": 8.0, "tp": 1.0, "pp": 1.0, "dp": 8.0, "mbs": 1.0,
    "gbs": 64.0, "seq_len": 4096.0,
}  # fmt: skip


def scored(measured: float, estimated: float, *, parts: dict[str, float] | None = None, **columns: object) -> Scored:
    """A run with its measured and estimated step time [s], and what differs from the others."""
    texts = TEXTS | {k: v for k, v in columns.items() if isinstance(v, str)}
    numbers = NUMBERS | {k: float(v) for k, v in columns.items() if isinstance(v, (int, float))}
    run = TrainingRun(texts, numbers | {"step_time_s": measured})
    return Scored(run, estimated, estimated * 0.8, estimated * 1.2, 10.0, (), parts or {"work": estimated})
