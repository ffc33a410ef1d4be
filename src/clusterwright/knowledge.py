"""What is known of faults: the catalogue loads it, the doors pass it in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.health import Action, Confidence, Health, Scope
from clusterwright.noun import Noun


class Judgement(Noun):
    """What a sign means and what to do about it."""

    name: str
    cause: str
    because: str = ""
    scope: Scope
    action: Action
    confidence: Confidence = "likely"
    health: Health = "failed"
    weight: int = Field(default=2, ge=0, le=9)
    """How near to the root: 0 to 2 a cause, 3 and 4 a symptom, 5 and 6 an echo, 7 and more a remark."""
    source: str


class Fault(Judgement):
    """A fault that a line of text tells by itself."""

    words: tuple[str, ...] = Field(min_length=1)
    """Lower-case parts of the line, one of which it holds: what the prefilter looks for."""
    unless: tuple[str, ...] = ()
    """Lower-case parts of lines that are not meant: other programs that say the same in passing."""
    pattern: str
    """RE2 pattern, case ignored; groups node, accelerator, port, rank and peer name the place."""
    lookback: int = Field(default=0, ge=0, le=3)
    """Lines before, in which the place may be named."""
    example: str
    near_miss: str


class Xid(Judgement):
    """One code of the driver's error catalogue."""

    code: int


class Threshold(Judgement):
    """When a reading of a counter or a state is bad."""

    reading: str
    comparison: Literal["above", "below", "is"]
    limit: str
    example: str
    near_miss: str


class Knowledge(Noun):
    """All of it."""

    faults: tuple[Fault, ...]
    xids: tuple[Xid, ...]
    thresholds: tuple[Threshold, ...]
