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


def test_a_sound_test_passes_in_both(tmp_path: Path) -> None:
    assert outcome(tmp_path, ci=False).startswith("1 passed")
    assert outcome(tmp_path, ci=True).startswith("1 passed")
