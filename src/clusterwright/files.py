"""Writing and reading files so that nothing half-written is ever left."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from clusterwright.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_text(path: Path | str) -> str:
    """The UTF-8 text of a file (a byte order mark is dropped).

    Raises:
        InputError: the file is missing, a folder, unreadable, or not UTF-8; names the file.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        msg = f"{path}: no such file"
        raise InputError(msg) from None
    except IsADirectoryError:
        msg = f"{path}: is a folder, a file is wanted"
        raise InputError(msg) from None
    except UnicodeDecodeError:
        msg = f"{path}: not UTF-8 text"
        raise InputError(msg) from None
    except (OSError, ValueError) as error:
        msg = f"{path}: cannot be read ({error.strerror if isinstance(error, OSError) else error})"
        raise InputError(msg) from None
    if "\0" in text:
        msg = f"{path}: holds NUL bytes, text is wanted"
        raise InputError(msg)
    return text


def write_text_atomically(path: Path | str, text: str) -> None:
    """Write ``text`` to a temporary name beside ``path``, then rename: whole or not at all.

    Raises:
        InputError: the file cannot be written; names it.
    """
    write_all_atomically({Path(path): text})


def write_all_atomically(files: Mapping[Path, str | bytes]) -> None:
    """Write several files, all or nothing: every destination is checked and staged before the first rename.

    Text is written as UTF-8.

    Raises:
        InputError: one of them cannot be written; nothing is changed then.
    """
    made: list[Path] = []
    staged: list[tuple[str, Path]] = []
    try:
        for path in files:
            _make_parents(path, made)
            _refuse_a_folder(path)
        for path, text in files.items():
            staged.append((_stage(path, text), path))
        for temporary, path in staged:
            Path(temporary).replace(path)
    except OSError as error:
        _undo(staged, made)
        msg = f"{error.filename or next(iter(files), '')}: cannot be written ({error.strerror or error})"
        raise InputError(msg) from None
    except BaseException:
        _undo(staged, made)
        raise


def _refuse_a_folder(path: Path) -> None:
    if path.is_dir():
        msg = f"{path}: is a folder, a file is wanted"
        raise InputError(msg)


def _stage(path: Path, text: str | bytes) -> str:
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8") if isinstance(text, str) else text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    return name


def _make_parents(path: Path, made: list[Path]) -> None:
    missing = []
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                msg = f"{parent}: is a file, a folder is wanted"
                raise InputError(msg)
            break
        missing.append(parent)
    for parent in reversed(missing):
        parent.mkdir()
        made.append(parent)


def _undo(staged: list[tuple[str, Path]], made: list[Path]) -> None:
    for temporary, _ in staged:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
    for parent in reversed(made):
        with contextlib.suppress(OSError):
            parent.rmdir()
