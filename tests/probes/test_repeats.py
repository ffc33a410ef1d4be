"""A storm of one error is read once and then counted, and no other place is lost in it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose
from clusterwright.probes.repeats import Repeats

KNOWLEDGE = load_faults()
XID = "Jan  5 04:{:02}:{:02} {} kernel: [{}.{:06}] NVRM: Xid (PCI:0000:{}:00): 95, pid={}, Uncontained: (0x{:x})\n"


def storm(lines: int, node: str = "gpu-a7", bus: str = "5e") -> str:
    return "".join(
        XID.format(i // 60 % 60, i % 60, node, i, i * 7 % 1000000, bus, 10000 + i, i * 131) for i in range(lines)
    )


@given(st.binary(max_size=3000))
def test_the_forms_are_as_many_as_the_lines(body: bytes) -> None:
    assert len(Repeats.forms(body)) == len(body.split(b"\n"))


@given(st.lists(st.sampled_from(["a", "-", ":", "7", "123456", "0x7f", " ", "04:05:06", ".", "\n"]), max_size=60))
def test_a_form_only_ever_drops(parts: list[str]) -> None:
    for line, form in zip("".join(parts).split("\n"), Repeats.forms("".join(parts).encode()), strict=True):
        rest = iter(line)
        assert all(letter in rest for letter in form.decode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"[  12.345678] NVRM: x", b"[ 912.000001] NVRM: x"),
        (b"04:05:06 x pid=123456", b"23:59:59.123 x pid=99999"),
        (b"Xid: fault at 0x7f3c_a0", b"Xid: fault at 0x9d_a0"),
    ],
)
def test_what_changes_from_line_to_line_is_no_part_of_the_form(one: bytes, other: bytes) -> None:
    forms = [form.replace(b" ", b"") for form in Repeats.forms(one + b"\n" + other)]
    assert forms[0] == forms[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b"Xid (PCI:0000:3b:00): 79", b"Xid (PCI:0000:5e:00): 79"),
        (b"Xid (PCI:0000:12:34): 79", b"Xid (PCI:0000:12:35): 79"),
        (b"Rank 3 timed out", b"Rank 4 timed out"),
        (b"node-100234 x", b"node-100235 x"),
        (b"peer 10.0.0.7 x", b"peer 10.0.0.8 x"),
        (b"Xid (PCI:0000:3b:00): 94", b"Xid (PCI:0000:3b:00): 95"),
    ],
)
def test_what_names_a_place_or_a_code_is_part_of_the_form(one: bytes, other: bytes) -> None:
    forms = Repeats.forms(one + b"\n" + other)
    assert forms[0] != forms[1]


def test_a_storm_is_counted_to_the_last_line() -> None:
    said = diagnose([io.BytesIO(storm(30_000).encode())], KNOWLEDGE)
    assert [(finding.count, finding.where.accelerator) for finding in said.findings] == [(30_000, "0000:5e:00.0")]


def test_another_accelerator_deep_in_a_storm_is_found() -> None:
    text = storm(20_000) + storm(1, bus="9c") + storm(20_000)
    said = diagnose([io.BytesIO(text.encode())], KNOWLEDGE)
    assert {(finding.count, finding.where.accelerator) for finding in said.findings} == {
        (40_000, "0000:5e:00.0"), (1, "0000:9c:00.0"),
    }  # fmt: skip


def test_storms_of_two_files_are_counted_apart() -> None:
    texts = [storm(5_000, node="gpu-1"), storm(7_000, node="gpu-2")]
    said = diagnose([io.BytesIO(text.encode()) for text in texts], KNOWLEDGE)
    assert {(finding.count, finding.where.node) for finding in said.findings} == {(5_000, "gpu-1"), (7_000, "gpu-2")}


def test_a_heading_within_a_storm_of_readings_is_heeded() -> None:
    block = "GPU 00000000:{}:00.0\n        Pending                           : {}\n"
    text = (
        (block.format("3B", "No") + block.format("5E", "No")) * 6000
        + block.format("5E", "Yes")
        + block.format("3B", "No")
    )
    said = diagnose([io.BytesIO(text.encode())], KNOWLEDGE)
    assert [finding.where.accelerator for finding in said.findings] == ["0000:5e:00.0"]
