"""A number that can explain itself."""

from __future__ import annotations

from enum import StrEnum

from clusterwright.noun import Noun


class Kind(StrEnum):
    """Where a figure comes from."""

    MEASURED = "measured"
    FITTED = "fitted"
    ESTIMATED = "estimated"


class Term(Noun):
    """A value with its unit, the law that gave it, its sources and the parts it is made of."""

    name: str
    value: float
    unit: str
    kind: Kind = Kind.ESTIMATED
    source: str = ""
    parts: tuple[Term, ...] = ()

    def find(self, name: str) -> Term | None:
        """The first term of that name in the tree, depth first."""
        if self.name == name:
            return self
        return next((found for part in self.parts if (found := part.find(name)) is not None), None)

    def names(self) -> list[str]:
        """Every name in the tree, depth first."""
        return [self.name, *(name for part in self.parts for name in part.names())]
