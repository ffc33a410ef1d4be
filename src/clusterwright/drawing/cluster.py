"""Draws a whole cluster: nodes in their rail groups, the compute network above, storage and management below."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from clusterwright.drawing.cabling import as_one_tree, is_one_tree, storage_leaf
from clusterwright.drawing.fabric import FONTS, joined, leaf_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clusterwright.facility import Network
    from clusterwright.hardware import FabricDesign

_WIDTH, _LEFT, _RIGHT = 1280.0, 150.0, 1020.0
_ROW = 118.0
_BOX_HEIGHT = 28.0
_GROUPS, _NODES, _LEAVES, _SPINES, _STORAGE = 4, 4, 8, 10, 10
"""Groups shown, nodes shown of each, leaves of each, spines, and boxes of a storage row; the rest is told in words."""
_RAILS = ("#c0392b", "#d35400", "#b7950b", "#1e8449", "#117a65", "#1f618d", "#5b2c8f", "#a93276")
_COLOURS = {"core": "#7a4fa3", "spine": "#2f6db3", "leaf": "#2e8b6f", "node": "#46505c", "storage": "#8a6d1d",
            "management": "#6c757d"}  # fmt: skip
_GREY = "#b4bcc6"


@dataclass
class _Sheet:
    """Lines first, boxes over them, words last."""

    lines: list[str] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def line(self, a: tuple[float, float], b: tuple[float, float], colour: str, *, dashed: bool = False) -> None:
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        self.lines.append(
            f'<line x1="{a[0]:.4g}" y1="{a[1]:.4g}" x2="{b[0]:.4g}" y2="{b[1]:.4g}" stroke="{colour}" '
            f'stroke-width="0.9"{dash}/>'
        )

    def box(self, middle: float, top: float, width: float, text: str, colour: str) -> None:
        self.boxes.append(
            f'<rect x="{middle - width / 2:.5g}" y="{top:g}" width="{width:.4g}" height="{_BOX_HEIGHT:g}" rx="3" '
            f'fill="{colour}"/><text x="{middle:.5g}" y="{top + 18:g}" text-anchor="middle" font-size="11" '
            f'fill="#ffffff">{escape(text)}</text>'
        )

    def gap(self, middle: float, top: float) -> None:
        self.boxes += [
            f'<circle cx="{middle + dx:.5g}" cy="{top + 14:g}" r="2.2" fill="#7b8794"/>' for dx in (-8, 0, 8)
        ]

    def say(self, x: float, y: float, text: str, *, bold: bool = False, anchor: str = "start") -> None:
        weight = ' font-weight="bold"' if bold else ""
        self.words.append(
            f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="#2b323a"{weight}>{escape(text)}</text>'
        )


@dataclass(frozen=True)
class Spot:
    """Where a box stands: its number, the middle of its top edge."""

    number: int
    x: float
    y: float

    @property
    def top(self) -> tuple[float, float]:
        """Where lines from above end."""
        return self.x, self.y

    @property
    def foot(self) -> tuple[float, float]:
        """Where lines to below begin."""
        return self.x, self.y + _BOX_HEIGHT


def shortened(count: int, shown: int) -> list[int | None]:
    """Numbers of the boxes of a row; none is the gap of a row that is longer than what is shown.

    >>> shortened(3, 4), shortened(9, 4)
    ([0, 1, 2], [0, 1, None, 8])
    """
    return list(range(count)) if count <= shown else [*range(shown - 2), None, count - 1]


def draw_cluster(networks: Sequence[Network], nodes: int, title: str) -> str:
    """The cluster as an SVG document; long rows are shortened and say so, and only links that exist are drawn.

    Args:
        networks: Of the cluster, by purpose; one that is not there is left out, and a single node has none.
        nodes: Number of nodes. [1]
        title: Above the picture.
    """
    by_purpose = {n.purpose: n for n in networks}
    compute, storage, management = (by_purpose.get(p) for p in ("compute", "storage", "management"))
    sheet = _Sheet()
    tiers = compute.design.tiers if compute else 0
    top = 78.0 + _ROW * tiers
    groups = _draw_nodes(sheet, compute.design if compute else None, nodes, top)
    bottom = top + _BOX_HEIGHT
    if compute:
        _draw_compute(sheet, compute.design, groups, top)
    if management:
        bottom = _draw_management(sheet, management, groups, bottom)
    if storage:
        bottom = _draw_storage(sheet, storage, groups, bottom)
    height = bottom + 46.0
    said = [f"{n.purpose}: {_words(n)}" for n in networks]
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height + 16 * len(said):g}" role="img">',
        f'<g font-family="{FONTS}" font-size="12"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH:g}" height="{height + 16 * len(said):g}" fill="#ffffff"/>',
        f'<text x="24" y="34" font-size="17" fill="#1b1f24">{escape(title)}</text>',
    ]
    for number, text in enumerate(said):
        sheet.say(24, height + 4 + 16 * number, text)
    return "\n".join([*head, *sheet.lines, *sheet.boxes, *sheet.words, "</g>", "</svg>"]) + "\n"


def _words(network: Network) -> str:
    """A network in one line."""
    design = network.design
    gbps = design.nic_bits_per_s / 1e9
    ports = f"{design.nics} port{'s' if design.nics > 1 else ''} of {gbps:g} Gb/s a node"
    optics = f", {network.transceivers:,} optical modules" if network.transceivers else ", copper"
    ratio = f", nodes {design.oversubscription:.2g}:1" if design.oversubscription != 1.0 else ""
    switches = f"{design.switches:,} switch{'' if design.switches == 1 else 'es'} of {design.radix} ports"
    counts = f"{switches}, {design.cables:,} cables{optics}"
    topology = design.topology if design.spine else "one tier"
    return f"{ports}, {topology}{ratio if design.spine else ''}; {counts}"


@dataclass(frozen=True)
class Group:
    """Nodes that share their leaves: the nodes shown, the leaves' numbers, and the room on the page."""

    nodes: tuple[Spot, ...]
    leaves: tuple[int, ...]
    left: float
    right: float


