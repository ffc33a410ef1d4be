"""Draws a fabric: a picture in SVG, the same in plain text, and every cable as a row of CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from clusterwright.errors import InputError
from clusterwright.laws.power import nodes_per_rack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusterwright.hardware import FabricDesign

FONTS = "DejaVu Sans, Liberation Sans, Arial, Helvetica, sans-serif"
_SHOWN = 12
"""Boxes drawn of one row; the rest is told in words."""

_WIDTH, _ROW, _LEFT = 960.0, 110.0, 120.0
_BOX_WIDTH, _BOX_HEIGHT = 54.0, 30.0
_COLOURS = {"core": "#7a4fa3", "spine": "#2f6db3", "leaf": "#2e8b6f", "node": "#555f6b"}


@dataclass(frozen=True)
class Row:
    """One row of boxes: a tier of switches, or the nodes."""

    kind: str
    count: int
    links_down: int
    """Cables from this row to the one below."""


class Cable(NamedTuple):
    """One cable."""

    kind: str
    lower: str
    lower_port: str
    upper: str
    network: str = "compute"


def rows_of(design: FabricDesign) -> list[Row]:
    """The rows from the top down."""
    rows = [
        Row("core", design.core, design.spine_core_cables),
        Row("spine", design.spine, design.leaf_spine_cables),
        Row("leaf", design.leaf, design.node_leaf_cables),
        Row("node", design.nodes, 0),
    ]
    return [row for row in rows if row.count]


def draw_text(design: FabricDesign) -> str:
    """The topology in plain text: a row of boxes a tier, with the cables between them."""
    lines = [_title(design), ""]
    for row in rows_of(design):
        shown = min(row.count, 8)
        boxes = " ".join(f"[{row.kind}{i}]" for i in range(shown))
        more = f" ... {row.count:,} in all" if row.count > shown else ""
        lines.append(f"  {boxes}{more}")
        if row.links_down:
            lines.append(f"     {'|  ' * shown}{row.links_down:,} cables")
    return "\n".join(lines)


def draw_svg(design: FabricDesign) -> str:
    """The topology as an SVG document; long rows are shortened and say so, and only links that exist are drawn."""
    rows = rows_of(design)
    height = _ROW * len(rows) + 70.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" role="img">',
        f'<g font-family="{FONTS}" font-size="13"><title>{escape(_title(design))}</title>',
        f'<rect width="{_WIDTH:g}" height="{height:g}" fill="#ffffff"/>',
        f'<text x="24" y="32" font-size="16" fill="#222222">{escape(_title(design))}</text>',
    ]
    boxes = [_boxes_of(row, line) for line, row in enumerate(rows)]
    for line, (above, below) in enumerate(pairwise(rows)):
        parts += [
            f'<line x1="{x0:g}" y1="{y0 + _BOX_HEIGHT:g}" x2="{x1:g}" y2="{y1:g}" stroke="#9aa5b1" stroke-width="0.8"/>'
            for upper, x0, y0 in boxes[line]
            for lower, x1, y1 in boxes[line + 1]
            if upper is not None and lower is not None and joined(design, above.kind, upper, below.kind, lower)
        ]
    for line, row in enumerate(rows):
        parts += _draw_row(row, boxes[line], line)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _title(design: FabricDesign) -> str:
    gbps = design.nic_bits_per_s / 1e9
    tiers = f"{design.tiers} tier{'s' if design.tiers > 1 else ''}"
    over = f"{design.oversubscription:g}:1"
    what = f"{design.nodes:,} nodes x {design.nics} NICs of {gbps:g} Gb/s"
    return f"{what}, {design.topology}, {tiers}, radix {design.radix}, {over}"


def _boxes_of(row: Row, line: int) -> list[tuple[int | None, float, float]]:
    """Number and place (middle of the top edge) of each box; none is the gap of a shortened row."""
    numbers: list[int | None] = list(range(row.count))
    if row.count > _SHOWN:
        numbers = [*range(_SHOWN - 2), None, row.count - 1]
    step = (_WIDTH - _LEFT - 40.0) / len(numbers)
    return [(number, _LEFT + step * (place + 0.5), 60.0 + _ROW * line) for place, number in enumerate(numbers)]


def _draw_row(row: Row, boxes: list[tuple[int | None, float, float]], line: int) -> list[str]:
    """The boxes of a row, its name, its number and the cables below it."""
    colour = _COLOURS[row.kind]
    y = 60.0 + _ROW * line
    made = [
        f'<text x="24" y="{y + 14:g}" fill="{colour}" font-weight="bold">{row.kind}</text>',
        f'<text x="24" y="{y + 30:g}" fill="#444444">{row.count:,}</text>',
    ]
    for number, x, top in boxes:
        if number is None:
            made += [f'<circle cx="{x + dx:g}" cy="{top + 15:g}" r="2.5" fill="{colour}"/>' for dx in (-10, 0, 10)]
            continue
        made.append(
            f'<rect x="{x - _BOX_WIDTH / 2:g}" y="{top:g}" width="{_BOX_WIDTH:g}" height="{_BOX_HEIGHT:g}" rx="4" '
            f'fill="{colour}"/><text x="{x:g}" y="{top + 19:g}" text-anchor="middle" font-size="11" '
            f'fill="#ffffff">{row.kind[0]}{number}</text>'
        )
    if row.links_down:
        made.append(f'<text x="24" y="{y + 66:g}" fill="#444444" font-size="11">{row.links_down:,} cables</text>')
    return made


def joined(design: FabricDesign, above: str, upper: int, below: str, lower: int) -> bool:
    """Whether a cable runs between two boxes, by kind and number."""
    if below == "node":
        return any(leaf_of(design, lower, nic) == upper for nic in range(design.nics))
    groups = spine_groups(design) if above == "spine" else core_groups(design)
    return any(lower in lowers and upper in uppers for lowers, uppers in groups)


def list_cables(design: FabricDesign) -> str:
    """Every cable as CSV: kind, lower end with its port, upper end."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Cable._fields)
    writer.writerows(cables_of(design))
    return text.getvalue()


