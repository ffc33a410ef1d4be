"""Incidents that were made, so that the guilty is known: the answer names it, and never a victim."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose
from clusterwright.cli.diagnose import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusterwright.health import Diagnosis

FOLDER = Path(__file__).parent / "incidents"
LAB = Path(__file__).parents[2] / "lab" / "incidents"
KNOWLEDGE = load_faults()
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "incidents.md").read_text(encoding="utf-8")
INCIDENTS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def label(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name / "label.toml").read_text())


def check(said: Diagnosis, known: dict[str, Any]) -> None:
    first = said.findings[0] if said.findings else None
    assert said.verdict == known["verdict"]
    if known["verdict"] == "healthy":
        assert first is None
        return
    assert first is not None
    assert (first.where.node or "") == known["node"]
    assert first.action in known["actions"]
    assert any(word.lower() in f"{first.cause} {first.because}".lower() for word in known["cause_words"])
    if "rank" in known:
        assert first.where.rank == str(known["rank"])


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_guilty_of_an_incident_is_named(name: str) -> None:
    check(diagnose([FOLDER / name / "logs"], KNOWLEDGE), label(name))


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_order_of_the_files_changes_nothing(name: str) -> None:
    files = sorted((FOLDER / name / "logs").rglob("*.*"), reverse=True)
    check(diagnose(files, KNOWLEDGE), label(name))


@pytest.mark.parametrize("name", INCIDENTS)
def test_no_incident_takes_an_innocent_node_away(name: str) -> None:
    said = diagnose([FOLDER / name / "logs"], KNOWLEDGE)
    taking = {"drain-and-replace", "reboot-node", "reset-accelerator"}
    assert {finding.where.node for finding in said.findings if finding.action in taking} <= {label(name)["node"]}


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_logs_of_a_victim_alone_do_not_blame_it(name: str) -> None:
    for folder in sorted((FOLDER / name / "logs").iterdir()):
        if folder.name in {label(name)["node"], "switch"}:
            continue
        said = diagnose([folder], KNOWLEDGE)
        blamed = [one for one in said.findings if one.confidence != "unknown" and one.where.node == folder.name]
        assert not blamed, (folder.name, blamed[0].cause, blamed[0].because)


class Named(io.BytesIO):
    """A stream that has a file's name."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name


def files(name: str) -> list[Path]:
    return sorted((FOLDER / name / "logs").rglob("*.*"))


def merged(name: str, label_of: Callable[[Path], str]) -> IO[bytes]:
    """All files in one, as pdsh or srun print it: a label before every line."""
    lines = [
        f"{label_of(file)}: {line}".encode()
        for file in files(name)
        for line in file.read_text(errors="replace").splitlines()
    ]
    return Named("merged.log", b"\n".join(lines))


@pytest.mark.parametrize("name", [name for name in INCIDENTS if name not in {"barrier", "wrong-mtu"}])
def test_one_file_with_the_host_before_every_line_tells_the_same(name: str) -> None:
    check(diagnose([merged(name, lambda file: file.parent.name)], KNOWLEDGE), label(name))


@pytest.mark.parametrize(
    "name", ["silent-rank", "other-revision", "skipped-collective", "throttled-rank", "wrong-master"]
)
def test_one_file_with_the_rank_before_every_line_tells_the_same(name: str) -> None:
    check(diagnose([merged(name, lambda file: file.stem.removeprefix("rank"))], KNOWLEDGE), label(name))


@pytest.mark.parametrize("name", ["barrier", "nan-loss", "slow-disk"])
def test_where_no_line_names_a_host_the_rank_alone_is_named(name: str) -> None:
    said = diagnose([merged(name, lambda file: file.stem.removeprefix("rank"))], KNOWLEDGE)
    first = said.findings[0]
    assert (said.verdict, first.where.node) == (label(name)["verdict"], None)
    assert first.where.rank == (str(label(name)["rank"]) if "rank" in label(name) else None)


@pytest.mark.parametrize("name", INCIDENTS)
def test_files_of_one_folder_that_bear_the_node_in_their_names_tell_the_same(name: str) -> None:
    flat = [Named(f"logs/{file.stem}-{file.parent.name}.log", file.read_bytes()) for file in files(name)]
    check(diagnose(flat, KNOWLEDGE), label(name))


@pytest.mark.parametrize("name", INCIDENTS)
def test_compressed_files_tell_the_same(name: str) -> None:
    small = [Named(f"{file.relative_to(FOLDER)}.gz", gzip.compress(file.read_bytes())) for file in files(name)]
    check(diagnose(small, KNOWLEDGE), label(name))


def test_there_are_incidents_enough_of_many_kinds() -> None:
    labels = [label(name) for name in INCIDENTS]
    assert len(labels) >= 24
    assert {"fault", "healthy", "unknown"} == {known["verdict"] for known in labels}
    assert {"node2", "node3", "node4", ""} <= {known["node"] for known in labels}


REPORTS = re.findall(r"^\$ clusterwright diagnose incidents/(\S+)/logs\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("name", "shown"), REPORTS, ids=[name for name, _ in REPORTS])
def test_the_page_shows_the_reports_as_they_are_printed(name: str, shown: str) -> None:
    printed = text(diagnose([FOLDER / name / "logs"], KNOWLEDGE))
    assert shown.splitlines() == [line.rstrip() for line in printed.splitlines()]


def test_the_page_shows_three_reports_and_lists_every_incident() -> None:
    assert len(REPORTS) == 3
    listed = dict(re.findall(r"^\| ([a-z-]+) \| (.+?) \|", PAGE, re.MULTILINE))
    assert {name: label(name)["what"] for name in INCIDENTS} == {k: v for k, v in listed.items() if k != "incident"}


@pytest.mark.interpreter("CLUSTERWRIGHT_FRAMEWORKS")
def test_an_incident_that_is_made_now_is_understood(tmp_path: Path) -> None:
    python = os.environ["CLUSTERWRIGHT_FRAMEWORKS"]
    done = subprocess.run(
        [python, str(LAB / "record.py"), str(tmp_path), "killed-rank"], check=False, capture_output=True, text=True
    )
    if done.returncode == 2:
        pytest.skip(f"nodes are network namespaces: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    known = tomllib.loads((tmp_path / "killed-rank" / "label.toml").read_text())
    check(diagnose([tmp_path / "killed-rank" / "logs"], KNOWLEDGE), known)
