"""``clusterwright validate`` as scripts use it."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright import cli
from clusterwright.validation import bands

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["validate", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def table(tmp_path: Path) -> str:
    """One job of the shipped runs, in a file of its own."""
    text = (files("clusterwright.catalog") / "measurements" / "training.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    path = tmp_path / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            row for row in rows if row["source_group"] == "korthikanti2022" or row["model"] == "GPT 39.08B"
        )
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert 0 == run(*arguments, "--format=json")
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_the_layouts_of_a_job_are_ranked_when_asked(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "jobs" not in document(capsys, table)
    jobs = document(capsys, table, "--ranking")["jobs"]
    assert jobs
    assert all(-1 <= job["kendall_tau"] <= 1 and job["pick_regret"] >= 0 and job["n"] >= 4 for job in jobs)
    assert all({"job", "n", "kendall_tau", "pick_regret"} <= set(job) for job in jobs)


def test_the_text_tells_of_ranking_effects_and_coverage(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(table, "--ranking")
    text = capsys.readouterr().out
    assert "check multi-node" in text
    assert "tensor parallel 4 to 8" in text
    assert "the 80% interval holds" in text
    assert "band" not in text


@pytest.mark.parametrize(("suffix", "begin"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_a_plot_is_drawn(table: str, tmp_path: Path, suffix: str, begin: bytes) -> None:
    if suffix == "png":
        pytest.importorskip("resvg_py", reason="resvg-py draws PNG")
    assert 0 == run(table, f"--plot={tmp_path / f'a.{suffix}'}")
    assert (tmp_path / f"a.{suffix}").read_bytes().startswith(begin)


def test_a_plot_of_another_kind_is_refused(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run(table, f"--plot={tmp_path / 'a.jpg'}")
    assert ".svg or .png" in capsys.readouterr().err


def test_the_shipped_runs_fail_by_name_where_a_band_is_exceeded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bands, "shipped", lambda: {"step-by-source": {"vtrain": 0.001}})
    assert 1 == run()
    assert "worse than it was: step-by-source vtrain:" in capsys.readouterr().out
    assert 1 == run("--format=json")
    assert "step-by-source vtrain" in json.loads(capsys.readouterr().out)["worsened"][0]
