"""What each target writes, kept as files so that a review shows every change; the proofs are in the other tests.

``CLUSTERWRIGHT_GOLDEN=write pytest tests/emitters/test_golden.py`` writes them anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusterwright.emitters import emit, targets
from clusterwright.emitters.door import MANIFEST
from tests.emitters.plans import fitting, mixture_of_named_hosts
from tests.emitters.readers import all_faults

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

GOLDEN = Path(__file__).parent / "golden"
SUFFIX = ".golden"
"""So that no tool takes them for its own."""


PLANS = {"": fitting, "mixture-of-named-hosts": mixture_of_named_hosts}
"""The folder of each plan; the first has one for each target."""
CASES = [(plan, target.name) for plan in PLANS for target in targets()]


@pytest.mark.parametrize(("plan", "target"), CASES, ids=[f"{target} {plan}".strip() for plan, target in CASES])
def test_a_target_writes_what_was_reviewed(plan: str, target: str) -> None:
    made, given = PLANS[plan](target)
    written = {path: text for path, text in emit(made, target, given).files.items() if path != MANIFEST}
    folder = GOLDEN / plan / target
    if os.environ.get("CLUSTERWRIGHT_GOLDEN") == "write":
        for path, text in written.items():
            place = folder / f"{path}{SUFFIX}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    kept = {p.relative_to(folder).as_posix(): p.read_text("utf-8") for p in folder.rglob("*") if p.is_file()}
    assert kept == {f"{path}{SUFFIX}": text for path, text in written.items()}


LANGUAGES = {
    "mig": "a YAML reader; mig-parted itself asks for a GPU",
    "nccl": "bash, shellcheck; NCCL itself asks for GPUs",
}
"""Targets whose own program runs only where there are accelerators, and what reads them instead."""


def read_by_language() -> list[ParameterSet]:
    found = []
    for plan, target in CASES:
        marks = [pytest.mark.reader(LANGUAGES[target], target)] if target in LANGUAGES and not plan else []
        found.append(pytest.param(plan, target, marks=marks, id=f"{target} {plan}".strip()))
    return found


@pytest.mark.parametrize(("plan", "target"), read_by_language())
def test_the_language_of_each_file_reads_it(plan: str, target: str) -> None:
    made, given = PLANS[plan](target)
    bundle = emit(made, target, given)
    assert [] == all_faults(bundle.files)
    assert plan or bundle.files
