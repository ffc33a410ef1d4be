"""``clusterwright calibrate`` as scripts use it."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from pathlib import Path

import pytest

from clusterwright import cli


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([*arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Ten of the shipped runs of one stack, in a file of their own."""
    text = (files("clusterwright.catalog") / "measurements" / "training.csv").read_text("utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["source_group"] == "simumax"]
    path = tmp_path / "runs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[::3][:10])
    return str(path)


def test_errors_and_interval_before_and_after_are_printed(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == run("calibrate", table, f"--out={tmp_path / 'c.toml'}")
    text = capsys.readouterr().out
    assert "median |e| before" in text
    assert "left out of the fit" in text
    assert "80% interval before" in text


def test_the_file_moves_what_validate_prints(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "c.toml"
    assert 0 == run("calibrate", table, f"--out={made}", "--format=json")
    told = json.loads(capsys.readouterr().out)
    assert told["median_abs_error_after"] < told["median_abs_error_before"]
    assert told["interval_half_width_after"] < told["interval_half_width_before"]
    assert 0 == run("validate", table, f"--calibration={made}", "--format=json")
    results = json.loads(capsys.readouterr().out)["results"]
    errors = [abs(r["estimated_step_s"] / r["measured_step_s"] - 1) for r in results]
    middle = sorted(errors)[4:6]
    assert sum(middle) / 2 == pytest.approx(told["median_abs_error_after"], abs=1e-3)


def test_a_table_without_a_run_to_learn_from_is_bad_news(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "none.csv"
    empty.write_text(Path(table).read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    assert 1 == run("calibrate", str(empty), f"--out={tmp_path / 'c.toml'}")
    assert "nothing to calibrate from" in capsys.readouterr().err
    assert not (tmp_path / "c.toml").exists()