def _draw_nodes(sheet: _Sheet, design: FabricDesign | None, nodes: int, top: float) -> list[Group]:
    """The row of nodes, group by group."""
    first = _first_nodes(design, nodes)
    numbers = shortened(len(first), _GROUPS)
    step = (_RIGHT - _LEFT) / len(numbers)
    found = []
    for place, number in enumerate(numbers):
        left = _LEFT + step * place
        if number is None:
            sheet.gap(left + step / 2, top)
            continue
        start = first[number]
        end = first[number + 1] if number + 1 < len(first) else nodes
        room = (left + 8, left + step - 8)
        spots = _spread(sheet, end - start, _NODES, room, top, start, "node", "node")
        leaves = tuple(dict.fromkeys(leaf_of(design, start, k) for k in range(design.nics))) if design else ()
        found.append(Group(tuple(spots), leaves, *room))
    sheet.say(24, top + 12, "nodes", bold=True)
    sheet.say(24, top + 28, f"{nodes:,}")
    return found


def _first_nodes(design: FabricDesign | None, nodes: int) -> list[int]:
    """The first node of each group that shares its leaves."""
    if design is None or design.leaf <= design.nics:
        return [0]
    found, last = [], None
    for node in range(nodes):
        leaf = leaf_of(design, node, 0)
        if leaf != last:
            found.append(node)
            last = leaf
    return found


def _spread(  # noqa: PLR0917 - what a row of boxes is
    sheet: _Sheet, count: int, shown: int, room: tuple[float, float], top: float, start: int, word: str, colour: str
) -> list[Spot]:
    """A row of boxes over some room, shortened where it is long."""
    numbers = shortened(count, shown)
    step = (room[1] - room[0]) / max(len(numbers), 1)
    width = min(step - 5, 74.0)
    spots = []
    for place, number in enumerate(numbers):
        x = room[0] + step * (place + 0.5)
        if number is None:
            sheet.gap(x, top)
            continue
        name = f"{word}{start + number}" if width > 7.0 * len(f"{word}{start + number}") else f"{start + number}"
        sheet.box(x, top, width, name, _COLOURS[colour])
        spots.append(Spot(start + number, x, top))
    return spots


