"""Reading logs as a stream: only lines that hold a wanted word come out; memory stays constant."""

from __future__ import annotations

import codecs
import gzip
import io
import stat
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from clusterwright.errors import InputError
from clusterwright.probes.recorder import MOST_BYTES, Dump, dump_of, looks_like_dump
from clusterwright.probes.repeats import Repeats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CHUNK_BYTES = 1 << 20
LONG_LINE_BYTES = 8 << 10
"""A longer line is cut to this much around the word that was found."""
CONTEXT_LINES = 3
CONTEXT_BYTES = 1024
"""So much before a line is kept with it."""
SAMPLE_LINES = 200
"""So many first lines of every file come out whatever they hold, to tell what kind of output it is."""
TAIL_LINES = 600
"""So many last lines too: how far each rank got, and what it said last."""
TAIL_BYTES = 256 << 10
STANDARD_INPUT = "-"


STORM_LINES = 1000
"""So many wanted lines in one chunk are a storm: from there on, lines of a form that is known are only counted."""


@dataclass(slots=True)
class Line:
    """One line that holds a wanted word, and a piece of the text before it."""

    file: str
    number: int
    raw: bytes
    piece: bytes = b""
    last: tuple[bytes, ...] = ()
    """The lines before the chunk."""
    form: bytes | None = None
    """The line without what changes from line to line; None outside a storm."""

    @property
    def before(self) -> tuple[bytes, ...]:
        """The few lines before this one."""
        return (*self.last, *_tail(self.piece))[-CONTEXT_LINES:]


