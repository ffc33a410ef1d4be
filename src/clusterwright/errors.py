"""One tree of errors: what went wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class ClusterwrightError(Exception):
    """Base of every error that is told to the user in words, without a traceback."""

    exit_code = 2


class InputError(ClusterwrightError):
    """The input is wrong, or the output cannot be written. Exit code 2."""


class InfeasibleError(ClusterwrightError):
    """Done, and the answer is bad news: nothing satisfies what was asked. Exit code 1."""

    exit_code = 1


def nearest(word: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """The known words nearest to ``word``, best first.

    >>> nearest("h100-sxn", ["h100-sxm", "h200-sxm", "l4"], limit=1)
    ['h100-sxm']
    """
    return difflib.get_close_matches(word, list(known), n=limit, cutoff=0.5)


def unknown(what: str, word: str, known: Iterable[str]) -> InputError:
    """An error for a word that is not one of ``known``, with the nearest right ones.

    >>> str(unknown("accelerator", "h100-sxn", ["h100-sxm", "l4"]))
    "unknown accelerator 'h100-sxn'; did you mean h100-sxm?"
    """
    names = sorted(known)
    near = nearest(word, names)
    if near:
        return InputError(f"unknown {what} {word!r}; did you mean {', '.join(near)}?")
    return InputError(f"unknown {what} {word!r}; known: {', '.join(names[:12])}{' ...' if len(names) > 12 else ''}")  # noqa: PLR2004 - what fits one line
