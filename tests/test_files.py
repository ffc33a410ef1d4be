"""Nothing half-written is ever left, and what cannot be read is said in words."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from clusterwright import files
from clusterwright.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def everything_under(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    files.write_text_atomically(tmp_path / "new" / "folder" / "a.txt", "größer\n")
    assert files.read_text(tmp_path / "new" / "folder" / "a.txt") == "größer\n"
    assert {"new/folder/a.txt": "größer\n"} == everything_under(tmp_path)


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    files.write_text_atomically(tmp_path / "a", "new")
    assert {"a": "new"} == everything_under(tmp_path)


def test_a_new_file_has_the_permissions_that_the_user_asks_for(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write_text_atomically(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_folder_in_the_way_of_one_file_leaves_all_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    (tmp_path / "b").mkdir()
    with pytest.raises(InputError, match="b: is a folder, a file is wanted"):
        files.write_all_atomically({tmp_path / "a": "new", tmp_path / "b": "new", tmp_path / "c" / "d": "new"})
    assert {"a": "old"} == everything_under(tmp_path)
    assert not (tmp_path / "c").exists()


def test_a_file_in_the_way_of_a_folder_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    with pytest.raises(InputError, match="a: is a file, a folder is wanted"):
        files.write_all_atomically({tmp_path / "new" / "b": "new", tmp_path / "a" / "c": "new"})
    assert {"a": "old"} == everything_under(tmp_path)
    assert not (tmp_path / "new").exists()


def test_a_failing_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old", encoding="utf-8")
    made = []

    def full(handle: int, *_: object, **__: object) -> None:
        made.append(handle)
        os.close(handle)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        files.write_all_atomically({tmp_path / "a": "new", tmp_path / "folder" / "b": "new"})
    monkeypatch.undo()
    assert made
    assert {"a": "old"} == everything_under(tmp_path)
    assert not (tmp_path / "folder").exists()


def test_an_interrupt_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(handle: int, *_: object, **__: object) -> None:
        os.close(handle)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fdopen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_text_atomically(tmp_path / "folder" / "b", "new")
    monkeypatch.undo()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfe", "not UTF-8 text"), (b"a\0b", "holds NUL bytes, text is wanted")],
)
def test_what_is_not_text_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputError, match=f"a: {said}"):
        files.read_text(tmp_path / "a")


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbftext")
    assert files.read_text(tmp_path / "a") == "text"


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gone: no such file"):
        files.read_text(tmp_path / "gone")
    with pytest.raises(InputError, match=f"{tmp_path.name}: is a folder, a file is wanted"):
        files.read_text(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        files.read_text(str(tmp_path / "a\0b"))
