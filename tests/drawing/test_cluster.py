"""The drawing of a whole cluster: nothing overlaps, nothing leaves the page, and only links that exist are drawn."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts, load_site_figures
from clusterwright.drawing import cabling, cluster
from clusterwright.estimators import networks

if TYPE_CHECKING:
    from clusterwright.facility import Network

PARTS, FIGURES = load_fabric_parts(), load_site_figures()
SVG = "{http://www.w3.org/2000/svg}"
SIZES = [("dgx-h100", 2), ("dgx-h100", 9), ("dgx-h100", 64), ("dgx-h100", 127), ("dgx-h100", 2048),
         ("p5.48xlarge", 300), ("gb200-nvl72", 40), ("dgx-b300", 1000), ("BM.GPU.GB300.4", 4108)]  # fmt: skip


def networks_of(name: str, nodes: int) -> tuple[Network, ...]:
    compute = networks.compute_network(catalog.load().node(name), nodes, 1.0, PARTS)
    assert compute is not None
    return tuple(networks.all_networks(compute, nodes, 4e10, FIGURES, PARTS))


def boxes_of(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of every box but the page itself."""
    rects = [r for r in ET.fromstring(svg).iter(f"{SVG}rect") if r.get("rx")]  # noqa: S314 - our own drawing
    return [(float(r.get("x", 0)), float(r.get("y", 0)), float(r.get("width", 0)), float(r.get("height", 0)))
            for r in rects]  # fmt: skip


@pytest.mark.parametrize(("name", "nodes"), SIZES)
def test_no_box_covers_another_or_leaves_the_page(name: str, nodes: int) -> None:
    svg = cluster.draw_cluster(networks_of(name, nodes), nodes, "a cluster")
    page = [float(v) for v in ET.fromstring(svg).get("viewBox", "").split()]  # noqa: S314 - our own drawing
    boxes = boxes_of(svg)
    assert boxes
    for x, y, width, height in boxes:
        assert 0 <= x
        assert x + width <= page[2]
        assert y + height <= page[3]
    for (x0, y0, w0, h0), (x1, y1, w1, h1) in combinations(boxes, 2):
        assert x0 + w0 <= x1 + 0.1 or x1 + w1 <= x0 + 0.1 or y0 + h0 <= y1 or y1 + h1 <= y0


@pytest.mark.parametrize(("name", "nodes"), SIZES)
def test_every_word_fits_its_box(name: str, nodes: int) -> None:
    svg = cluster.draw_cluster(networks_of(name, nodes), nodes, "a cluster")
    root = ET.fromstring(svg)  # noqa: S314 - our own drawing
    words = [t for t in root.iter(f"{SVG}text") if t.get("font-size") == "11"]
    # A digit of 11 pixels is about 7 wide.
    for word, (_, _, width, _) in zip(words, boxes_of(svg), strict=True):
        assert 7.0 * len(word.text or "") <= width + 8.0, word.text


def test_every_network_is_named_with_its_counts() -> None:
    found = networks_of("dgx-h100", 127)
    for text in (cluster.draw_cluster(found, 127, "a cluster"), cluster.draw_cluster_text(found, 127, "a cluster")):
        assert "storage" in text
        assert "management" in text
        assert "1,024 cables" in text


def test_a_cluster_of_one_node_has_no_compute_network() -> None:
    storage = networks.storage_network(1, 4e10, 2, FIGURES, PARTS)
    assert storage is not None
    found = (storage, networks.management_network(1, 1, FIGURES))
    assert "spine" not in cluster.draw_cluster(found, 1, "one node")
    assert "[node0]" in cluster.draw_cluster_text(found, 1, "one node")


def test_a_node_without_any_network_is_drawn_alone() -> None:
    svg = cluster.draw_cluster((), 1, "one node")
    assert "node0" in svg
    assert len(boxes_of(svg)) == 1


@pytest.mark.parametrize(("name", "nodes"), SIZES)
def test_the_text_fits_a_hundred_columns(name: str, nodes: int) -> None:
    text = cluster.draw_cluster_text(networks_of(name, nodes), nodes, "a cluster")
    assert max(len(line) for line in text.splitlines()) <= 100


def test_nodes_fill_the_leaves_of_the_storage_network_evenly() -> None:
    design = networks_of("dgx-h100", 127)[1].design
    own = design.leaf - design.device_leaf
    counts = [0] * own
    for node in range(127):
        for port in range(2):
            counts[cabling.storage_leaf(design, node, port)] += 1
    assert 2 * 127 == sum(counts)
    assert max(counts) - min(counts) <= max(counts) // 10 + 1
