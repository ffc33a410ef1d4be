"""The commands that the documentation shows do what it says."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def commands_in(page: Path) -> list[list[str]]:
    """The `clusterwright` commands of a page, in order."""
    lines = [line for block in BLOCK.findall(page.read_text("utf-8")) for line in block.splitlines()]
    return [shlex.split(line[2:]) for line in lines if line.startswith("$ clusterwright")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_the_commands_that_a_page_shows_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = commands_in(page)
    assert commands
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "clusterwright.cli", *command[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (0, command) == (done.returncode, command), done.stderr


@pytest.mark.parametrize("page", PAGES[:2], ids=lambda p: p.stem)
def test_the_python_that_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(page), "exec"), {})  # noqa: S102 - our own page
