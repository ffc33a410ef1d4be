"""Facts on disk become nouns; what has no source, or is not understood, is refused with its file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusterwright.catalog import Catalogue, load
from clusterwright.errors import InputError
from clusterwright.hardware import FabricKind

PUBLISHED = [
    "v100-16gb", "v100-32gb", "a100-40gb-sxm", "a100-80gb-sxm", "a100-40gb-pcie", "a100-80gb-pcie", "a800-sxm",
    "h100-sxm", "h100-pcie", "h100-96gb-hbm2e-500w", "h800-sxm", "h200-sxm", "gh200", "b200-sxm",
    "b200-power-limited", "b300", "gb200", "gb300", "mi250x-gcd", "mi300x", "mi325x", "mi355x", "gaudi2",
    "pvc-max1550-tile", "l40s", "rtx-4090", "rtx-a6000",
]  # fmt: skip
NODE = """
name = "mine"
provider = "us"
accelerator = "h100-sxm"
accelerators = 8
scale_up_domain = 8
nics = 8
nic_bits_per_s = 400e9
fabric = "roce"
sources = ["https://example.com/our-racks"]
"""
OFFER = """
[[offer]]
provider = "us"
node = "mine"
instance = "mine"
accelerator = "h100-sxm"
accelerators = 8
term = "on-demand"
usd_per_node_hour = 16.0
seen = "2026-11-01"
source = "https://example.com/our-bill"
"""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "mine.toml").write_text(NODE, encoding="utf-8")
    (tmp_path / "offers.toml").write_text(OFFER, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_accelerator_of_published_runs_is_known(catalogue: Catalogue, name: str) -> None:
    assert name == catalogue.accelerator(name).name


def test_the_catalogue_is_as_large_as_promised(catalogue: Catalogue) -> None:
    sizes = [len(catalogue.accelerators), len(catalogue.nodes), len(catalogue.models), len(catalogue.offers)]
    assert [True] * 4 == [size >= least for size, least in zip(sizes, (20, 35, 45, 80), strict=True)]


def test_what_all_peers_get_is_at_least_what_one_peer_gets(catalogue: Catalogue) -> None:
    parts = catalogue.accelerators.values()
    assert [] == [a.name for a in parts if a.scale_up_peer_bytes_per_s > a.scale_up_bytes_per_s]


def test_no_matrix_product_was_measured_above_its_peak(catalogue: Catalogue) -> None:
    shares = [(a.name, k, s) for a in catalogue.accelerators.values() for k, s in a.achievable.items()]
    assert [] == [entry for entry in shares if not 0.3 < entry[2] < 1.0]


def test_peaks_are_dense_so_half_precision_doubles_at_most(catalogue: Catalogue) -> None:
    sparse = [
        a.name
        for a in catalogue.accelerators.values()
        if (fp8 := a.peak_flop_per_s.get("fp8")) and a.vendor == "nvidia" and fp8 > 2.05 * a.peak_flop_per_s["bf16"]
    ]
    # A GeForce card computes bf16 at half rate when it accumulates in fp32, so its fp8 is four times that.
    assert [] == [name for name in sparse if not name.startswith("rtx-")]


def test_a_rack_of_72_shares_one_scale_up_domain(catalogue: Catalogue) -> None:
    racks = [n for n in catalogue.nodes.values() if n.accelerator in {"gb200", "gb300"}]
    assert {72} == {n.scale_up_domain for n in racks}
    assert {4} == {n.accelerators for n in racks}


def test_a_node_without_a_known_network_does_not_scale_out(catalogue: Catalogue) -> None:
    unknown = [n for n in catalogue.nodes.values() if n.fabric is FabricKind.UNKNOWN]
    assert unknown
    assert [] == [n.name for n in unknown if n.scales_out]


def test_an_offer_of_an_unknown_node_is_a_node_without_network(catalogue: Catalogue) -> None:
    offer = next(o for o in catalogue.offers if o.node is None)
    node = catalogue.node_of(offer)
    assert (offer.accelerator, offer.accelerators) == (node.accelerator, node.accelerators)
    assert not node.scales_out


def test_every_source_has_an_address(catalogue: Catalogue) -> None:
    assert [] == [key for key, source in catalogue.sources.items() if not source.url or not source.seen]


@pytest.mark.parametrize(("kind", "wrong", "right"), [
    ("accelerator", "h100-sxn", "h100-sxm"),
    ("node", "p5.48xlarg", "p5.48xlarge"),
    ("model", "lama-3.1-70b", "llama-3.1-70b"),
])  # fmt: skip
def test_a_near_miss_is_told_with_the_right_name(catalogue: Catalogue, kind: str, wrong: str, right: str) -> None:
    with pytest.raises(InputError, match=right):
        getattr(catalogue, kind)(wrong)


def test_your_own_parts_join_the_shipped_ones(folder: Path) -> None:
    both = load(folder)
    assert both.node("mine").scales_out
    assert "us" in both.providers
    assert len(load().offers) + 1 == len(both.offers)


def test_your_price_of_an_instance_replaces_the_shipped_ones(folder: Path) -> None:
    text = OFFER.replace('"us"', '"aws"').replace('"mine"', '"p5.48xlarge"')
    (folder / "offers.toml").write_text(text, encoding="utf-8")
    found = [o for o in load(folder).offers if (o.instance, o.term) == ("p5.48xlarge", "on-demand")]
    assert [16.0] == [o.price.usd for o in found]


def test_a_missing_folder_is_told_with_what_it_should_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder; it holds accelerators/"):
        load(tmp_path / "absent")


@pytest.mark.parametrize(("old", "new", "said"), [
    ('sources = ["https://example.com/our-racks"]', "sources = []", "no sources"),
    ("https://example.com/our-racks", "our-racks", "source our-racks is not in sources.toml"),
    ("nic_bits_per_s", "nic_gbps", "nic_gbps"),
    ("accelerators = 8", "accelerators = 0", "accelerators"),
    ("nics = 8", "nics = nan", "nics"),
    ('fabric = "roce"', "fabric = roce", "not valid TOML"),
    ('fabric = "roce"', 'fabric = "carrier pigeon"', "fabric"),
])  # fmt: skip
def test_a_node_that_is_wrong_is_refused_with_its_file(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "nodes" / "mine.toml").write_text(NODE.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=said) as refused:
        load(folder).node("mine")
    assert "mine.toml" in str(refused.value)


@pytest.mark.parametrize(("old", "new", "said"), [
    ("usd_per_node_hour = 16.0", "", "usd_per_node_hour is missing"),
    ("usd_per_node_hour = 16.0", "usd_per_node_hour = -1", "greater than 0"),
    ("usd_per_node_hour = 16.0", "usd_per_node_hour = inf", "finite"),
    ("usd_per_node_hour", "usd_per_gpu_hour", "usd_per_node_hour is missing"),
    ('source = "https://example.com/our-bill"', "", "source is missing"),
    ('"on-demand"', '"on demand"', "term"),
    ('"2026-11-01"', '"soon"', "seen"),
    ("[[offer]]", "[[offers]]", r"only \[\[offer\]\]"),
])  # fmt: skip
def test_an_offer_that_is_wrong_is_refused_with_its_place(folder: Path, old: str, new: str, said: str) -> None:
    (folder / "offers.toml").write_text(OFFER.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=said) as refused:
        load(folder)
    assert "offers.toml" in str(refused.value)


def test_the_files_that_the_reference_shows_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "catalog.md").read_text(encoding="utf-8")
    shown = re.findall(r"```toml\n# DIR/(\S+)\n(.*?)```", page, re.DOTALL)
    assert ["nodes/our-h100.toml", "offers.toml"] == [name for name, _ in shown]
    for name, text in shown:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    offer = load(tmp_path).offers[-1]
    assert (16, "our-h100") == (offer.largest_order, load(tmp_path).node_of(offer).name)
