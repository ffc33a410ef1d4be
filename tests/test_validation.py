"""Validation: every row is scored or skipped with a reason, and what is assumed is named."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog import load
from clusterwright.errors import InputError
from clusterwright.estimators.observed import node_of
from clusterwright.measurement import TrainingRun, check_columns, read_run
from clusterwright.validation import Scoreboard, validate

if TYPE_CHECKING:
    from pathlib import Path

ROW = {
    "id": "one",
    "family": "f",
    "split": "check",
    "source_group": "s",
    "framework": "NeMo/Megatron-Core",
    "source_date": "2024-12",
    "model": "Llama3.1-70B",
    "layers": "80",
    "hidden": "8192",
    "ffn": "28672",
    "gated_mlp": "1",
    "heads": "64",
    "kv_heads": "8",
    "vocab": "128256",
    "seq_len": "8192",
    "gpu": "h100-sxm",
    "n_gpus": "64",
    "precision": "bf16",
    "tp": "4",
    "cp": "2",
    "pp": "4",
    "vpp": "5",
    "dp": "2",
    "sharding": "distopt",
    "mbs": "1",
    "gbs": "128",
    "recompute": "none",
    "step_time_s": "14.61",
    "peak_mem_gb": "",
}


def score(folder: Path, *changes: dict[str, str]) -> Scoreboard:
    path = folder / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        for i, change in enumerate(changes):
            writer.writerow({**ROW, "id": str(i), **change})
    return validate([path], load())


def test_a_run_is_scored_within_a_tenth(tmp_path: Path) -> None:
    board = score(tmp_path, {})
    assert board.rows == 1
    assert board.scored[0].step_s == pytest.approx(14.61, rel=0.1)
    assert board.scored[0].assumptions == ()


def test_what_is_assumed_is_named(tmp_path: Path) -> None:
    board = score(tmp_path, {"recompute": "unknown", "mbs": ""}, {"tp": "", "cp": "", "pp": "", "vpp": "", "dp": ""})
    assert {a.split(":")[0] for a in board.scored[0].assumptions} == {"recompute", "micro-batch"}
    assert "layout: the best legal one" in board.scored[1].assumptions


@pytest.mark.parametrize(
    ("column", "value"), [("n_gpus", "lots"), ("layers", "-80"), ("hidden", "nan"), ("tp", "0"), ("gbs", "1e400")]
)
def test_a_bad_value_skips_its_row_by_name(tmp_path: Path, column: str, value: str) -> None:
    board = score(tmp_path, {}, {column: value})
    assert [i for i, _ in board.skipped] == ["1"]
    assert column in board.skipped[0][1]


def test_an_unknown_accelerator_skips_its_row(tmp_path: Path) -> None:
    assert "h9000" in score(tmp_path, {"gpu": "h9000"}).skipped[0][1]


def test_estimates_do_not_depend_on_names_or_measured_values(tmp_path: Path) -> None:
    board = score(tmp_path, {}, {"family": "x", "source_group": "y", "split": "fit", "step_time_s": "99", "id": "z"})
    assert board.scored[0].step_s == board.scored[1].step_s


def test_a_table_without_a_column_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="gpu"):
        check_columns([c for c in ROW if c != "gpu"], "runs.csv")


def test_a_run_keeps_what_is_given_and_nothing_else() -> None:
    observed = read_run({**ROW, "vocab": ""})
    assert isinstance(observed, TrainingRun)
    assert observed.number("vocab") is None
    assert observed.whole("layers") == 80
    assert observed.year == pytest.approx(2024 + 11 / 12)


@pytest.mark.parametrize(
    ("text", "per_accelerator", "domain"),
    [
        ("DGX/HGX-H100 NVLink4 x8 + 8x400Gb/s", 400e9, 8),
        ("inter-node 800 Gbps per node", 100e9, 8),
        ("NVL72 NVLink5 + IB", 400e9, 72),
        ("400 Gb/s RDMA per GPU (Grand Teton), NVLink in node", 400e9, 8),
        ("", 400e9, 8),
    ],
)
def test_the_node_is_read_from_the_interconnect(text: str, per_accelerator: float, domain: int) -> None:
    node = node_of(TrainingRun({"interconnect": text}), load().accelerators["h100-sxm"])
    assert node.nic_bits_per_s == per_accelerator
    assert node.scale_up_domain == domain


def test_the_scoreboard_groups_by_family_and_source(tmp_path: Path) -> None:
    board = score(tmp_path, {}, {"family": "g", "step_time_s": "7.3"})
    assert {g["family"] for g in board.groups()} == {"f", "g"}
    (source,) = board.groups(by="source_group")
    assert source["n"] == 2
    weighted = board.source_weighted()
    assert weighted == source["median_abs_error"]
    assert board.coverage() == 0.5
