"""The rules that hold for every test: nothing is skipped in continuous integration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEST = """
import pytest

{module}

def test_something():
    {body}
"""


def outcome(folder: Path, *, ci: bool, module: str = "", body: str = "assert True") -> str:
    """The last line of a test run over one file, under the rules of this project."""
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "test_it.py").write_text(TEST.format(module=module, body=body), encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("CLUSTERWRIGHT_", "PYTEST_", "COV"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=folder,
        env=environment | ({"CLUSTERWRIGHT_CI": "1"} if ci else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()[-1]


SKIPS = [
    {"body": "pytest.skip('no slurmctld here')"},
    {"module": "pytest.importorskip('no_such_module')"},
    {"module": "@pytest.mark.skipif(True, reason='no slurmctld here')"},
]


@pytest.mark.parametrize("skip", SKIPS, ids=["in the test", "in the module", "by a mark"])
def test_a_skipped_test_fails_in_ci_alone(tmp_path: Path, skip: dict[str, str]) -> None:
    assert outcome(tmp_path, ci=False, **skip).startswith("1 skipped")
    assert outcome(tmp_path, ci=True, **skip).startswith(("1 failed", "1 error"))


STAND_IN = """#!/usr/bin/env bash
# In place of Python: makes environments of itself; its pip says what it is told to.
case "$*" in
  *"-m venv "*) mkdir -p "${@: -1}/bin" && cp "$0" "${@: -1}/bin/python" ;;
  *"-m pip install"*) echo "$*" >>"$ASKED"; [ -z "${SAYS:-}" ] || { echo "$SAYS"; exit 1; } ;;
  *"-m pip download"*) exit "${INDEX:-0}" ;;
esac
"""


def libraries(folder: Path, **told: str) -> tuple[int, list[str], str]:
    """Exit code, variables named, and what is said, of the script that makes the heavy libraries' environments."""
    (folder / "python").write_text(STAND_IN, encoding="utf-8")
    (folder / "python").chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERWRIGHT_")}
    place = {
        "PYTHON": str(folder / "python"),
        "ASKED": str(folder / "asked"),
        "CLUSTERWRIGHT_LIBRARIES": str(folder / "kept"),
    }
    done = subprocess.run(
        [ROOT / ".ci" / "libraries"], env={**kept, **place, **told}, capture_output=True, text=True, check=False
    )
    named = [line.removeprefix("export ").partition("=")[0] for line in done.stdout.splitlines()]
    return done.returncode, named, done.stderr


VARIABLES = [f"CLUSTERWRIGHT_{name}" for name in ("FRAMEWORKS", "SKYPILOT", "DSTACK", "RAY")]


def test_the_environments_of_heavy_libraries_are_made_once(tmp_path: Path) -> None:
    assert (0, VARIABLES) == libraries(tmp_path)[:2]
    asked = (tmp_path / "asked").read_text("utf-8")
    assert (0, VARIABLES, "") == libraries(tmp_path)
    assert asked == (tmp_path / "asked").read_text("utf-8")


def test_an_interpreter_that_the_caller_names_is_left_alone(tmp_path: Path) -> None:
    assert VARIABLES[1:] == libraries(tmp_path, CLUSTERWRIGHT_FRAMEWORKS="/mine/python")[1]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"CLUSTERWRIGHT_LIBRARIES": "none"}, "CLUSTERWRIGHT_LIBRARIES=none"),
        ({"INDEX": "1"}, "the package index does not answer"),
        ({"SAYS": "ERROR: No matching distribution found for torch==2.13.0+cpu"}, "No matching distribution"),
    ],
)
def test_a_library_that_nobody_delivers_is_named_and_fails_nothing(
    tmp_path: Path, told: dict[str, str], why: str
) -> None:
    code, named, said = libraries(tmp_path, CLUSTERWRIGHT_CI="1", **told)
    assert (0, []) == (code, named)
    assert 4 == said.count("not tested here: ")
    assert 4 == said.count(why)


def test_pins_that_cannot_be_installed_fail_in_ci_alone(tmp_path: Path) -> None:
    said = "ERROR: ResolutionImpossible"
    assert 1 == libraries(tmp_path, CLUSTERWRIGHT_CI="1", SAYS=said)[0]
    assert 0 == libraries(tmp_path, SAYS=said)[0]


def test_a_sound_test_passes_in_both(tmp_path: Path) -> None:
    assert outcome(tmp_path, ci=False).startswith("1 passed")
    assert outcome(tmp_path, ci=True).startswith("1 passed")
