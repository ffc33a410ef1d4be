"""Every code of the driver's catalogue leads to the action that the catalogue names, unless the line says otherwise."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis, Finding

KNOWLEDGE = load_faults()
LINE = "NVRM: Xid (PCI:0000:5e:00): {}, pid=7, name=python3, {}\n"
RESTART = (
    8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89, 94,
    *range(96, 106), *range(126, 136), 139, 142,
)  # fmt: skip
RESET = (46, 48, 62, 63, 74, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158, 167, 168, 169, 171, 172)
WATCH = (37, 38, 43, 44, 45, 66, 67, 92, 93, 121, 137, 141, 152, 153, 157, 159, 160, 161, 163, 164, 165, 166, 170)
WORD = (144, 145, 146, 147, 148, 149, 150)
OTHER = {54: "drain-and-replace", 64: "drain-and-replace", 78: "fix-config", 79: "reboot-node", 151: "reboot-node"}
REMARK = (106, 107, 162)


def answer(code: int, words: str = "event") -> Diagnosis:
    return diagnose([io.BytesIO(LINE.format(code, words).encode())], KNOWLEDGE)


def first(code: int, words: str = "event") -> Finding:
    return answer(code, words).findings[0]


def test_the_table_holds_every_code_that_ships() -> None:
    assert sorted({*RESTART, *RESET, *WATCH, *WORD, *OTHER, *REMARK, 154}) == sorted(xid.code for xid in KNOWLEDGE.xids)


@pytest.mark.parametrize(
    ("code", "action"),
    [
        *((code, "restart-job") for code in RESTART), *((code, "reset-accelerator") for code in RESET),
        *((code, "investigate") for code in WATCH), *OTHER.items(),
    ],
)  # fmt: skip
def test_a_code_leads_to_the_action_of_its_catalogue(code: int, action: str) -> None:
    assert (first(code).action, first(code).where.accelerator) == (action, "0000:5e:00.0")


@pytest.mark.parametrize("code", WORD)
@pytest.mark.parametrize(("word", "action"), [("Fatal", "reset-accelerator"), ("Nonfatal", "investigate")])
def test_the_word_of_the_line_decides_for_the_fifth_nvlink(code: int, word: str, action: str) -> None:
    found = first(code, f"UNIT {word} XC0 i0 Link 03 (0x1 0x2)")
    assert found.action == action
    assert "the other end of this link" in found.because


@pytest.mark.parametrize("code", REMARK)
def test_a_remark_is_no_fault(code: int) -> None:
    assert answer(code).verdict != "fault"


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("(None) to 0x1 (GPU Reset Required)", "reset-accelerator"),
        ("(None) to 0x2 (Node Reboot Required)", "reboot-node"), ("(None) to 0x3 (Drain P2P)", "investigate"),
        ("(None) to 0x4 (Drain and Reset)", "reset-accelerator"),
    ],
)  # fmt: skip
def test_the_recovery_action_is_taken_from_the_text(words: str, action: str) -> None:
    assert first(154, f"GPU recovery action changed from 0x0 {words}").action == action


def test_a_recovery_that_is_over_asks_for_nothing() -> None:
    assert answer(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)").findings == ()


@pytest.mark.parametrize("code", [61, 999])
def test_a_code_that_the_catalogue_lacks_is_told_and_nothing_is_claimed(code: int) -> None:
    said = answer(code)
    assert (said.verdict, said.findings[0].action) == ("unknown", "investigate")


def test_a_line_is_not_counted_as_its_own_echo() -> None:
    found = first(79, "GPU has fallen off the bus.")
    assert (len(found.evidence), found.echoes) == (1, ())
