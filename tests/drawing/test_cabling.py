"""The cable list of a whole cluster: as many as the designs count, and no switch with more ends than ports."""

from __future__ import annotations

import csv
import io
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.drawing import cabling
from clusterwright.estimators.networks import design_storage_fabric
from tests.drawing.test_cluster import FIGURES, PARTS, SIZES, networks_of


@pytest.mark.parametrize(("name", "nodes"), SIZES)
def test_every_cable_that_is_counted_is_listed(name: str, nodes: int) -> None:
    found = networks_of(name, nodes)
    counted = Counter(cable.network for cable in cabling.all_cables(found))
    assert {n.purpose: n.design.cables for n in found} == dict(counted)


@pytest.mark.parametrize(("name", "nodes"), SIZES)
def test_no_switch_has_more_ends_than_ports(name: str, nodes: int) -> None:
    found = networks_of(name, nodes)
    radix: dict[str, int] = {n.purpose: n.design.radix for n in found}
    ends: Counter[tuple[str, str]] = Counter()
    for cable in cabling.all_cables(found):
        ends[cable.network, cable.upper] += 1
        if cable.lower_port.startswith("up") and not cable.lower.startswith("management"):
            ends[cable.network, cable.lower] += 1
    assert [] == [(end, count) for end, count in ends.items() if count > radix[end[0]]]


@given(st.integers(2, 1500), st.integers(1, 80))
def test_the_uplinks_of_storage_leaves_are_those_of_the_design(nodes: int, devices: int) -> None:
    design = design_storage_fabric(nodes, 2, 200e9, 128, devices, 4 / 3, PARTS)
    assert design is not None
    if design.spine:
        assert design.leaf_spine_cables == sum(cabling.uplinks_of(design))


def test_no_end_is_used_twice() -> None:
    found = networks_of("dgx-h100", 127)
    ends = Counter((c.network, c.lower, c.lower_port) for c in cabling.all_cables(found))
    assert 1 == max(ends.values())


def test_the_list_is_csv_with_a_heading() -> None:
    rows = list(csv.DictReader(io.StringIO(cabling.list_all_cables(networks_of("dgx-h100", 9)))))
    assert {"compute", "storage", "management"} == {row["network"] for row in rows}
    assert any(row["lower"].startswith("management") for row in rows)
    assert FIGURES.management_uplinks == sum(row["kind"] == "management-leaf" for row in rows)
