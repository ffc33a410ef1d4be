"""``clusterwright plan``, ``estimate`` and ``explain`` as people start them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.cli import plan as plan_verb

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = """
[model]
name = "llama-3.1-8b"

[training]
tokens = "10B"
sequence_length = 8192
global_batch = 64
framework = "megatron"

[constraints]
accelerators = ["h100-sxm"]
max_accelerators = 32
"""
PLAIN = {"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}


def run(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clusterwright.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workload and its plan."""
    folder = tmp_path_factory.mktemp("plan")
    (folder / "workload.toml").write_text(WORKLOAD, encoding="utf-8")
    done = run("plan", folder / "workload.toml", "--out", folder / "plan.json", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "stdout.json").write_text(done.stdout, encoding="utf-8")
    return folder


def changed(folder: Path, name: str, line: str) -> Path:
    path = folder / name
    path.write_text(WORKLOAD + line + "\n", encoding="utf-8")
    return path


def test_json_is_one_document_with_the_keys_that_are_relied_on(folder: Path) -> None:
    document: dict[str, Any] = json.loads((folder / "stdout.json").read_text(encoding="utf-8"))
    assert {
        "version",
        "workload",
        "site",
        "chosen",
        "front",
        "rejected",
        "warnings",
        "sources",
        "catalogue_date",
    } <= set(document)
    chosen = document["chosen"]
    assert {
        "accelerator",
        "node",
        "nodes",
        "accelerators",
        "offer",
        "layout",
        "spares",
        "estimate",
        "fabric",
        "storage",
    } <= set(chosen)
    assert {"provider", "term", "usd_per_accelerator_hour", "seen"} <= set(chosen["offer"])
    numbers = {"step_time_s", "interval", "mfu", "tokens_per_s", "memory_bytes", "train_time_s", "goodput", "cost_usd"}
    assert numbers | {"power_w"} <= set(chosen["estimate"])
    assert math.prod(chosen["layout"][axis] for axis in ("tp", "cp", "pp", "dp")) == chosen["accelerators"]


def test_out_holds_what_was_printed(folder: Path) -> None:
    assert (folder / "stdout.json").read_text(encoding="utf-8") == (folder / "plan.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("env", [{}, PLAIN])
def test_the_page_is_a_hundred_columns_and_says_provider_term_and_day(folder: Path, env: dict[str, str]) -> None:
    done = run("plan", folder / "workload.toml", env=env)
    chosen = json.loads((folder / "plan.json").read_text(encoding="utf-8"))["chosen"]
    assert (0, "") == (done.returncode, done.stderr)
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    for word in (chosen["offer"]["provider"], chosen["offer"]["term"], chosen["offer"]["seen"], "Front", "Rejected"):
        assert word in done.stdout
    assert done.stdout.isascii() or not env


def test_an_infeasible_plan_is_bad_news_and_leaves_the_old_one(folder: Path) -> None:
    old = (folder / "plan.json").read_text(encoding="utf-8")
    path = changed(folder, "late.toml", 'deadline = "1 hour"')
    done = run("plan", path, "--out", folder / "plan.json", "--format", "json")
    document = json.loads(done.stdout)
    assert (1, None) == (done.returncode, document["chosen"])
    assert "deadline" in {r["binding_constraint"] for r in document["rejected"]}
    assert old == (folder / "plan.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--top", "-1"], "top"), (["--pin", "tpp=8"], "tpp"), (["--pin", "tp=3"], "heads"),
        (["--calibration", "gone.toml"], "gone.toml"), (["--catalog", "gone"], "gone"), (["--format", "xmll"], "json"),
        (["--set", "queue"], "section.key=value"), (["--set", "constraints.deadlin=3"], "deadline"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_in_one_line(folder: Path, options: list[str], word: str) -> None:
    done = run("plan", folder / "workload.toml", *options)
    assert (2, "") == (done.returncode, done.stdout)
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_top_limits_the_front_and_not_the_choice(folder: Path) -> None:
    done = run("plan", folder / "workload.toml", "--top", "1", "--format", "json")
    whole = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    document = json.loads(done.stdout)
    assert len(document["front"]) == 1
    assert whole["chosen"] == document["chosen"]


def estimate(folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    given = {"accelerator": "h100-sxm", "accelerators": 16, "tp": 2, "pp": 2, "recompute": "full", **options}
    return run("estimate", folder / "workload.toml", *(f"--{k.replace('_', '-')}={v}" for k, v in given.items()))


def test_an_estimate_is_a_candidate_with_its_verdict_and_its_terms(folder: Path) -> None:
    done = estimate(folder, format="json")
    document = json.loads(done.stdout)
    assert (0, True) == (done.returncode, document["fits"])
    assert 4 == document["layout"]["dp"]
    assert {"name", "value", "unit", "kind", "source", "parts"} == set(document["terms"])


def test_what_does_not_fit_is_bad_news(folder: Path) -> None:
    done = estimate(folder, accelerators=1, tp=1, pp=1, recompute="none", format="json")
    assert (1, False) == (done.returncode, json.loads(done.stdout)["fits"])
    assert "memory" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tp": 3, "accelerators": 24}, ["tp = 3", "heads = 32"]), ({"vpp": 17}, ["vpp = 17", "layers = 32"]),
        ({"pp": 5}, ["pp", "--accelerators 16"]), ({"micro_batch": 128}, ["micro_batch = 128", "global_batch = 64"]),
        ({"ep": 2}, ["ep = 2", "experts"]), ({"accelerator": "h100-sxn"}, ["h100-sxm"]), ({"tp": 0}, ["tp"]),
        ({"node": "dgx-b200"}, ["--node", "b200"]), ({"cp": 3, "accelerators": 48}, ["sequence_length", "cp = 3"]),
    ],
)  # fmt: skip
def test_an_illegal_layout_names_the_option_and_the_rule(
    folder: Path, options: dict[str, object], words: list[str]
) -> None:
    done = estimate(folder, **options)
    assert (2, "") == (done.returncode, done.stdout)
    for word in words:
        assert word in done.stderr


