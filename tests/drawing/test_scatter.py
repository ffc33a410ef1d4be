"""The scatter plot: one dot a run, where it belongs."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.drawing.scatter import Panel, draw
from clusterwright.errors import InfeasibleError

SVG = "{http://www.w3.org/2000/svg}"
VALUE = st.floats(1e-3, 1e4)


def dots_of(svg: str) -> list[tuple[float, float]]:
    """Where the dots are."""
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h.01", svg)]


@given(st.lists(st.tuples(VALUE, VALUE), min_size=1, max_size=20))
def test_every_run_is_a_dot_inside_the_frame(dots: list[tuple[float, float]]) -> None:
    svg = draw([Panel("t", "s", {"one": dots})])
    frame = next(r for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("fill") == "none")  # noqa: S314 - our own
    left, top, side = (float(frame.get(name, "nan")) for name in ("x", "y", "width"))
    drawn = dots_of(svg)
    assert len(dots) == len(drawn)
    assert all(left - 0.1 <= x <= left + side + 0.1 and top - 0.1 <= y <= top + side + 0.1 for x, y in drawn)


def test_a_run_estimated_too_slow_is_above_the_diagonal() -> None:
    exact, slow = dots_of(draw([Panel("t", "s", {"one": [(1.0, 1.0), (1.0, 2.0), (4.0, 4.0)]})]))[:2]
    assert slow[0] == exact[0]
    assert slow[1] < exact[1]


def test_a_source_has_one_colour_in_all_panels() -> None:
    panels = [Panel("a", "s", {"one": [(1.0, 1.0)], "two": [(2.0, 2.0)]}), Panel("b", "s", {"two": [(2.0, 2.0)]})]
    circles = ET.fromstring(draw(panels)).iter(f"{SVG}circle")  # noqa: S314 - our own
    assert 2 == len({circle.get("fill") for circle in circles})


def test_names_are_escaped() -> None:
    svg = draw([Panel("a < b", "s", {"x & y": [(1.0, 1.0)]})])
    assert any("x & y (1)" == text.text for text in ET.fromstring(svg).iter(f"{SVG}text"))  # noqa: S314 - our own


def test_nothing_measured_is_nothing_to_draw() -> None:
    with pytest.raises(InfeasibleError, match="nothing to draw"):
        draw([Panel("t", "s", {})])