def _draw_compute(sheet: _Sheet, design: FabricDesign, groups: Iterable[Group], top: float) -> None:
    """Leaves over each group, spines and cores over all."""
    y = top - _ROW
    leaves: list[Spot] = []
    for group in groups:
        spots = _draw_leaves(sheet, group, y)
        leaves += spots
        places = {spot.number: spot for spot in spots}
        for node in group.nodes:
            for nic in range(design.nics):
                leaf = places.get(leaf_of(design, node.number, nic))
                if leaf is not None:
                    aside = (nic - (design.nics - 1) / 2) * min(5.0, 40.0 / design.nics)
                    from_x = leaf.x + (aside if len(group.leaves) == 1 else 0.0)
                    sheet.line((from_x, leaf.foot[1]), (node.x + aside, node.y), _RAILS[nic % len(_RAILS)])
    _label(sheet, y, "leaf", design.leaf, design.node_leaf_cables)
    above = leaves
    for kind, count, cables in (
        ("spine", design.spine, design.leaf_spine_cables), ("core", design.core, design.spine_core_cables)
    ):  # fmt: skip
        if not count:
            break
        y -= _ROW
        spots = _spread(sheet, count, _SPINES, (_LEFT, _RIGHT), y, 0, kind, kind)
        for upper in spots:
            for lower in above:
                if joined(design, kind, upper.number, "leaf" if kind == "spine" else "spine", lower.number):
                    sheet.line(upper.foot, lower.top, _GREY)
        _label(sheet, y, kind, count, cables)
        above = spots


def _draw_leaves(sheet: _Sheet, group: Group, y: float) -> list[Spot]:
    """The leaves of a group, each in the colour of its rail."""
    numbers = shortened(len(group.leaves), _LEAVES)
    step = (group.right - group.left) / len(numbers)
    spots = []
    for place, number in enumerate(numbers):
        x = group.left + step * (place + 0.5)
        if number is None:
            sheet.gap(x, y)
            continue
        colour = _RAILS[number % len(_RAILS)] if len(group.leaves) > 1 else _COLOURS["leaf"]
        name = str(group.leaves[number]) if len(group.leaves) > 1 else f"leaf{group.leaves[number]}"
        sheet.box(x, y, min(step - 3, 60.0), name, colour)
        spots.append(Spot(group.leaves[number], x, y))
    return spots


def _label(sheet: _Sheet, y: float, kind: str, count: int, cables: int) -> None:
    """Name, number and the cables below a row of switches."""
    sheet.say(24, y + 12, {"leaf": "leaves", "spine": "spines", "core": "cores"}.get(kind, kind), bold=True)
    sheet.say(24, y + 28, f"{count:,}")
    if cables:
        sheet.say(24, y + 72, f"{cables:,} cables")


def _draw_management(sheet: _Sheet, network: Network, groups: Iterable[Group], y: float) -> float:
    """A dashed line under all nodes that leads to the management switches at the right."""
    line, design = y + 16.0, network.design
    for group in groups:
        for node in group.nodes:
            sheet.line(node.foot, (node.x, line), _COLOURS["management"], dashed=True)
    sheet.line((_LEFT, line), (1060.0, line), _COLOURS["management"], dashed=True)
    word = f"{design.leaf:,} switch{'' if design.leaf == 1 else 'es'}"
    sheet.box(1130.0, line - _BOX_HEIGHT / 2, 140.0, word, _COLOURS["management"])
    sheet.say(1060, line + 30, "management, out of band", bold=True)
    sheet.say(1060, line + 46, f"{design.node_leaf_cables:,} nodes")
    sheet.say(1060, line + 62, f"{design.device_leaf_cables:,} switches")
    return line


