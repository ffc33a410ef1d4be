"""The commands that the documentation shows run, and print what it shows."""

from __future__ import annotations

import difflib
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
ALIKE = 0.8
"""Share of the words of an output that must be as shown; figures move with the catalogue and the estimate."""


def load_transcripts() -> Any:  # noqa: ANN401 - a module
    spec = importlib.util.spec_from_file_location("transcripts", ROOT / "docs" / "transcripts.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRANSCRIPTS = load_transcripts()
SHOWING = [page for page in TRANSCRIPTS.PAGES if TRANSCRIPTS.BLOCK.search(page.read_text("utf-8"))]


def words(lines: list[str]) -> list[str]:
    return re.findall(r"[A-Za-z]{2,}", " ".join(lines))


@pytest.mark.parametrize("page", SHOWING, ids=lambda p: p.stem)
def test_a_page_shows_what_the_tool_prints(page: Path, tmp_path: Path) -> None:
    TRANSCRIPTS.prepare(page, tmp_path)
    blocks = TRANSCRIPTS.BLOCK.findall(page.read_text("utf-8"))
    steps = [step for block in blocks for step in TRANSCRIPTS.steps(block)]
    assert steps
    for command, shown in steps:
        printed = TRANSCRIPTS.run(command, tmp_path)
        if shown:
            expected = words(shown)
            actual = words(printed[: len(shown)] if shown[-1].strip() == "..." else printed)
            assert difflib.SequenceMatcher(None, expected, actual, autojunk=False).ratio() >= ALIKE, command


@pytest.mark.parametrize("page", TRANSCRIPTS.PAGES[:2], ids=lambda p: p.stem)
def test_the_python_that_a_page_shows_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    TRANSCRIPTS.prepare(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, str(page), "exec"), {})  # noqa: S102 - our own page