@dataclass(slots=True)
class Reader:
    """Reads files, folders, gzip and standard input; keeps what it could not read."""

    wanted: Any
    """Compiled pattern of the wanted words."""
    progress: Callable[[int], None] | None = None
    repeats: Repeats = field(default_factory=Repeats)
    dumps: list[Dump] = field(default_factory=list)
    """Dumps of flight recorders, which are no lines."""
    bytes_read: int = 0
    files: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def lines(self, paths: Iterable[str | Path | IO[bytes]]) -> Iterator[Line]:
        """Every wanted line of every path, in the order given.

        Raises:
            InputError: a path does not exist.
        """
        for path in paths:
            if not isinstance(path, str | Path):
                yield from self._stream(path, str(getattr(path, "name", "stream")))
            elif str(path) == STANDARD_INPUT:
                yield from self._stream(sys.stdin.buffer, STANDARD_INPUT)
            else:
                for file in _files(Path(path)):
                    yield from self._file(file)

    def _file(self, path: Path) -> Iterator[Line]:
        try:
            with path.open("rb") as handle:
                yield from self._stream(handle, str(path))
        except OSError as error:
            self.unreadable.append(f"{path}: cannot be read ({error.strerror or error})")

    def _stream(self, handle: IO[bytes], name: str) -> Iterator[Line]:
        self.files.append(name)
        number, carry, recent = 1, b"", b""
        last: tuple[bytes, ...] = ()
        given: deque[int] = deque(maxlen=TAIL_LINES)
        try:
            for data in self._text(handle, name):
                buffer = carry + data
                end = buffer.rfind(b"\n") + 1
                if not end and len(buffer) < CHUNK_BYTES:
                    carry = buffer
                    continue
                body, carry = (buffer[:end], buffer[end:]) if end else (buffer, b"")
                yield from _noted(self._body(body, name, number, last), given)
                number += body.count(b"\n")
                last, recent = _tail(body), (recent[-TAIL_BYTES:] + body)[-TAIL_BYTES:]
        except (OSError, EOFError, ValueError) as error:
            self.unreadable.append(f"{name}: cannot be read ({getattr(error, 'strerror', None) or error})")
        yield from _noted(self._body(carry, name, number, last), given)
        yield from _last(self.wanted, recent + carry, name, number, given)

    def _body(self, body: bytes, name: str, number: int, last: tuple[bytes, ...]) -> Iterator[Line]:
        offset = 0
        while number <= SAMPLE_LINES and 0 <= (end := body.find(b"\n", offset)) - offset <= LONG_LINE_BYTES:
            yield Line(name, number, body[offset:end].rstrip(), _piece(body, offset), last)
            offset, number = end + 1, number + 1
        if not self.repeats.storm:
            wanted = _wanted(self.wanted, body, name, number, last, offset)
            for count, (line, position, after) in enumerate(wanted):
                yield line
                if count >= STORM_LINES and len(body) - position > LONG_LINE_BYTES:
                    offset, number = position, after
                    break
            else:
                return
        yield from self._storm(body, name, number, last, offset)

    def _storm(self, body: bytes, name: str, number: int, last: tuple[bytes, ...], offset: int) -> Iterator[Line]:
        """Wanted lines of a form not seen before; those of a known form are counted and passed over."""
        known, count = self.repeats.known, 0
        rest = body[offset:]
        lines = rest.split(b"\n")
        for index, (raw, form) in enumerate(zip(lines, self.repeats.forms(rest), strict=True)):
            repeat = known.get(form)
            if repeat is not None:
                repeat.count += 1
                count += 1
            elif (match := self.wanted.search(raw)) is not None:
                count += 1
                cut = max(0, match.start() - LONG_LINE_BYTES // 2) if len(raw) > LONG_LINE_BYTES else 0
                before = b"\n".join(lines[max(0, index - CONTEXT_LINES) : index])
                yield Line(
                    name, number + index, raw[cut : cut + LONG_LINE_BYTES].rstrip(), before,
                    last if index < CONTEXT_LINES else (), form,
                )  # fmt: skip
        self.repeats.storm = count >= STORM_LINES // 2

    def _text(self, handle: IO[bytes], name: str) -> Iterator[bytes]:
        """The bytes as UTF-8 or as they are: unzipped, UTF-16 decoded, NUL bytes and carriage returns blanked."""
        data = handle.read(CHUNK_BYTES)
        self._count(data)
        if data.startswith(b"\x1f\x8b"):
            yield from self._unzipped(_Rest(data, handle))
            return
        if looks_like_dump(data) and self._dump(data, handle, name):
            return
        decoder = _utf16(data)
        while data:
            if decoder is not None:
                data = decoder.decode(data).encode("utf-8", "replace")
            yield data.replace(b"\0", b" ").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            data = handle.read(CHUNK_BYTES)
            self._count(data)

    def _dump(self, data: bytes, handle: IO[bytes], name: str) -> bool:
        """Read a dump whole; whether it was one."""
        data += handle.read(MOST_BYTES - len(data))
        if (dump := dump_of(data, name)) is None:
            msg = "neither a dump that can be read nor a log"
            raise ValueError(msg)
        self.dumps.append(dump)
        return True

    def _unzipped(self, rest: _Rest) -> Iterator[bytes]:
        with gzip.GzipFile(fileobj=io.BufferedReader(rest)) as handle:
            while data := handle.read1(CHUNK_BYTES):
                self._count(data)
                yield data.replace(b"\0", b" ").replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _count(self, data: bytes) -> None:
        self.bytes_read += len(data)
        if self.progress is not None:
            self.progress(len(data))


class _Rest(io.RawIOBase):
    """A stream whose first bytes have been read already."""

    def __init__(self, first: bytes, rest: IO[bytes]) -> None:
        self.first, self.rest = first, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a writable buffer
        data = self.first[: len(buffer)] or self.rest.read(len(buffer))
        self.first = self.first[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def _files(path: Path) -> list[Path]:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        msg = f"{path}: no such file" if isinstance(error, FileNotFoundError) else f"{path}: cannot be read ({error})"
        raise InputError(msg) from None
    if not stat.S_ISDIR(mode):
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file())


def _utf16(data: bytes) -> codecs.IncrementalDecoder | None:
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            return codecs.getincrementaldecoder(name)("replace")
    head = data[:64]
    if len(head) >= 8 and head[1::2].count(0) == len(head[1::2]) and 0 not in head[::2]:  # noqa: PLR2004 - too short to tell
        return codecs.getincrementaldecoder("utf-16-le")("replace")
    return None


def _wanted(
    wanted: Any,  # noqa: ANN401 - re2 has no types
    body: bytes,
    name: str,
    number: int,
    last: tuple[bytes, ...],
    offset: int,
) -> Iterator[tuple[Line, int, int]]:
    """Wanted lines from the offset on, each with the place after it and the number of the line there."""
    position, counted = offset, offset
    while (match := wanted.search(body, position)) is not None:
        at = match.start()
        start, end = body.rfind(b"\n", 0, at) + 1, body.find(b"\n", at)
        end = len(body) if end < 0 else end
        number += body.count(b"\n", counted, start)
        counted = start
        if end - start > LONG_LINE_BYTES:
            raw = body[max(start, at - LONG_LINE_BYTES // 2) : at + LONG_LINE_BYTES // 2]
            position = min(end, at + LONG_LINE_BYTES // 2)
            yield Line(name, number, raw.rstrip(), _piece(body, start), last), position, number
        else:
            position = end + 1
            yield Line(name, number, body[start:end].rstrip(), _piece(body, start), last), position, number + 1
        if position >= len(body):
            return


def _noted(lines: Iterator[Line], given: deque[int]) -> Iterator[Line]:
    for line in lines:
        given.append(line.number)
        yield line


def _last(wanted: Any, text: bytes, name: str, number: int, given: deque[int]) -> Iterator[Line]:  # noqa: ANN401 - re2 has no types
    """The last lines of a file, the end of which is in line `number`, but for those that came out or were counted."""
    lines, out = text.split(b"\n"), set(given)
    whole = 0 if number < len(lines) + 1 else 1
    for index in range(max(whole, len(lines) - TAIL_LINES), len(lines)):
        at = number - (len(lines) - 1 - index)
        if at not in out and 0 < len(lines[index]) <= LONG_LINE_BYTES and wanted.search(lines[index]) is None:
            before = b"\n".join(lines[max(0, index - CONTEXT_LINES) : index])
            yield Line(name, at, lines[index].rstrip(), before)


def _piece(body: bytes, start: int) -> bytes:
    return body[max(0, start - CONTEXT_BYTES) : start]


def _tail(body: bytes) -> tuple[bytes, ...]:
    return tuple(body[-2048:].rstrip(b"\n").split(b"\n")[-CONTEXT_LINES:])
