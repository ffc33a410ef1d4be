"""Dumps of PyTorch's flight recorder (pickle or JSON) -> how far one rank came in every group."""

from __future__ import annotations

import io
import json
import pickle
import re
import struct
from typing import Any, NoReturn

from pydantic import Field

from clusterwright.noun import Noun

MOST_BYTES = 256 << 20
"""A larger dump is not read."""
HEAD_BYTES = 1 << 16
FILE_RANK = re.compile(r"(\d+)(?:\.\w+)*$")
BROKEN = (
    pickle.UnpicklingError, struct.error, ValueError, TypeError, KeyError, AttributeError, IndexError, EOFError,
    RecursionError, OverflowError, MemoryError,
)  # fmt: skip
"""What reading a file raises that is no dump, or no whole one."""
KEPT_CALLS = 50
"""So many last collectives of every group are kept."""


class Call(Noun):
    """One collective, as a rank recorded it."""

    name: str
    sizes: str = ""
    state: str = ""


class Group(Noun):
    """How far a rank came in one process group."""

    description: str = ""
    ranks: tuple[int, ...] = ()
    enqueued: int = -1
    completed: int = -1
    calls: dict[int, Call] = Field(default_factory=dict)


class Dump(Noun):
    """What one rank recorded."""

    file: str
    rank: int | None = None
    groups: dict[str, Group] = Field(default_factory=dict)


def looks_like_dump(head: bytes) -> bool:
    """Whether a file begins like a dump.

    >>> looks_like_dump(b'{"version": "2.4", "pg_status": {}, "entries": []}'), looks_like_dump(b"step 1 loss 2")
    (True, False)
    """
    part = head[:HEAD_BYTES]
    if part[:1] == b"\x80" and part[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}:
        return b"entries" in part or b"pg_config" in part
    return part.lstrip()[:1] == b"{" and (b'"pg_status"' in part or b'"pg_config"' in part)


def dump_of(data: bytes, file: str) -> Dump | None:
    """Read a dump without running anything that it may hold; None where it is none.

    Args:
        data: The whole file.
        file: Its name; the digits at its end are the rank.
    """
    try:
        told = _Plain(io.BytesIO(data)).load() if data[:1] == b"\x80" else json.loads(data)
        match = FILE_RANK.search(file)
        groups = _groups(told)
    except BROKEN:
        return None
    return Dump(file=file, rank=int(match.group(1)) if match else None, groups=groups)


class _Plain(pickle.Unpickler):
    """Unpickles numbers, texts, lists and dictionaries, and refuses all else."""

    def find_class(self, module: str, name: str) -> NoReturn:
        msg = f"{module}.{name} is no plain value"
        raise pickle.UnpicklingError(msg)


def _groups(told: dict[str, Any]) -> dict[str, Group]:
    config, status = told.get("pg_config") or {}, told.get("pg_status") or {}
    calls: dict[str, dict[int, Call]] = {}
    for entry in told.get("entries") or []:
        group = entry.get("process_group")
        name = str(group[0] if isinstance(group, list | tuple) and group else entry.get("pg_id", "0"))
        if not entry.get("is_p2p", False):
            kept = calls.setdefault(name, {})
            kept[int(entry.get("collective_seq_id", entry.get("seq_id", -1)))] = Call(
                name=str(entry.get("profiling_name", "")), sizes=str(entry.get("input_sizes", "")),
                state=str(entry.get("state", "")),
            )  # fmt: skip
    names = {*map(str, config), *map(str, status), *calls}
    return {name: _group(config.get(name, {}), status.get(name, {}), calls.get(name, {})) for name in names}


def _group(config: dict[str, Any], status: dict[str, Any], calls: dict[int, Call]) -> Group:
    last = dict(sorted(calls.items())[-KEPT_CALLS:])
    done = [seq for seq, call in last.items() if call.state == "completed"]
    return Group(
        description=str(config.get("desc", "")),
        ranks=tuple(int(rank) for rank in re.findall(r"\d+", str(config.get("ranks", "")))),
        enqueued=int(status.get("last_enqueued_collective", max(last, default=-1))),
        completed=int(status.get("last_completed_collective", max(done, default=-1))),
        calls=last,
    )
