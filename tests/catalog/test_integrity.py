"""The catalogue is held against itself, and a slip in it is found."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog import load
from clusterwright.catalog.integrity import STALE_DAYS, integrity

if TYPE_CHECKING:
    from pathlib import Path

OFFER = """
[[offer]]
provider = "us"
node = "p5.48xlarge"
instance = "mine"
accelerator = "h100-sxm"
accelerators = 8
term = "on-demand"
usd_per_node_hour = 16.0
seen = "2026-11-01"
source = "https://example.com/our-bill"
"""


def errors(folder: Path | None = None) -> list[tuple[str, str]]:
    found = integrity(load(folder), load().date)
    return [(c.what, c.why) for c in found if c.severity == "error"]


def test_the_shipped_catalogue_holds() -> None:
    assert [] == errors()


@pytest.mark.parametrize(("old", "new", "what"), [
    ("usd_per_node_hour = 16.0", "usd_per_node_hour = 1600.0", "price"),
    ("usd_per_node_hour = 16.0", "usd_per_node_hour = 0.16", "price"),
    ('"p5.48xlarge"', '"p5.48xlarg"', "node"),
    ("accelerators = 8", "accelerators = 4", "accelerators"),
    ('accelerator = "h100-sxm"', 'accelerator = "h200-sxm"', "accelerators"),
])  # fmt: skip
def test_a_slip_in_an_offer_is_an_error(tmp_path: Path, old: str, new: str, what: str) -> None:
    (tmp_path / "offers.toml").write_text(OFFER.replace(old, new), encoding="utf-8")
    assert [what] == [found for found, _ in errors(tmp_path)]


def test_an_offer_of_an_accelerator_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    text = OFFER.replace('accelerator = "h100-sxm"', 'accelerator = "h100"').replace('node = "p5.48xlarge"', "")
    (tmp_path / "offers.toml").write_text(text, encoding="utf-8")
    assert [("accelerator", "'h100' is not in the catalogue")] == errors(tmp_path)


def test_a_node_of_an_accelerator_that_nobody_knows_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "mine.toml").write_text(
        'name = "other"\nprovider = "us"\naccelerator = "h100"\naccelerators = 8\nscale_up_domain = 12\nnics = 0\n'
        'nic_bits_per_s = 0.0\nfabric = "none"\nsources = ["https://example.com"]\n',
        encoding="utf-8",
    )
    assert ["name", "accelerator", "scale_up_domain"] == [what for what, _ in errors(tmp_path)]


def test_a_model_whose_shape_misses_its_published_count_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    shape = 'count = 2\nmixer = {kind = "attention", heads = 4, kv_heads = 4, head_size = 16}'
    (tmp_path / "models" / "mine.toml").write_text(
        'name = "mine"\nhidden = 64\nvocab = 100\npublished_parameters = 2e5\nsources = ["https://example.com"]\n'
        f"[[blocks]]\n{shape}\n",
        encoding="utf-8",
    )
    assert ["parameters"] == [what for what, _ in errors(tmp_path)]


def test_a_file_that_cannot_be_read_is_one_error_and_the_rest_is_still_checked(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    (tmp_path / "nodes" / "mine.toml").write_text("name = ", encoding="utf-8")
    (tmp_path / "offers.toml").write_text(OFFER.replace("16.0", "0.16"), encoding="utf-8")
    assert ["file", "price"] == [what for what, _ in errors(tmp_path)]


@pytest.mark.parametrize(("days", "found_old"), [(STALE_DAYS, []), (STALE_DAYS + 1, ["us mine on-demand"])])
def test_a_price_is_old_after_sixty_days(tmp_path: Path, days: int, found_old: list[str]) -> None:
    (tmp_path / "offers.toml").write_text(OFFER, encoding="utf-8")
    found = integrity(load(tmp_path), date(2026, 11, 1) + timedelta(days=days))
    assert found_old == [c.where for c in found if c.what == "old price" and c.where.startswith("us mine")]


SERVER = """
[[server]]
node = "{node}"
nodes = {nodes}
value = {value}
unit = "USD"
source = "a quote"
seen = "2026-11"
"""


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        (SERVER.format(node="mi300x-ubb-server", nodes=1, value=12_000_000), "price", "for how many nodes"),
        (SERVER.format(node="nothing", nodes=1, value=300_000), "node", "is not in the catalogue"),
        ('[finance]\nvalue = 8\nunit = "%"\nsource = "a"\nseen = "2026"\n', "figure", "is wanted"),
    ],
)
def test_a_slip_in_what_owning_takes_is_an_error(tmp_path: Path, text: str, what: str, why: str) -> None:
    (tmp_path / "owning.toml").write_text(text, "utf-8")
    (found,) = [c for c in integrity(load(tmp_path), date(2026, 11, 30)) if c.severity == "error"]
    assert what == found.what
    assert why in found.why
