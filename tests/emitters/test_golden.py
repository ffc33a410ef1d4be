"""What each target writes, kept as files so that a review shows every change; the proofs are in the other tests.

``CLUSTERWRIGHT_GOLDEN=write pytest tests/emitters/test_golden.py`` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clusterwright.emitters import emit, targets
from clusterwright.emitters.door import MANIFEST
from tests.emitters.plans import fitting

GOLDEN = Path(__file__).parent / "golden"
SUFFIX = ".golden"
"""So that no tool takes them for its own."""


@pytest.mark.parametrize("name", [target.name for target in targets()])
def test_a_target_writes_what_was_reviewed(name: str) -> None:
    plan, given = fitting(name)
    written = {path: text for path, text in emit(plan, name, given).files.items() if path != MANIFEST}
    folder = GOLDEN / name
    if os.environ.get("CLUSTERWRIGHT_GOLDEN") == "write":
        for path, text in written.items():
            place = folder / f"{path}{SUFFIX}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    kept = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in folder.rglob("*") if p.is_file()}
    assert kept == {f"{path}{SUFFIX}": text for path, text in written.items()}
