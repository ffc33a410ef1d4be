"""What an emitter gives, and the values it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Scalar: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class Noted:
    """A value with its why and where it came from; the why becomes a comment beside it."""

    value: Scalar
    why: str

    def __str__(self) -> str:
        """The value as text."""
        return str(self.value)


@dataclass(frozen=True)
class Setting:
    """An environment variable or an option of a program; a switch has no value."""

    name: str
    value: str | None
    why: str
    raw: bool = False
    """Whether the value is the shell's own text (a variable to expand) and must not be quoted."""


@dataclass(frozen=True)
class Unsupported:
    """What a target does not express, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Bundle:
    """Files by name, with what could not be expressed in them."""

    files: dict[str, str] = field(default_factory=dict)
    unsupported: tuple[Unsupported, ...] = ()
