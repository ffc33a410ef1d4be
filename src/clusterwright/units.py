"""Units: SI floats inside, text with its unit at the edge.

The aliases below name the unit of an argument: ``Seconds`` is a float or a NumPy array of any shape, in seconds.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, TypeAlias

from clusterwright.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = float | NDArray[np.floating] | NDArray[np.integer]
    Seconds: TypeAlias = Array
    Bytes: TypeAlias = Array
    BytesPerSecond: TypeAlias = Array
    Flop: TypeAlias = Array
    FlopPerSecond: TypeAlias = Array
    Watts: TypeAlias = Array
    Usd: TypeAlias = Array
    Count: TypeAlias = Array
    Share: TypeAlias = Array

GB = 1e9
GIB = float(2**30)
MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0
YEAR = 365.25 * DAY

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15}
_TIME = {
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": MINUTE,
    "minute": MINUTE,
    "h": HOUR,
    "hour": HOUR,
    "d": DAY,
    "day": DAY,
    "week": 7 * DAY,
    "month": 30.4375 * DAY,
    "year": YEAR,
}
_POWER = {"W": 1.0, "kW": 1e3, "MW": 1e6, "GW": 1e9}
_SIZE = {"MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}
_RATE = {"MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
_QUANTITY = re.compile(r"\s*([-+]?(?:[0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(.*?)\s*")


def split_quantity(text: str, *, where: str, example: str) -> tuple[float, str]:
    """The number and the unit of a text such as ``"30 days"``.

    >>> split_quantity("1.5T tokens", where="tokens", example="1.5T")
    (1.5, 'T tokens')
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        msg = f"{where}: {text!r} does not begin with a number; write for instance {example!r}"
        raise InputError(msg)
    number = float(match[1].replace(",", "").replace("_", ""))
    if not math.isfinite(number):
        msg = f"{where}: {text!r} is not a finite number"
        raise InputError(msg)
    return number, match[2]


def parse_count(text: str | float, *, where: str, unit: str = "tokens") -> tuple[float, bool]:
    """A count such as ``"1.5T"`` or ``"4M tokens"``: the value, and whether the unit was written.

    >>> parse_count("4M tokens", where="global_batch")
    (4000000.0, True)
    >>> parse_count(512, where="global_batch")
    (512.0, False)
    """
    if not isinstance(text, str):
        return float(text), False
    number, rest = split_quantity(text, where=where, example="1.5T")
    words = rest.split()
    prefix = words.pop(0) if words and words[0] in _PREFIX else ""
    if words and (len(words) > 1 or words[0].rstrip("s") != unit.rstrip("s")):
        msg = f"{where}: unknown unit {rest!r} in {text!r}; write for instance '4M {unit}'"
        raise InputError(msg)
    return number * _PREFIX[prefix], bool(words)


def _parse(text: object, units: dict[str, float], *, where: str, example: str) -> float:
    if not isinstance(text, str):
        msg = f"{where}: {text!r} has no unit; write for instance {example!r}"
        raise InputError(msg)
    number, unit = split_quantity(text, where=where, example=example)
    factor = units.get(unit, units.get(unit[:-1] if unit.endswith("s") and len(unit) > 1 else "?"))
    if factor is None:
        why = f"has no unit ({', '.join(units)})" if not unit else f"has the unknown unit {unit!r}"
        msg = f"{where}: {text!r} {why}; write for instance {example!r}"
        raise InputError(msg)
    return number * factor


def parse_duration(text: object, *, where: str) -> float:
    """A duration in seconds [s].

    >>> parse_duration("30 days", where="deadline")
    2592000.0
    """
    return _parse(text, _TIME, where=where, example="30 days")


def parse_power(text: object, *, where: str) -> float:
    """A power in watts [W].

    >>> parse_power("1.2 MW", where="power")
    1200000.0
    """
    return _parse(text, _POWER, where=where, example="1.2 MW")


def parse_rate(text: object, *, where: str) -> float:
    """A bandwidth in bytes per second [B/s].

    >>> parse_rate("40 GB/s", where="storage_write")
    40000000000.0
    """
    return _parse(text, _RATE, where=where, example="40 GB/s")


def parse_size(text: object, *, where: str) -> float:
    """A size in bytes [B].

    >>> parse_size("30 TB", where="data")
    30000000000000.0
    """
    return _parse(text, _SIZE, where=where, example="30 TB")


def parse_money(text: object, *, where: str) -> float:
    """An amount in US dollars.

    >>> parse_money("2M USD", where="budget")
    2000000.0
    """
    units = {f"{p}{gap}USD": f for p, f in _PREFIX.items() for gap in ("", " ")}
    return _parse(text, units, where=where, example="2M USD")


def show_duration(seconds: float) -> str:
    """A duration as people say it.

    >>> show_duration(45 * 86400.0)
    '45.0 days'
    """
    for unit, size in (("years", 2 * YEAR), ("days", 2 * DAY), ("hours", 2 * HOUR), ("minutes", 2 * MINUTE)):
        if seconds >= size:
            return f"{seconds / {'years': YEAR, 'days': DAY, 'hours': HOUR, 'minutes': MINUTE}[unit]:.1f} {unit}"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def show_money(usd: float) -> str:
    """An amount as people say it.

    >>> show_money(1234567.0)
    '$1.23M'
    """
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e4, "K")):
        if abs(usd) >= size:
            return f"${usd / (1e3 if letter == 'K' else size):,.{0 if letter == 'K' else 2}f}{letter}"
    return f"${usd:,.0f}"


def show_bytes(count: float) -> str:
    """A size in decimal units.

    >>> show_bytes(79.2e9)
    '79.2 GB'
    """
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"