def list_racks(nodes: int, node_power_w: float, rack_power_w: float) -> str:
    """Which node stands in which rack as CSV: racks are filled in the order of the nodes, by power.

    Raises:
        InputError: a rack does not carry one node.
    """
    each = int(nodes_per_rack(node_power_w, rack_power_w))
    if each == 0:
        raise InputError(
            f"--rack-kw {rack_power_w / 1e3:g}: a node draws {node_power_w / 1e3:,.1f} kW, more than a rack"
        )
    lines = [f"node{node},rack{node // each},{node % each}" for node in range(nodes)]
    return "\n".join(["node,rack,place", *lines]) + "\n"


def cables_of(design: FabricDesign) -> Iterator[Cable]:
    """Every cable of the design, from the nodes up.

    Shared spines: NIC *k* of a node is on leaf *k* of its group. Independent rails: leaf and spine numbers run rail by
    rail. Uplinks go round the upper switches in turn, so that each pair has the same number.
    """
    for node in range(design.nodes):
        for nic in range(design.nics):
            yield Cable("node-leaf", f"node{node}", f"nic{nic}", f"leaf{leaf_of(design, node, nic)}")
    if design.spine:
        yield from _uplinks("leaf-spine", ("leaf", "spine"), design.leaf_spine_cables, spine_groups(design))
    if design.core:
        yield from _uplinks("spine-core", ("spine", "core"), design.spine_core_cables, core_groups(design))


def _networks(design: FabricDesign) -> int:
    """Networks without a path between them."""
    return design.nics if design.topology == "independent-rails" else 1


def leaf_of(design: FabricDesign, node: int, nic: int) -> int:
    """The leaf that a NIC is plugged into; groups of nodes are filled evenly."""
    if design.topology == "independent-rails":
        leaves = design.leaf // design.nics
        return nic * leaves + node // -(-design.nodes // leaves)
    if design.leaf == 1:
        return 0
    groups = design.leaf // design.nics
    return node // -(-design.nodes // groups) * design.nics + nic


def spine_groups(design: FabricDesign) -> list[tuple[range, range]]:
    """Leaves and the spines they reach: all of a network in two tiers, those of a pod in three."""
    networks = _networks(design)
    leaves, spines = design.leaf // networks, design.spine // networks
    size = leaves if design.core == 0 else design.radix // 2
    pods = -(-leaves // size)
    each = spines // pods
    return [
        (
            range(net * leaves + pod * size, net * leaves + min((pod + 1) * size, leaves)),
            range(net * spines + pod * each, net * spines + (pod + 1) * each),
        )
        for net in range(networks)
        for pod in range(pods)
    ]


def core_groups(design: FabricDesign) -> list[tuple[range, range]]:
    """Spines of the same place in every pod, and the cores they share."""
    networks = _networks(design)
    leaves, spines, cores = design.leaf // networks, design.spine // networks, design.core // networks
    each = spines // -(-leaves // (design.radix // 2))
    share = cores // each
    return [
        (
            range(net * spines + place, (net + 1) * spines, each),
            range(net * cores + place * share, net * cores + (place + 1) * share),
        )
        for net in range(networks)
        for place in range(each)
    ]


def _uplinks(kind: str, names: tuple[str, str], total: int, groups: list[tuple[range, range]]) -> Iterator[Cable]:
    """The links of each group, the same number from every lower switch, in turn over the upper ones."""
    lower_count = sum(len(lower) for lower, _ in groups)
    for lower, upper in groups:
        for switch in lower:
            for port in range(total // lower_count):
                yield Cable(kind, f"{names[0]}{switch}", f"up{port}", f"{names[1]}{upper[port % len(upper)]}")
