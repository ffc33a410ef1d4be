"""``clusterwright compare`` as people start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

WORKLOAD = """
[model]
name = "llama-3.1-8b"

[training]
tokens = "100B"
sequence_length = 8192
global_batch = 64
framework = "megatron"

[constraints]
accelerators = ["h200-sxm"]
max_accelerators = 32
horizon = "3 years"
utilisation = 0.6
"""
WIDTH = 100


def run(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clusterwright.cli", "compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **env})


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "workload.toml"
    path.write_text(WORKLOAD, "utf-8")
    return path


@pytest.fixture(scope="module")
def document(workload: Path) -> dict[str, Any]:
    done = run(workload, "--format", "json", "--plot", workload.with_name("lines.svg"))
    assert (0, "") == (done.returncode, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_json_has_a_break_even_for_every_offer_or_says_why_not(document: dict[str, Any]) -> None:
    offers = document["offers"]
    assert {one["offer"] for one in offers} == set(document["break_even_utilisation"])
    for one in offers:
        share = one["break_even_utilisation"]
        assert share == document["break_even_utilisation"][one["offer"]]
        assert (share is None) == bool(one["break_even_reason"])
        assert share is None or 0 <= share <= 1
    cancels = [one for one in offers if one["term"] == "reserved"]
    assert cancels
    assert all(one["break_even_utilisation"] is None for one in cancels)
    assert all("utilisation cancels" in one["break_even_reason"] for one in cancels)


def test_the_range_of_utilisation_is_five_percent_to_all(document: dict[str, Any]) -> None:
    shares = document["utilisation"]
    assert (0.05, 1.0) == (shares[0], shares[-1])
    for one in (document["owned"], *document["offers"]):
        for key in ("usd_per_useful_accelerator_hour", "usd_per_year", "usd_per_job"):
            assert len(shares) == len(one[key])


def test_every_part_of_owning_is_there_with_its_sources(document: dict[str, Any]) -> None:
    parts = {"nodes", "fabric", "storage", "installation", "finance", "support", "staff", "energy", "colocation"}
    assert parts == set(document["own"]["usd_per_year"])
    assert "owning" == document["own"]["terms"]["name"]
    assert len(document["sources"]) > 5
    assert any("finance" in line for line in document["assumptions"])


def test_the_drawing_has_a_line_an_offer_and_the_span_of_owning(workload: Path, document: dict[str, Any]) -> None:
    root = ET.parse(workload.with_name("lines.svg")).getroot()  # noqa: S314 - our own drawing
    shown = {(one["provider"], one["instance"], one["term"]) for one in document["offers"]}
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert min(len(shown), 14) + 1 == tags.count("polyline")
    assert 1 == tags.count("polygon")


def test_the_text_is_for_people_at_a_hundred_columns(workload: Path) -> None:
    done = run(workload)
    assert (0, "") == (done.returncode, done.stderr)
    assert max(map(len, done.stdout.splitlines())) <= WIDTH
    for words in ("Owning", "breaks even at", "cancels", "pays back", "Assumed", "Sources"):
        assert words in done.stdout


def test_a_terminal_of_ascii_gets_it_too(workload: Path) -> None:
    done = run(workload, LC_ALL="C", LANG="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert 0 == done.returncode
    assert done.stdout.isascii()


def test_the_cluster_of_a_plan_is_compared(workload: Path) -> None:
    plan = workload.with_name("plan.json")
    command = [sys.executable, "-m", "clusterwright.cli", "plan", str(workload), "--pin", "accelerators=16"]
    subprocess.run([*command, "--out", str(plan)], check=True, capture_output=True)
    done = run(workload, "--plan", plan, "--format", "json")
    assert 0 == done.returncode
    assert 16 == json.loads(done.stdout)["accelerators"]


def test_what_cannot_be_bought_is_bad_news(workload: Path) -> None:
    done = run(workload, "--set", 'constraints.accelerators=["mi300x"]', "--format", "json")
    assert 1 == done.returncode
    assert json.loads(done.stdout)["own"] is None


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("--without", "colocatoin"), "did you mean colocation"),
        (("--plan", "nowhere.json"), "nowhere.json"),
        (("--plot", "lines.gif"), ".svg or .png"),
        (("--set", "constraints.utilisation=2"), "utilisation"),
    ],
)
def test_a_wrong_input_is_one_line_and_code_two(workload: Path, arguments: tuple[str, ...], fault: str) -> None:
    done = run(workload, *arguments)
    assert 2 == done.returncode
    assert fault in done.stderr
    assert 1 == len(done.stderr.splitlines())
    assert not Path("lines.gif").exists()


def test_nothing_feasible_ends_with_one(workload: Path) -> None:
    done = run(workload, "--set", 'constraints.deadline="1 s"')
    assert 1 == done.returncode
    assert "clusterwright plan" in done.stderr
