"""``clusterwright catalog`` as people and scripts meet it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from clusterwright import cli

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("accelerators", "nodes", "models", "offers", "money", "sources")
TABLE = (
    "provider,instance_name,location,price,gpu_count,gpu_name,gpu_memory,spot\naws,p5.48xlarge,x,{},8,H100,80,False\n"
)


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["catalog", *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_is_one_document_with_every_entry(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert run("list", kind, "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document[kind]) > 20
    where = "source" if kind == "offers" else "url" if kind == "sources" else "sources"
    assert [] == [row for row in document[kind] if not row[where]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_fits_a_hundred_columns(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    assert run("list", kind) == 0
    assert [] == [line for line in capsys.readouterr().out.splitlines() if len(line) > 100]


def test_an_unknown_kind_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "acelerators") == 2
    assert capsys.readouterr().err == "error: unknown kind 'acelerators'; did you mean accelerators?\n"


@pytest.mark.parametrize("name", ["h100-sxm", "p5.48xlarge", "llama-3.1-70b", "lambda"])
def test_show_ends_with_its_sources_and_offers(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert run("show", name) == 0
    printed = capsys.readouterr().out
    assert name in printed
    assert "sources\n" in printed
    assert "https://" in printed
    assert (name == "llama-3.1-70b") is ("offers\n" not in printed)


def test_a_price_is_shown_per_accelerator_with_its_day(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "p5.48xlarge", "--format", "json") == 0
    offers = json.loads(capsys.readouterr().out)["offers"]
    prices = {o["usd_per_accelerator_hour"] for o in offers if o["term"] == "on-demand"}
    assert {6.88} == prices
    assert [] == [o for o in offers if not o["seen"] or o["age_days"] < 0]


def test_a_name_nobody_knows_is_told_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "h100-sxn") == 2
    assert "did you mean h100-sxm" in capsys.readouterr().err


def test_the_shipped_catalogue_passes_its_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert 0 == document["errors"]
    assert {"old price"} <= {c["what"] for c in document["findings"]}


def test_a_catalogue_with_a_slip_fails_its_check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "offers.toml").write_text(
        '[[offer]]\nprovider = "us"\ninstance = "mine"\naccelerator = "h100-sxm"\naccelerators = 8\nterm = "spot"\n'
        'usd_per_node_hour = 3000\nseen = "2026-11-01"\nsource = "https://example.com"\n',
        encoding="utf-8",
    )
    assert run("check", "--catalog", tmp_path) == 1
    assert "per node or per accelerator?" in capsys.readouterr().out


def test_a_refreshed_price_is_used_in_place_of_the_shipped_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "prices.csv").write_text(TABLE.format(40), encoding="utf-8")
    assert run("refresh", "--csv", tmp_path / "prices.csv", "--out", tmp_path / "mine") == 0
    capsys.readouterr()
    assert run("show", "p5.48xlarge", "--catalog", tmp_path / "mine", "--format", "json") == 0
    offers = json.loads(capsys.readouterr().out)["offers"]
    assert {5.0} == {o["usd_per_accelerator_hour"] for o in offers if o["term"] == "on-demand"}


def test_a_table_that_is_wrong_leaves_the_prices_as_they_were(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "mine"
    for price, code in ((40, 0), (-40, 2)):
        (tmp_path / "prices.csv").write_text(TABLE.format(price), encoding="utf-8")
        assert code == run("refresh", "--csv", tmp_path / "prices.csv", "--out", out)
    assert "error: prices.csv: line 2: price '-40'" in capsys.readouterr().err
    assert "usd_per_node_hour = 40.0" in (out / "offers.toml").read_text(encoding="utf-8")


def test_a_figure_is_shown_with_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "h100-sxm") == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line]
    assert ["memory", "80 GiB"] in lines
    assert ["scale_up", "450 GB/s"] in lines
    assert ["peak", "bf16 989 Tflop/s, fp16 989 Tflop/s, tf32 494.5 Tflop/s, fp8 1,979 Tflop/s"] in lines


def test_the_layers_of_a_model_are_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", "gemma-2-9b") == 0
    layers = [line for line in capsys.readouterr().out.splitlines() if " layers of attention (heads 16" in line]
    assert 2 == len(layers)
    assert ["21", "21"] == [line.removeprefix("blocks").split()[0] for line in layers]


def test_no_term_of_an_offer_is_cut_short(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "offers") == 0
    assert " capacity-block " in capsys.readouterr().out