def _draw_storage(sheet: _Sheet, network: Network, groups: Iterable[Group], y: float) -> float:
    """Leaves of nodes and of storage under the nodes, spines under them, storage at the right."""
    design = network.design
    y += _ROW - 30
    own = design.leaf - design.device_leaf
    spots = _spread(sheet, own, _STORAGE, (_LEFT, _RIGHT - 170), y, 0, "leaf", "storage")
    places = {spot.number: spot for spot in spots}
    for group in groups:
        for node in group.nodes:
            for port in range(design.nics):
                leaf = places.get(storage_leaf(design, node.number, port))
                if leaf is not None:
                    sheet.line(node.foot, leaf.top, _COLOURS["storage"])
    devices = _spread(sheet, design.device_leaf, 3, (_RIGHT - 150, _RIGHT), y, own, "leaf", "storage")
    sheet.say(24, y + 6, "storage leaves", bold=True)
    sheet.say(24, y + 22, f"{design.leaf:,}, to nodes")
    sheet.say(24, y + 38, f"{design.node_leaf_cables:,} cables")
    sheet.box(1130.0, y, 140.0, "storage", _COLOURS["storage"])
    sheet.say(1060, y + 46, f"{design.device_leaf_cables:,} cables to storage")
    sheet.line((1060.0, y + 14), ((devices or spots[-1:])[0].x, y + 14), _COLOURS["storage"])
    if not design.spine:
        return y + _BOX_HEIGHT + 26
    y += _ROW - 14
    spines = _storage_tier(sheet, design, ("spine", design.spine, design.leaf_spine_cables), [*spots, *devices], y)
    if design.core:
        y += _ROW - 14
        _storage_tier(sheet, design, ("core", design.core, design.spine_core_cables), spines, y)
    return y + _BOX_HEIGHT


def _storage_tier(
    sheet: _Sheet, design: FabricDesign, row: tuple[str, int, int], above: Iterable[Spot], y: float
) -> list[Spot]:
    """A row of switches under the leaves or the spines of the storage network, with its links to them."""
    kind, count, cables = row
    spots = _spread(sheet, count, _STORAGE, (_LEFT, _RIGHT), y, 0, kind, kind)
    whole = as_one_tree(design) if is_one_tree(design) else None
    for spot in spots:
        for other in above:
            below = "leaf" if kind == "spine" else "spine"
            if whole is None or joined(whole, kind, spot.number, below, other.number):
                sheet.line(other.foot, spot.top, _GREY)
    sheet.say(24, y + 12, f"storage {kind}s", bold=True)
    sheet.say(24, y + 28, f"{count:,}, {cables:,} cables")
    return spots


def draw_cluster_text(networks: Sequence[Network], nodes: int, title: str) -> str:
    """The cluster in plain text: a row of boxes for each tier of each network, with the cables between them."""
    by_purpose = {n.purpose: n.design for n in networks}
    lines = [title, ""]
    compute = by_purpose.get("compute")
    if compute:
        for kind, count, cables in (
            ("core", compute.core, compute.spine_core_cables),
            ("spine", compute.spine, compute.leaf_spine_cables),
            ("leaf", compute.leaf, compute.node_leaf_cables),
        ):
            lines += _text_row("compute", kind, count, cables) if count else []
    lines += _text_row("", "node", nodes, 0)
    storage = by_purpose.get("storage")
    if storage:
        lines += [_bars(min(storage.leaf, 4), storage.node_leaf_cables)]
        lines += _text_row("storage", "leaf", storage.leaf, storage.leaf_spine_cables)
        lines += _text_row("storage", "spine", storage.spine, storage.spine_core_cables) if storage.spine else []
        lines += _text_row("storage", "core", storage.core, 0) if storage.core else []
        lines += [f"{'':<12}{storage.device_leaf_cables:,} cables from leaves to storage"]
    management = by_purpose.get("management")
    if management:
        lines += ["", *_text_row("management", "switch", management.leaf, 0)]
        rest = management.cables - management.node_leaf_cables
        ends = f"{management.node_leaf_cables:,} cables from nodes, {rest:,} from switches"
        lines.append(f"{'':<12}{ends}")
    return "\n".join(lines)


def _text_row(label: str, kind: str, count: int, cables: int) -> list[str]:
    """Boxes of a row, and the cables below it."""
    boxes = " ".join("..." if n is None else f"[{kind}{n}]" for n in shortened(count, 6))
    lines = [f"{label:<12}{boxes}   {count:,}"]
    return [*lines, _bars(min(count, 4), cables)] if cables else lines


def _bars(count: int, cables: int) -> str:
    return f"{'':<14}{'|  ' * count}{cables:,} cables"
