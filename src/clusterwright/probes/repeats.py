"""Storms: lines of one form are read once and then counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

KEPT_FORMS = 20_000
"""Forms kept at a time; beyond it they are forgotten and learned anew."""
LONG_NUMBER = 5
"""Digits from which a number is a count, an identifier or an address that changes from line to line."""
HEX_DIGITS = 16
SECOND_DIGITS = 6

Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Repeat:
    """How often a form came again since it was last settled, and what each of its lines adds to."""

    adds_to: tuple[Any, ...]
    count: int = 0


@dataclass(slots=True)
class Repeats:
    """The forms that have been read in this file."""

    known: dict[bytes, Repeat] = field(default_factory=dict)
    storm: bool = False

    def learn(self, form: bytes, adds_to: tuple[Any, ...]) -> None:
        """From now on, a line of this form adds one to the count of each of these."""
        if len(self.known) >= KEPT_FORMS:
            self._flush()
        self.known[form] = Repeat(adds_to)

    def settle(self) -> None:
        """Add up, and begin anew: another file may mean something else by the same form."""
        self._flush()
        self.storm = False

    def _flush(self) -> None:
        for repeat in self.known.values():
            for one in repeat.adds_to:
                one.count += repeat.count
        self.known.clear()

    @staticmethod
    def forms(body: bytes) -> list[bytes]:
        r"""The lines without times, long numbers and hexadecimal values.

        >>> Repeats.forms(b"[ 12.345678] Xid (PCI:0000:3b:00): 95, pid=123456\n04:05:06 rank 7 at 0x7f")
        [b'[ ] Xid (PCI:0000:3b:00): 95, pid=', b' rank 7 at 0x']
        """
        text = np.frombuffer(body, dtype=np.uint8)
        digit = (text - np.uint8(ord("0"))) < 10  # noqa: PLR2004 - digits wrap to 0..9
        drop = _long_numbers(text, digit) | _times(text, digit) | _hexadecimal(text, digit)
        return text[~drop].tobytes().split(b"\n")


def _long_numbers(text: npt.NDArray[np.uint8], digit: Mask) -> Mask:
    """Numbers of many digits that are not part of a name, with the seconds before their point."""
    named: Mask = _is_letter(text) | (text == ord("-")) | (text == ord("_"))
    start = digit & ~_after(digit, 1)
    inside = digit.copy()
    for back in range(1, LONG_NUMBER):
        inside &= _before(digit, back)
    long = start & inside & ~_after(named, 1)
    drop = _spread(long, digit, HEX_DIGITS)
    point = (text == ord(".")) & _before(long, 1) & _after(digit, 1)
    seconds: Mask = point
    for _ in range(SECOND_DIGITS):
        drop |= seconds
        seconds = _before(seconds, 1) & digit
    drop |= seconds
    return drop


def _times(text: npt.NDArray[np.uint8], digit: Mask) -> Mask:
    """HH:MM:SS with its fraction; not the tail of a PCI address."""
    colon = text == ord(":")
    time = digit & ~_after(digit | colon, 1)
    for place, mask in enumerate((digit, colon, digit, digit, colon, digit, digit), 1):
        time = time & _before(mask, place)
    time &= ~_before(digit | colon, 8)
    drop = time.copy()
    for place in range(1, 8):
        drop |= _after(time, place)
    comma: Mask = _after(time, 8) & ((text == ord(".")) | (text == ord(","))) & _before(digit, 1)
    drop |= comma
    drop |= _spread(_after(comma, 1) & digit, digit, LONG_NUMBER)
    return drop


def _hexadecimal(text: npt.NDArray[np.uint8], digit: Mask) -> Mask:
    """What follows 0x."""
    low = text | np.uint8(0x20)
    value = digit | ((low >= ord("a")) & (low <= ord("f")))
    begin = (low == ord("x")) & _after(text == ord("0"), 1)
    return _spread(_after(begin, 1) & value, value, HEX_DIGITS)


def _is_letter(text: npt.NDArray[np.uint8]) -> Mask:
    low = text | np.uint8(0x20)
    return (low >= ord("a")) & (low <= ord("z"))


def _spread(start: Mask, over: Mask, steps: int) -> Mask:
    """The starts and what follows each of them without a gap."""
    reached = start.copy()
    edge = start
    for _ in range(steps):
        edge = _after(edge, 1) & over
        if not edge.any():
            break
        reached |= edge
    return reached


def _after(mask: Mask, places: int) -> Mask:
    """Whether the mask holds so many places before."""
    moved = np.zeros_like(mask)
    moved[places:] = mask[:-places] if places else mask
    return moved


def _before(mask: Mask, places: int) -> Mask:
    """Whether the mask holds so many places further on."""
    moved = np.zeros_like(mask)
    moved[:-places] = mask[places:]
    return moved
