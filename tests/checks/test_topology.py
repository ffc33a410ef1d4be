"""Index and PCI address are told together, and a matrix of connections is compared with itself."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis

KNOWLEDGE = load_faults()
XID = "NVRM: Xid (PCI:0000:8b:00): 95, Uncontained\n"
TABLE = "|   {}  NVIDIA H100 80GB HBM3          On  |   00000000:{}:00.0 Off |                    0 |\n"
INDEX = {
    "table": TABLE.format(0, "04") + TABLE.format(3, "8B"),
    "query": "index, pci.bus_id, temperature.gpu\n0, 00000000:04:00.0, 35\n3, 00000000:8B:00.0, 36\n",
    "query by address": "pci.bus_id, name, index\n00000000:8B:00.0, NVIDIA H100, 3\n",
    "NCCL": "node-1:8:9 [3] NCCL INFO comm 0x1 rank 3 nranks 8 cudaDev 0 nvmlDev 3 busId 8b000 - Init COMPLETE\n",
    "listing": "Attached GPUs    : 4\n"
    + "".join(f"GPU 00000000:{bus}:00.0\n    Fan Speed\n" for bus in ("04", "1B", "5D", "8B")),
}  # fmt: skip


def answer(*texts: str) -> Diagnosis:
    return diagnose([io.BytesIO(text.encode()) for text in texts], KNOWLEDGE)


@pytest.mark.parametrize("form", INDEX)
def test_the_index_of_an_address_is_told_where_any_file_gives_it(form: str) -> None:
    said = answer(XID, INDEX[form]).findings[0]
    assert said.where.accelerator == "0000:8b:00.0"
    assert "GPU 0000:8b:00.0 is index 3 there" in said.because


def test_a_listing_of_some_accelerators_gives_no_index() -> None:
    assert (
        "is index" not in answer(XID, "Attached GPUs    : 4\nGPU 00000000:8B:00.0\n    Fan Speed\n").findings[0].because
    )


def test_without_any_table_no_index_is_told() -> None:
    assert "is index" not in answer(XID).findings[0].because


def matrix(kinds: dict[tuple[int, int], str], usual: str = "NV18", nics: tuple[str, ...] = ()) -> str:
    lines = ["\t" + "\t".join(f"GPU{i}" for i in range(8)) + "\tNIC0\tCPU Affinity"]
    for i in range(8):
        row = [" X " if i == j else kinds.get((min(i, j), max(i, j)), usual) for j in range(8)]
        lines.append(f"GPU{i}\t" + "\t".join([*row, nics[i] if nics else "PIX"]) + "\t0-31")
    return "\n".join(lines) + "\n"


def test_two_accelerators_without_the_links_of_their_siblings_are_named() -> None:
    said = answer(matrix({(2, 5): "SYS"})).findings[0]
    assert (said.where.accelerator in {"2", "5"}, said.action) == (True, "investigate")
    assert "GPU 2 and GPU 5: SYS" in said.because


def test_an_accelerator_with_fewer_links_to_all_is_named() -> None:
    assert answer(matrix({(i, 7): "NV17" for i in range(7)})).findings[0].where.accelerator == "7"


@pytest.mark.parametrize("usual", ["NV18", "SYS"])
def test_a_board_that_is_connected_alike_is_healthy(usual: str) -> None:
    assert answer(matrix({}, usual)).verdict == "healthy"


def test_pairs_by_design_are_healthy() -> None:
    assert answer(matrix({(i, i + 1): "NV4" for i in range(0, 8, 2)}, "SYS")).verdict == "healthy"


def test_an_accelerator_far_from_every_port_is_asked_after() -> None:
    said = answer(matrix({}, nics=("PIX",) * 7 + ("SYS",))).findings[0]
    assert (said.where.accelerator, said.health) == ("7", "degraded")


WIDTH = "GPU 00000000:8B:00.0\n        Link Width\n            Max        : 16x\n            Current    : {}x\n"
HEAT = "GPU 00000000:8B:00.0\n        GPU Current Temp         : {} C\n        GPU Slowdown Temp        : 89 C\n"


def test_a_link_narrower_than_it_can_be_is_asked_after() -> None:
    said = answer(WIDTH.format(8)).findings[0]
    assert (said.where.accelerator, said.action) == ("0000:8b:00.0", "investigate")
    assert answer(WIDTH.format(16)).verdict == "healthy"


def test_heat_is_judged_by_the_limit_printed_beside_it() -> None:
    assert "cooling" in answer(HEAT.format(91)).findings[0].cause
    assert answer(HEAT.format(70)).verdict == "healthy"
