"""A number that can explain itself."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from clusterwright.term import Kind, Term

STEP = Term(
    name="step",
    value=3.0,
    unit="s",
    parts=(
        Term(name="compute", value=2.0, unit="s", parts=(Term(name="attention", value=0.5, unit="s"),)),
        Term(name="exposed", value=1.0, unit="s", kind=Kind.FITTED),
    ),
)


def test_every_part_is_found_by_its_name() -> None:
    assert ["step", "compute", "attention", "exposed"] == STEP.names()
    assert STEP.names() == [found.name for name in STEP.names() if (found := STEP.find(name))]
    assert STEP.find("bubble") is None


def test_a_term_does_not_change_and_is_a_finite_number() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(STEP, "value", 4.0)  # noqa: B010 - past the type checker
    with pytest.raises(ValidationError, match="finite"):
        Term(name="step", value=float("nan"), unit="s")
