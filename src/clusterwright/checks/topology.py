"""Which accelerator is which: PCI address and index, and what the matrix of connections shows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from clusterwright.knowledge import Judgement

if TYPE_CHECKING:
    from clusterwright.health import Evidence, Finding

MOST = 0.75
"""Share of all pairs that must be connected alike before one that is not is odd: boards of a mixed design have less."""
FEW = 3
"""Fewer accelerators have no majority."""
NEAR = ("PIX", "PXB")
"""A network port under the same PCIe switch."""
ODD_NVLINK = Judgement(
    name="odd-nvlink",
    cause="two accelerators are not connected by the NVLinks that all their siblings have",
    because="the links are down, or the peer access is off: nvidia-smi nvlink -s of both tells",
    scope="accelerator",
    action="investigate",
    weight=2,
    source="https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/nvidia/debug.md",
)
FAR_NIC = Judgement(
    name="far-nic",
    cause="an accelerator has no network port under its own PCIe switch, its siblings have",
    because="a port is missing, or in another slot: compare with a good node of the same kind",
    scope="config",
    action="investigate",
    health="degraded",
    weight=4,
    source="https://github.com/NVIDIA/nccl/blob/5067397c2676d5aed50042fc39e5c8ee96eb0027/docs/userguide/source/troubleshooting/networking_troubleshooting.rst",
)
Together = tuple[Judgement, list["Evidence"], str]


def indexed(findings: list[Finding], readings: dict[str, list[Evidence]]) -> list[Finding]:
    """The findings, with the index beside the PCI address, or the address beside the index, where a file told both.

    Args:
        findings: Findings with their places.
        readings: Readings by name; ``gpu.index`` gives the index of a PCI address.
    """
    index = {(one.where.node, one.where.accelerator): one.value for one in readings.get("gpu.index", [])}
    listed: dict[str, list[Evidence]] = {}
    for one in readings.get("gpu.order", []):
        listed.setdefault(one.file, []).append(one)
    for ones in listed.values():
        if {one.value for one in ones} == {f"{place}/{len(ones)}" for place in range(len(ones))}:
            index |= {(one.where.node, one.where.accelerator): one.value.partition("/")[0] for one in ones}
    return [_told(finding, index) for finding in findings]


def _told(finding: Finding, index: dict[tuple[str | None, str | None], str]) -> Finding:
    name, node = finding.where.accelerator, finding.where.node
    if name is None:
        return finding
    address = ":" in name
    known = {
        (value if address else key)
        for (where, key), value in index.items()
        if (where is None or node is None or where == node) and name == (key if address else value)
    }
    if len(known) != 1:
        return finding
    said = f"{name} is index {known.pop()}" if address else f"index {name} is {known.pop()}"
    return finding.model_copy(update={"because": f"{finding.because}; GPU {said} there"})


def odd_connections(rows: list[Evidence]) -> list[Together]:
    """Pairs of a ``topo -m`` matrix that differ from the others; nothing where the board is of a mixed design."""
    files: dict[str, list[Evidence]] = {}
    for row in rows:
        files.setdefault(row.file, []).append(row)
    return [told for matrix in files.values() for told in _odd_of_one(matrix)]


def _odd_of_one(rows: list[Evidence]) -> list[Together]:
    if len({row.where.accelerator for row in rows}) != len(rows) or len(rows) < FEW:
        return []
    cells = {int(str(row.where.accelerator)): row.value.upper().split() for row in rows}
    pairs = {(i, j): row[j] for i, row in cells.items() for j in cells if j != i and j < len(row)}
    usual, count = Counter(pairs.values()).most_common(1)[0] if pairs else ("", 0)
    if not usual.startswith("NV") or count < MOST * len(pairs):
        return _far(rows, cells)
    odd = sorted({tuple(sorted(pair)) for pair, kind in pairs.items() if _links(kind) < _links(usual)})
    if not odd:
        return _far(rows, cells)
    most, _ = Counter(one for pair in odd for one in pair).most_common(1)[0]
    said = ", ".join(f"GPU {i} and GPU {j}: {pairs[i, j]}" for i, j in odd[:8])
    row = next(row for row in rows if row.where.accelerator == str(most))
    return [(ODD_NVLINK, [row], f"{said}; all others {usual}")]


def _far(rows: list[Evidence], cells: dict[int, list[str]]) -> list[Together]:
    near = {i: any(kind in NEAR for kind in row[len(cells) :]) for i, row in cells.items()}
    far = [i for i, has in near.items() if not has]
    if not far or len(far) > (1 - MOST) * len(cells):
        return []
    row = next(row for row in rows if row.where.accelerator == str(far[0]))
    return [(FAR_NIC, [row], f"GPU {', '.join(map(str, far))} of {len(cells)}")]


def _links(kind: str) -> int:
    return int(kind[2:]) if kind.startswith("NV") and kind[2:].isdigit() else 0
