"""``clusterwright schedule`` as scripts and people use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterwright import cli

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schedule.md"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["schedule", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def rows(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    run(*arguments, "--format", "json")
    return {row["policy"]: row for row in json.loads(capsys.readouterr().out)["policies"]}


def test_the_example_shows_the_deadlock_and_that_gangs_have_none(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys)
    assert {"piecemeal": True, "gang": False, "backfill": False, "topology": False} == {
        name: row["deadlock"] for name, row in found.items()
    }
    assert ["a", "b"] == found["piecemeal"]["stuck"]
    assert [0.0, 3600.0] == [job["start_s"] for job in found["gang"]["ran"]]


def test_a_deadlock_is_bad_news_only_where_nothing_else_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert [0, 1, 0] == [run(), run("--policy", "piecemeal"), run("--policy", "piecemeal", "--nodes", "96")]
    assert "for ever" in capsys.readouterr().out


def test_jobs_come_from_a_file_and_idle_nodes_have_their_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,nodes,run_s,submitted_s\nruns,40,3600,0\nwaits,48,60,1\n", encoding="utf-8")
    found = rows(capsys, str(jobs), "--usd-per-node-hour", "10")
    assert found["piecemeal"]["held_usd"] == pytest.approx(24 * 10.0, rel=0.001)
    assert 0.0 == found["gang"]["held_usd"]


@pytest.mark.parametrize(
    ("text", "said"), [("name,nodes,run_s\na,65,60\n", "asks for 65 of 64"), ("name\n", "nodes, run_s is missing")]
)
def test_a_wrong_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(text, encoding="utf-8")
    assert 2 == run(str(jobs))
    told = capsys.readouterr()
    assert "" == told.out
    assert said in told.err
    assert 1 == len(told.err.strip().splitlines())


EXAMPLE = Path(__file__).parents[2] / "examples" / "queue" / "jobs.csv"


def test_on_the_example_backfill_waits_less_and_topology_spreads_less(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(capsys, str(EXAMPLE), "--nodes", "96", "--leaf-nodes", "16")
    assert found["piecemeal"]["deadlock"]
    assert found["backfill"]["mean_wait_s"] < found["gang"]["mean_wait_s"] / 2
    assert 1.0 == found["topology"]["leaves_over_fewest"]
    assert found["topology"]["mean_wait_s"] <= found["backfill"]["mean_wait_s"]


@pytest.mark.parametrize("asked", [(), (str(EXAMPLE), "--nodes", "96", "--leaf-nodes", "16")])
def test_the_words_fit_a_hundred_columns(capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]) -> None:
    run(*asked)
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= 100


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    shown = PAGE.read_text("utf-8").split("$ clusterwright schedule\n")[1].split("...")[0]
    assert capsys.readouterr().out.startswith(shown)
