"""The picture and the cable list show the design that was asked for."""

from __future__ import annotations

import csv
import io
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from clusterwright.catalog.cluster_parts import load_fabric_parts
from clusterwright.drawing import fabric as drawing
from clusterwright.estimators.fabric import design_fabric

if TYPE_CHECKING:
    from clusterwright.hardware import FabricDesign

CASES = [
    (1, "shared-spine", 1.0), (8, "shared-spine", 1.0), (31, "shared-spine", 1.0), (95, "shared-spine", 1.0),
    (257, "shared-spine", 1.0), (512, "shared-spine", 1.0), (128, "shared-spine", 2.0), (64, "independent-rails", 1.0),
    (128, "independent-rails", 1.0), (2100, "independent-rails", 1.0),
]  # fmt: skip
cases = pytest.mark.parametrize(("nodes", "topology", "ratio"), CASES)


def design(nodes: int, topology: str, ratio: float) -> FabricDesign:
    return design_fabric(nodes, 8, 400e9, 64, topology, ratio, load_fabric_parts())


@cases
def test_the_cable_list_has_every_cable_and_no_port_twice(nodes: int, topology: str, ratio: float) -> None:
    made = design(nodes, topology, ratio)
    rows = list(csv.DictReader(io.StringIO(drawing.list_cables(made))))
    kinds = Counter(row["kind"] for row in rows)
    expected = {
        "node-leaf": made.node_leaf_cables,
        "leaf-spine": made.leaf_spine_cables,
        "spine-core": made.spine_core_cables,
    }
    assert {k: v for k, v in expected.items() if v} == dict(kinds)
    assert len(rows) == len({(row["lower"], row["lower_port"]) for row in rows})


@cases
def test_no_switch_of_the_cable_list_has_more_cables_than_ports(nodes: int, topology: str, ratio: float) -> None:
    made = design(nodes, topology, ratio)
    ends = Counter(end for cable in drawing.cables_of(made) for end in (cable.lower, cable.upper))
    switches = {name: count for name, count in ends.items() if not name.startswith("node")}
    assert made.switches == len(switches)
    assert max(switches.values()) <= made.radix


@cases
def test_the_picture_is_xml_and_names_the_numbers(nodes: int, topology: str, ratio: float) -> None:
    made = design(nodes, topology, ratio)
    root = ET.fromstring(drawing.draw_svg(made))  # noqa: S314 - our own text
    words = [element.text for element in root.iter() if element.text]
    for row in drawing.rows_of(made):
        assert f"{row.count:,}" in words
    assert any(topology in word for word in words)


@cases
def test_the_plain_drawing_has_a_row_for_each_tier(nodes: int, topology: str, ratio: float) -> None:
    made = design(nodes, topology, ratio)
    text = drawing.draw_text(made)
    assert ["leaf0" in text, "spine0" in text, "core0" in text] == [True, made.tiers > 1, made.tiers > 2]


def test_rails_of_their_own_do_not_meet_above_the_nodes() -> None:
    made = design(128, "independent-rails", 1.0)
    rail = {f"leaf{n}": n // (made.leaf // 8) for n in range(made.leaf)}
    rail |= {f"spine{n}": n // (made.spine // 8) for n in range(made.spine)}
    links = [c for c in drawing.cables_of(made) if c.kind == "leaf-spine"]
    assert [] == [c for c in links if rail[c.lower] != rail[c.upper]]


@cases
def test_the_picture_draws_links_that_are_in_the_cable_list_and_no_others(
    nodes: int, topology: str, ratio: float
) -> None:
    made = design(nodes, topology, ratio)
    listed = {(cable.upper, cable.lower) for cable in drawing.cables_of(made)}
    kinds = [row.kind for row in drawing.rows_of(made)]
    counts = {row.kind: row.count for row in drawing.rows_of(made)}
    for above, below in pairwise(kinds):
        for upper in {0, counts[above] // 2, counts[above] - 1}:
            for lower in {0, counts[below] // 2, counts[below] - 1}:
                expected = (f"{above}{upper}", f"{below}{lower}") in listed
                assert expected == drawing.joined(made, above, upper, below, lower)
