"""Draws what was measured against what was estimated: one dot a run, on logarithmic axes, one panel a quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from clusterwright.errors import InfeasibleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BAND = 0.1
"""Error on either side that is shaded."""
_FONTS = "DejaVu Sans, Liberation Sans, Arial, Helvetica, sans-serif"
_SIDE, _LEFT, _TOP, _BELOW, _LEGEND = 460.0, 76.0, 56.0, 60.0, 190.0
"""Of the square that the dots are in, and what is around it [pixels]."""
_COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#17becf", "#8c564b", "#e377c2", "#bcbd22", "#3b3eac",
    "#b82e2e", "#316395", "#994499", "#22aa99", "#aaaa11", "#6633cc", "#e67300", "#329262", "#5574a6", "#651067",
)  # fmt: skip
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """One quantity: dots of (measured, estimated) by source."""

    title: str
    unit: str
    dots: Mapping[str, Points]


@dataclass(frozen=True)
class _Frame:
    """Where a panel is, and the decades that it spans, as logarithms."""

    left: float
    low: float
    high: float

    def x(self, value: float) -> float:
        return self.left + _SIDE * (math.log10(value) - self.low) / (self.high - self.low)

    def y(self, value: float) -> float:
        return _TOP + _SIDE * (self.high - math.log10(value)) / (self.high - self.low)


def draw(panels: Sequence[Panel]) -> str:
    """The panels side by side as an SVG document; a source has the same colour in all of them.

    Raises:
        InfeasibleError: there is not one dot.
    """
    panels = [panel for panel in panels if any(panel.dots.values())]
    if not panels:
        raise InfeasibleError("no measured step time or memory: nothing to draw")
    names = list(dict.fromkeys(name for panel in panels for name, _ in _largest_first(panel)))
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    each = _LEFT + _SIDE + _LEGEND
    width, height = each * len(panels), _TOP + _SIDE + _BELOW
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f'<g font-family="{_FONTS}" font-size="12" fill="#222222"><title>Measured against estimated</title>',
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
    ]
    for i, panel in enumerate(panels):
        parts += _panel(panel, each * i + _LEFT, colours)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _panel(panel: Panel, left: float, colours: Mapping[str, str]) -> Iterator[str]:
    values = [value for dots in panel.dots.values() for dot in dots for value in dot]
    frame = _Frame(left, *_span(min(values), max(values)))
    count = sum(map(len, panel.dots.values()))
    yield f'<text x="{left:g}" y="24" font-size="16">{escape(panel.title)}</text>'
    yield f'<text x="{left:g}" y="43" fill="#555555">{count:,} runs; shaded: within {BAND:.0%}</text>'
    yield from _axes(frame, panel.unit)
    yield from _diagonal(frame)
    for row, (name, dots) in enumerate(_largest_first(panel)):
        path = "".join(f"M{frame.x(measured):.1f} {frame.y(estimated):.1f}h.01" for measured, estimated in dots)
        stroke = f'stroke="{colours[name]}" stroke-width="4" stroke-opacity="0.6" stroke-linecap="round"'
        yield f'<path d="{path}" fill="none" {stroke}/>'
        y = _TOP + 10 + 20 * row
        yield f'<circle cx="{left + _SIDE + 18:g}" cy="{y:g}" r="4" fill="{colours[name]}"/>'
        yield f'<text x="{left + _SIDE + 28:g}" y="{y + 4:g}">{escape(name)} ({len(dots):,})</text>'


def _largest_first(panel: Panel) -> list[tuple[str, Points]]:
    return sorted(panel.dots.items(), key=lambda item: -len(item[1]))


def _span(least: float, most: float) -> tuple[float, float]:
    """Logarithms of the axis' ends: the values with a little room."""
    low, high = math.log10(least), math.log10(most)
    room = max(0.03 * (high - low), 0.02)
    return low - room, high + room


def _ticks(frame: _Frame) -> list[float]:
    """1, 2 and 5 of each decade where the axis is short, else the decades."""
    steps = (1.0, 2.0, 5.0) if frame.high - frame.low < 3.5 else (1.0,)  # noqa: PLR2004 - decades
    decades = range(math.floor(frame.low), math.ceil(frame.high) + 1)
    return [s * 10.0**d for d in decades for s in steps if frame.low <= math.log10(s * 10.0**d) <= frame.high]


def _axes(frame: _Frame, unit: str) -> Iterator[str]:
    right, bottom = frame.left + _SIDE, _TOP + _SIDE
    yield f'<rect x="{frame.left:g}" y="{_TOP:g}" width="{_SIDE:g}" height="{_SIDE:g}" fill="none" stroke="#444444"/>'
    for value in _ticks(frame):
        x, y = frame.x(value), frame.y(value)
        yield f'<path d="M{x:.1f} {_TOP:g}V{bottom:g}M{frame.left:g} {y:.1f}H{right:g}" stroke="#e3e6ea" fill="none"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18:g}" text-anchor="middle">{value:g}</text>'
        yield f'<text x="{frame.left - 8:g}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    middle = _TOP + _SIDE / 2
    yield f'<text x="{frame.left + _SIDE / 2:g}" y="{bottom + 42:g}" text-anchor="middle">measured [{unit}]</text>'
    turned = f"translate({frame.left - 56:g} {middle:g}) rotate(-90)"
    yield f'<text transform="{turned}" text-anchor="middle">estimated [{unit}]</text>'


def _diagonal(frame: _Frame) -> Iterator[str]:
    """Where estimated is measured, and the band around it, cut off at the frame."""
    shift = _SIDE * math.log10(1 + BAND) / (frame.high - frame.low)
    down = _SIDE * -math.log10(1 - BAND) / (frame.high - frame.low)
    left, right, top, bottom = frame.left, frame.left + _SIDE, _TOP, _TOP + _SIDE
    corners = [
        (left, bottom), (left, bottom - shift), (right - shift, top), (right, top), (right, top + down),
        (left + down, bottom),
    ]  # fmt: skip
    yield f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)}" fill="#2e8b6f" fill-opacity="0.18"/>'
    yield f'<path d="M{left:g} {bottom:g}L{right:g} {top:g}" stroke="#555555" fill="none" stroke-dasharray="4 3"/>'
