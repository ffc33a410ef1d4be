"""Logs are read whole, whatever their form, and only wanted lines come out."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import pytest

from clusterwright.errors import InputError
from clusterwright.probes.patterns import any_of
from clusterwright.probes.reading import LONG_LINE_BYTES, SAMPLE_LINES, TAIL_LINES, Reader

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "first\nNVRM: Xid here\nthird\n" * 3


def wanted(data: bytes) -> list[tuple[int, bytes]]:
    lines = Reader(any_of(["xid"])).lines([io.BytesIO(data)])
    return [(line.number, line.raw) for line in lines if b"Xid" in line.raw]


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(), TEXT.encode().rstrip(), TEXT.replace("\n", "\r\n").encode(), TEXT.encode("utf-16"),
        gzip.compress(TEXT.encode()), b"\xef\xbb\xbf" + TEXT.encode(), TEXT.encode("utf-16-le"),
    ],
    ids=["plain", "no last newline", "windows", "utf-16", "gzip", "byte order mark", "utf-16 without mark"],
)  # fmt: skip
def test_the_same_lines_come_out_of_every_form(data: bytes) -> None:
    assert wanted(data) == [(2, b"NVRM: Xid here"), (5, b"NVRM: Xid here"), (8, b"NVRM: Xid here")]


def test_nul_bytes_between_lines_do_not_hide_them() -> None:
    assert wanted(b"\0" * 50 + TEXT.encode())[0][1].strip() == b"NVRM: Xid here"


def test_line_numbers_hold_far_into_a_file() -> None:
    number = 400_000
    data = b"noise noise noise\n" * (number - 1) + b"NVRM: Xid here\n"
    assert wanted(data) == [(number, b"NVRM: Xid here")]


def test_a_word_in_a_line_of_megabytes_is_found_and_the_line_is_cut() -> None:
    ((_, raw),) = wanted(b"x" * 3_000_000 + b" Xid " + b"x" * 3_000_000)
    assert len(raw) <= LONG_LINE_BYTES


def test_after_the_first_lines_only_wanted_ones_come_out_and_the_last() -> None:
    lines = list(Reader(any_of(["xid"])).lines([io.BytesIO(b"noise\n" * 4000 + b"xid\n" + b"noise\n" * 4000)]))
    numbers = [line.number for line in lines]
    assert numbers == [*range(1, SAMPLE_LINES + 1), 4001, *range(8001 - TAIL_LINES + 2, 8002)]


@pytest.mark.parametrize("count", [1, 150, 300, 900, 100_000])
def test_no_line_comes_out_twice(count: int) -> None:
    text = "".join(f"line {number} xid\n" if number % 7 == 0 else f"line {number}\n" for number in range(1, count + 1))
    lines = list(Reader(any_of(["xid"])).lines([io.BytesIO(text.encode())]))
    said = [line for line in lines if line.raw]
    assert len({line.number for line in said}) == len(said)
    assert all(line.raw.split()[1] == str(line.number).encode() for line in said)


def test_a_truncated_gzip_is_read_as_far_as_it_goes_and_told() -> None:
    reader = Reader(any_of(["xid"]))
    lines = list(reader.lines([io.BytesIO(gzip.compress(TEXT.encode() * 500)[:-9])]))
    assert any(b"Xid" in line.raw for line in lines)
    assert len(reader.unreadable) == 1


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "rank1.log").write_text("Xid one\n")
    (tmp_path / "a.log").write_text("Xid two\n")
    reader = Reader(any_of(["xid"]))
    assert [line.raw for line in reader.lines([tmp_path])] == [b"Xid two", b"Xid one"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.log"):
        list(Reader(any_of(["xid"])).lines([tmp_path / "gone.log"]))
