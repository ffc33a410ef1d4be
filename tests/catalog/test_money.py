"""What owning takes, and what renting costs besides the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright import catalog
from clusterwright.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

FINANCE = '[finance]\nvalue = 0.12\nunit = "1/year"\nsource = "our bank"\nseen = "2026-11"\n'


def folder(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_every_figure_has_a_source_a_day_and_its_value_within_its_span() -> None:
    known = catalog.load()
    figures = [f for f in vars(known.owning).values() if hasattr(f, "span")]
    figures += [s.price for s in known.owning.servers] + [r.share for r in known.renting.reclaims]
    figures += [e.price for e in known.renting.egress]
    assert len(figures) > 25
    assert [] == [f for f in figures if not (f.source and f.seen and f.span[0] <= f.value <= f.span[1])]


def test_what_is_assumed_says_how_it_was_set() -> None:
    known = catalog.load()
    figures = [f for room in (known.owning, known.renting) for f in vars(room).values() if hasattr(f, "assumed")]
    assert [] == [f for f in figures if f.assumed and not f.note]
    assert any(f.assumed for f in figures)


def test_what_can_be_bought_is_a_node_of_the_catalogue() -> None:
    known = catalog.load()
    assert [] == [s.node for s in known.owning.servers if s.node not in known.nodes]


def test_one_s_own_block_replaces_the_shipped_one_and_no_other(tmp_path: Path) -> None:
    own = catalog.load(folder(tmp_path, "owning.toml", FINANCE)).owning
    shipped = catalog.load().owning
    assert (0.12, "our bank") == (own.finance.value, own.finance.source)
    assert (shipped.support, shipped.servers) == (own.support, own.servers)


def test_one_s_own_server_stands_beside_the_shipped_ones(tmp_path: Path) -> None:
    server = '[[server]]\nnode = "mi300x-ubb-server"\nnodes = 1\nvalue = 250000\n'
    text = server + 'unit = "USD"\nsource = "a quote"\nseen = "2026-11"\n'
    own = catalog.load(folder(tmp_path, "owning.toml", text)).owning
    found = own.server_of("mi300x-ubb-server")
    assert found is not None
    assert 250_000 == found.price.value
    assert own.server_of("dgx-h100") is not None
    assert own.server_of("nothing") is None


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (FINANCE.replace("1/year", "%"), "finance: unit '%', '1/year' is wanted"),
        (FINANCE.replace('source = "our bank"\n', ""), "finance: source"),
        (FINANCE + "low = 0.2\nhigh = 0.3\n", "finance: value 0.12 is not between low 0.2 and high 0.3"),
        (FINANCE.replace("[finance]", "[finanse]"), "unknown finanse"),
        ("finance = 0.12\n", "finance: write a table"),
        ("[finance\n", "not valid TOML"),
        ("server = 3\n", "write [[server]] tables"),
    ],
)
def test_a_figure_that_is_not_whole_is_refused_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(InputError) as refusal:
        catalog.load(folder(tmp_path, "owning.toml", text)).owning  # noqa: B018 - read when asked for
    assert "owning.toml" in str(refusal.value)
    assert fault in str(refusal.value)


def test_the_rate_of_the_provider_and_accelerator_comes_before_that_of_any() -> None:
    renting = catalog.load().renting
    assert "aws" == renting.reclaim_of("aws", "h100-sxm").provider
    assert "*" == renting.reclaim_of("nobody", "h100-sxm").provider
    assert renting.reclaim_of("nobody", "h100-sxm").share.assumed
    assert 0.0 == renting.egress_of("lambda").price.value
    assert renting.egress_of("nobody").price.assumed


def test_the_more_nodes_are_taken_a_month_the_sooner_one_is() -> None:
    renting = catalog.load().renting
    aws = [renting.reclaim_of("aws", a).node_mtbi_s for a in ("a100-40gb-sxm", "h100-sxm")]
    assert aws[0] > aws[1] > 3600 * renting.worst_reclaim.value
