"""Draws quantities over a share from 0 to 1: one line each, the span of a line shaded, names beside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FONTS = "DejaVu Sans, Liberation Sans, Arial, Helvetica, sans-serif"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW, _LEGEND = 560.0, 400.0, 70.0, 56.0, 56.0, 340.0
"""Of the plane that the lines are in, and what is around it [pixels]."""
_COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf", "#8c564b", "#e377c2", "#bcbd22", "#3b3eac",
    "#b82e2e", "#316395", "#994499", "#22aa99",
)  # fmt: skip
_STEPS = (1.0, 2.0, 5.0)
"""Marks of a decade of the upright axis."""
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LONGEST = 44
"""Letters of a name that fit beside the plane."""


@dataclass(frozen=True)
class Line:
    """One quantity over the shares, all above zero."""

    name: str
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    """Of its span, where it has one."""
    dashed: bool = False
    thick: bool = False


@dataclass(frozen=True)
class _Plane:
    """The decades that it spans, as logarithms."""

    low: float
    high: float

    def x(self, share: float) -> float:
        return _LEFT + _WIDTH * share

    def y(self, value: float) -> float:
        return _TOP + _HEIGHT * (self.high - math.log10(value)) / (self.high - self.low)


def draw_lines(title: str, across: str, unit: str, shares: Sequence[float], lines: Sequence[Line]) -> str:
    """The lines as an SVG document, on a linear axis of shares and a logarithmic one of values.

    Args:
        title: Above the plane.
        across: Name of the shares.
        unit: Of the values.
        shares: From 0 to 1. [1]
        lines: Each with a value a share.
    """
    values = [value for line in lines for value in (*line.values, *line.low, *line.high)]
    plane = _Plane(math.log10(min(values) / 1.1), math.log10(max(values) * 1.1))
    width, height = _LEFT + _WIDTH + _LEGEND, _TOP + _HEIGHT + _BELOW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f'<g font-family="{_FONTS}" font-size="12" fill="#222222"><title>{escape(title)}</title>',
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        f'<text x="{_LEFT:g}" y="28" font-size="16">{escape(title)}</text>',
        *_axes(plane, across, unit),
    ]
    for number, line in enumerate(lines):
        parts += _draw(plane, shares, line, _COLOURS[number % len(_COLOURS)], number)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _axes(plane: _Plane, across: str, unit: str) -> Iterator[str]:
    bottom, right = _TOP + _HEIGHT, _LEFT + _WIDTH
    yield f'<text x="{_LEFT:g}" y="{_TOP - 8:g}" fill="#555555">{escape(unit)}</text>'
    for decade in range(math.floor(plane.low), math.ceil(plane.high) + 1):
        for step in _STEPS:
            value = step * 10.0**decade
            if plane.low <= math.log10(value) <= plane.high:
                y = plane.y(value)
                yield f'<line x1="{_LEFT:g}" y1="{y:.1f}" x2="{right:g}" y2="{y:.1f}" stroke="#e3e6ea"/>'
                yield f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    for share in _SHARES:
        x = plane.x(share)
        yield f'<line x1="{x:.1f}" y1="{_TOP:g}" x2="{x:.1f}" y2="{bottom:g}" stroke="#e3e6ea"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18:g}" text-anchor="middle">{share:.0%}</text>'
    yield f'<text x="{_LEFT + _WIDTH / 2:g}" y="{bottom + 40:g}" text-anchor="middle">{escape(across)}</text>'


def _draw(plane: _Plane, shares: Sequence[float], line: Line, colour: str, number: int) -> Iterator[str]:
    if line.low and line.high:
        edge = [*zip(shares, line.high, strict=True), *reversed([*zip(shares, line.low, strict=True)])]
        points = " ".join(f"{plane.x(s):.1f},{plane.y(v):.1f}" for s, v in edge)
        yield f'<polygon points="{points}" fill="{colour}" fill-opacity="0.15"/>'
    points = " ".join(f"{plane.x(s):.1f},{plane.y(v):.1f}" for s, v in zip(shares, line.values, strict=True))
    style = f'stroke="{colour}" stroke-width="{3 if line.thick else 1.6:g}"' + ' stroke-dasharray="6 4"' * line.dashed
    yield f'<polyline points="{points}" fill="none" {style}/>'
    left, y = _LEFT + _WIDTH + 18, _TOP + 14 + 22 * number
    name = line.name if len(line.name) <= _LONGEST else line.name[: _LONGEST - 3] + "..."
    yield f'<line x1="{left:g}" y1="{y - 4:g}" x2="{left + 26:g}" y2="{y - 4:g}" {style}/>'
    yield f'<text x="{left + 34:g}" y="{y:g}">{escape(name)}</text>'
