"""NVIDIA's driver messages -> facts."""

from __future__ import annotations

from clusterwright.noun import Noun
from clusterwright.probes.patterns import pattern

WORDS = ("xid (pci", "xid(pci", "xid error", "dcgm_fi_dev_xid_errors{")


class XidLine(Noun):
    """What one Xid line says by its own words."""

    code: int
    severity: str = ""
    """fatal, nonfatal or empty."""
    detail: str = ""
    previous: int | None = None
    """The Xid that a line of consequence names."""
    link: str | None = None


def xid_line(raw: bytes) -> XidLine | None:
    """Read an Xid line.

    >>> xid_line(b"NVRM: Xid (PCI:0000:3b:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13").severity
    'nonfatal'
    """
    match = pattern(r"\bXid ?\(PCI:[0-9A-Fa-f:.]+\)(?:: |:? ?)(\d+)\b,? ?(.*)").search(raw) or pattern(
        r"\bXid error:? (\d{1,3})\b(.*)|DCGM_FI_DEV_XID_ERRORS\{[^}]*\} ([1-9]\d{0,2})(?:\s|$)"
    ).search(raw)
    if match is None:
        return None
    if match.group(1) is None:
        return XidLine(code=int(match.group(3)), detail="the last code that the exporter saw")
    detail = match.group(2).decode("utf-8", "replace")
    lower = detail.lower()
    severity = "nonfatal" if "nonfatal" in lower or "non-fatal" in lower else "fatal" if "fatal" in lower else ""
    previous = pattern(r"previous Xid (\d+)").search(raw)
    link = pattern(r"\blink (\d+)").search(raw)
    return XidLine(
        code=int(match.group(1)),
        severity=severity,
        detail=detail[:200],
        previous=int(previous.group(1)) if previous else None,
        link=link.group(1).decode() if link else None,
    )
