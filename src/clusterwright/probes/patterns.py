"""RE2 patterns: matched in time linear in the text, case ignored."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import re2

if TYPE_CHECKING:
    from collections.abc import Iterable


def _options() -> Any:  # noqa: ANN401 - re2 has no types
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = 64 << 20
    return options


@functools.lru_cache(maxsize=1024)
def pattern(text: str) -> Any:  # noqa: ANN401 - re2 has no types
    """A compiled pattern over bytes.

    >>> bool(pattern("xid").search(b"NVRM: Xid"))
    True
    """
    return re2.compile(text.encode("latin-1", "replace"), _options())


def any_of(words: Iterable[str]) -> Any:  # noqa: ANN401 - re2 has no types
    """One pattern that finds the first of many literal words.

    >>> any_of(["a.b", "c"]).search(b"axb A.B").start()
    4
    """
    return pattern("|".join(re2.escape(word) for word in sorted(set(words))))


def groups(match: Any) -> dict[str, str]:  # noqa: ANN401 - re2 has no types
    """The named groups that took part, as text; `node2` stands for `node` on another branch."""
    found: dict[str, str] = {}
    for key, value in match.groupdict().items():
        if value is not None:
            found.setdefault(_text(key).rstrip("23456789"), value.decode("utf-8", "replace"))
    return found


def _text(key: str | bytes) -> str:
    return key.decode() if isinstance(key, bytes) else key
