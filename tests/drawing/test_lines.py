"""Lines over a share."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from clusterwright.drawing.lines import Line, draw_lines

SHARES = (0.5, 1.0)


def drawn(*lines: Line) -> ET.Element:
    return ET.fromstring(draw_lines("a & b", "utilisation", "USD", SHARES, lines))  # noqa: S314 - our own drawing


def points(root: ET.Element, tag: str) -> list[list[tuple[float, float]]]:
    found = [e.attrib["points"] for e in root.iter() if e.tag.endswith(tag)]
    return [[(float(x), float(y)) for x, y in (p.split(",") for p in text.split())] for text in found]


def test_more_is_higher_and_later_is_further_right() -> None:
    ((first, second),) = points(drawn(Line("one", (1.0, 10.0))), "polyline")
    assert first[0] < second[0]
    assert first[1] > second[1]


def test_equal_factors_are_equal_steps() -> None:
    low, middle, high = (
        points(drawn(Line("a", (1.0, 1.0)), Line("b", (value, value)), Line("c", (100.0, 100.0))), "polyline")[1][0][1]
        for value in (1.0, 10.0, 100.0)
    )
    assert middle == pytest.approx((low + high) / 2, abs=0.2)


def test_a_span_is_shaded_around_its_line() -> None:
    root = drawn(Line("one", (2.0, 4.0), low=(1.0, 2.0), high=(4.0, 8.0)))
    ((line, _),) = points(root, "polyline")
    (edge,) = points(root, "polygon")
    heights = [y for x, y in edge if x == line[0]]
    assert min(heights) < line[1] < max(heights)


def test_names_are_shown_escaped_and_shortened() -> None:
    root = drawn(Line("<b>" + "x" * 80, (1.0, 2.0)))
    texts = [e.text or "" for e in root.iter() if e.tag.endswith("text")]
    assert "a & b" in texts
    assert any(text.startswith("<b>x") and text.endswith("...") for text in texts)
