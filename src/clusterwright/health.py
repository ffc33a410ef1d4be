"""Health: what was read, and what it means."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.noun import Noun

Health = Literal["ok", "degraded", "failed", "not_checked"]
Scope = Literal["job", "accelerator", "node", "link", "rack", "fabric", "storage", "config", "none"]
Action = Literal[
    "restart-job", "fix-config", "reset-accelerator", "reboot-node", "drain-and-replace", "call-storage",
    "call-network", "investigate", "none",
]  # fmt: skip
Confidence = Literal["certain", "likely", "unknown"]
Verdict = Literal["fault", "healthy", "unknown"]


class Where(Noun):
    """The place of a fault, as far as the text names it."""

    node: str | None = None
    accelerator: str | None = None
    """Index or PCI address."""
    port: str | None = None
    rank: str | None = None
    peer: str | None = None
    """The other end, where a line speaks of one."""

    def named(self) -> dict[str, str]:
        """The parts that are known.

        >>> Where(node="node-7", rank="3").named()
        {'node': 'node-7', 'rank': '3'}
        """
        return {key: value for key, value in self.model_dump().items() if value is not None}

    def contradicts(self, other: Where) -> bool:
        """Whether both can not be one place: they name a part of the same kind, not alike.

        An index and a PCI address of an accelerator can not be compared; the peer is not the place.

        >>> Where(node="a1", rank="3").contradicts(Where(node="a2")), Where(node="a1").contradicts(Where(rank="9"))
        (True, False)
        """
        pairs = ((getattr(self, key), getattr(other, key)) for key in ("node", "accelerator", "port", "rank"))
        return any(a and b and a != b and (":" in a) == (":" in b) for a, b in pairs)


class Evidence(Noun):
    """One line that was read: where it stands, when it was written, what it speaks of."""

    file: str
    line: int = Field(ge=1)
    text: str
    time_s: float | None = None
    """Seconds since 1970 or since boot; `clock` says which."""
    clock: str = ""
    name: str = "message"
    """A message, or the name of the reading that the line gives."""
    value: str = ""
    where: Where = Where()


class Finding(Noun):
    """What is wrong (or fine), where, why, and what to do now."""

    health: Health
    cause: str
    scope: Scope
    where: Where = Where()
    action: Action
    confidence: Confidence
    because: str
    evidence: tuple[Evidence, ...] = ()
    echoes: tuple[Evidence, ...] = ()
    count: int = 1
    """Lines that say the same."""
    source: str = ""


class Diagnosis(Noun):
    """The verdict over all that was read."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    read: tuple[str, ...] = ()
    """Kinds of output that were recognised."""
    collect: tuple[str, ...] = ()
    """What to collect next, where the text does not tell."""
    bytes_read: int = 0
    unreadable: tuple[str, ...] = ()