def test_explain_prints_the_tree_and_ends_with_the_sources(folder: Path) -> None:
    done = run("explain", folder / "plan.json")
    assert 0 == done.returncode
    for name in ("train time", "step time", "matrix products", "goodput", "price of a node", "memory"):
        assert f"{name}:" in done.stdout
    assert "https://" in done.stdout.partition("Sources")[2]


def test_explain_of_one_term_is_that_term(folder: Path) -> None:
    done = run("explain", folder / "plan.json", "goodput", "--format", "json")
    assert "goodput" == json.loads(done.stdout)["name"]


@pytest.mark.parametrize(
    ("arguments", "word"), [(["plan.json", "nosuchterm"], "nosuchterm"), (["workload.toml"], "workload.toml")]
)
def test_explain_refuses_by_name(folder: Path, arguments: list[str], word: str) -> None:
    done = run("explain", folder / arguments[0], *arguments[1:])
    assert (2, "") == (done.returncode, done.stdout)
    assert word in done.stderr


def test_the_cluster_is_drawn_with_the_plan_or_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    asked = ("plan", changed(folder, "soon.toml", 'deadline = "20 hours"'), "--out", tmp_path / "plan.json")
    assert 0 == run(*asked, "--plot", tmp_path / "cluster.svg").returncode
    assert "storage leaves" in (tmp_path / "cluster.svg").read_text("utf-8")
    (tmp_path / "plan.json").unlink()
    assert 2 == run(*asked, "--plot", tmp_path / "cluster.jpeg").returncode
    assert not (tmp_path / "plan.json").exists()


def test_a_bar_shows_only_on_a_terminal_and_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan_verb._progress() is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    patient = plan_verb._progress()
    assert patient is not None
    patient(0.5)
    assert "" == capsys.readouterr().err
    monkeypatch.setattr(plan_verb, "PATIENCE_S", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    hasty = plan_verb._progress()
    assert hasty is not None
    hasty(0.5)
    hasty(1.0)
    shown = capsys.readouterr().err
    assert " 50%" in shown
    assert shown.endswith("\r")
