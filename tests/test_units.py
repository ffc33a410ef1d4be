"""Quantities: text with a unit at the edge, SI floats inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright import units
from clusterwright.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 s", 1.0), ("50 ms", 0.05), ("2 min", 120.0), ("1.5 h", 5400.0), ("30 days", 2592000.0), ("1 week", 604800.0),
     ("3 years", 94672800.0), ("1 day", 86400.0), ("2e3 s", 2000.0), ("1,000 s", 1000.0)],
)  # fmt: skip
def test_a_duration_is_in_seconds(text: str, seconds: float) -> None:
    assert seconds == units.parse_duration(text, where="deadline")


@pytest.mark.parametrize(
    ("text", "watts"), [("1.2 MW", 1.2e6), ("700 W", 700.0), ("40 kW", 40e3), ("1 GW", 1e9)]
)  # fmt: skip
def test_a_power_is_in_watts(text: str, watts: float) -> None:
    assert watts == units.parse_power(text, where="power")


@pytest.mark.parametrize(("text", "usd"), [("2M USD", 2e6), ("500000 USD", 5e5), ("1.5 B USD", 1.5e9), ("3kUSD", 3e3)])
def test_money_is_in_dollars(text: str, usd: float) -> None:
    assert usd == units.parse_money(text, where="budget")


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.5T", (1.5e12, False)), ("4M tokens", (4e6, True)), ("200B", (2e11, False)), ("300 tokens", (300.0, True))],
)
def test_a_count_says_whether_its_unit_was_written(text: str, value: tuple[float, bool]) -> None:
    assert value == units.parse_count(text, where="tokens")


@pytest.mark.parametrize(
    ("parse", "text", "said"),
    [
        (units.parse_duration, "30", "deadline: '30' has no unit"),
        (units.parse_duration, 30, "deadline: 30 has no unit"),
        (units.parse_duration, "30 fortnights", "deadline: '30 fortnights' has the unknown unit 'fortnights'"),
        (units.parse_duration, "soon", "deadline: 'soon' does not begin with a number"),
        (units.parse_duration, "1e999 s", "deadline: '1e999 s' is not a finite number"),
        (units.parse_money, "2M EUR", "has the unknown unit 'M EUR'; write for instance '2M USD'"),
        (units.parse_power, "1 mW", "has the unknown unit 'mW'"),
        (units.parse_rate, "40 Gb/s", "has the unknown unit 'Gb/s'"),
        (units.parse_count, "4M words", "unknown unit 'M words' in '4M words'"),
    ],
)
def test_a_wrong_quantity_is_told_with_a_right_one(
    parse: Callable[..., object], text: object, said: str
) -> None:  # fmt: skip
    with pytest.raises(InputError) as told:
        parse(text, where="deadline")
    assert said in str(told.value)
    assert "write for instance" in str(told.value) or "finite" in said


@given(st.floats(min_value=1e-3, max_value=1e9), st.sampled_from(["ms", "s", "min", "h", "days", "weeks"]))
def test_twice_the_number_is_twice_the_time(number: float, unit: str) -> None:
    once = units.parse_duration(f"{number!r} {unit}", where="deadline")
    assert 2 * once == pytest.approx(units.parse_duration(f"{2 * number!r} {unit}", where="deadline"))


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_an_error_in_words(text: str) -> None:
    for parse in (units.parse_duration, units.parse_money, units.parse_power, units.parse_rate, units.parse_count):
        said = "here: "
        try:
            parse(text, where="here")
        except InputError as error:
            said = str(error)
        assert said.startswith("here: ")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3 * units.YEAR, "3.0 years"), (7200.0, "2.0 hours"), (300.0, "5.0 minutes"), (1.5, "1.50 s"), (0.002, "2.00 ms")],
)
def test_a_duration_is_shown_as_people_say_it(seconds: float, text: str) -> None:
    assert text == units.show_duration(seconds)


@pytest.mark.parametrize(
    ("usd", "text"), [(999.4, "$999"), (45678.0, "$46K"), (1234567.0, "$1.23M"), (5.5e9, "$5.50B")]
)
def test_money_is_shown_as_people_say_it(usd: float, text: str) -> None:
    assert text == units.show_money(usd)


@pytest.mark.parametrize(("count", "text"), [(12.0, "12 B"), (6.3e5, "630.0 kB"), (8e10, "80.0 GB"), (3e12, "3.0 TB")])
def test_a_size_is_shown_in_decimal_units(count: float, text: str) -> None:
    assert text == units.show_bytes(count)
