"""What a target is: its name, what it covers, the keys it reads, and how it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusterwright.emitters.bundle import Bundle
    from clusterwright.emitters.job import Job


@dataclass(frozen=True)
class Target:
    """One reader of files, and how to write for it."""

    name: str
    covers: str
    needs: tuple[str, ...]
    """Keys it cannot do without. Network keys are wanted only where the nodes talk through such a network."""
    takes: tuple[str, ...]
    """Keys it can use beside."""
    write: Callable[[Job], Bundle]
