"""Fresh prices: what is understood becomes an offer, the rest is counted, and nothing at all is an error in words."""

from __future__ import annotations

import logging
import sys
from datetime import date
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.catalog import load, prices
from clusterwright.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from clusterwright.market import Offer

HEAD = "provider,instance_name,location,price,gpu_count,gpu_name,gpu_memory,spot\n"
P5 = "aws,p5.48xlarge,us-east-1,55.04,8,H100,80,False\n"
DAY = date(2026, 11, 30)


def read(tmp_path: Path, text: str) -> tuple[list[Offer], dict[str, int]]:
    file = tmp_path / "prices.csv"
    file.write_text(text, encoding="utf-8")
    return prices.offers_of(prices.rows_of_csv(file), load(), seen=DAY, source="prices.csv")


def test_a_known_instance_becomes_an_offer_of_its_node(tmp_path: Path) -> None:
    (offer,), left_out = read(tmp_path, HEAD + P5)
    assert ("p5.48xlarge", "h100-sxm", 6.88, "on-demand", DAY) == (
        offer.node, offer.accelerator, offer.per_accelerator.usd, offer.term, offer.seen,
    )  # fmt: skip
    assert {} == left_out


@pytest.mark.parametrize(("row", "node", "accelerator", "term"), [
    ("lambdalabs,gpu_1x_gh200,us-east-3,2.29,1,GH200,96,False\n", None, "gh200", "on-demand"),
    ("azure,Standard_NC96ads_A100_v4,eastus,7.5,4,A100,80,True\n", None, "a100-80gb-pcie", "spot"),
    ("runpod,NVIDIA H100 PCIe,CA,2.89,1,H100,80,False\n", None, "h100-pcie", "on-demand"),
    ("gcp,p5.48xlarge,us-east-1,55.04,8,H100,80,False\n", None, "h100-sxm", "on-demand"),
])  # fmt: skip
def test_an_instance_that_is_not_in_the_catalogue_has_no_node(
    tmp_path: Path, row: str, node: str | None, accelerator: str, term: str
) -> None:
    (offer,), _ = read(tmp_path, HEAD + row)
    assert (node, accelerator, term) == (offer.node, offer.accelerator, offer.term)


def test_rows_that_are_not_understood_are_counted_by_reason(tmp_path: Path) -> None:
    offers, left_out = read(tmp_path, HEAD + P5 + "aws,g3,us-east-1,1.1,1,M60,8,False\n" * 2)
    assert (1, {"M60 8 GB is not in the catalogue": 2}) == (len(offers), left_out)


@pytest.mark.parametrize(("text", "said"), [
    ("", "line 1: column provider"),
    (HEAD.replace("price,", ""), "line 1: column price is missing"),
    (HEAD, "no prices in it"),
    (HEAD + "aws,p5.48xlarge,us-east-1\n", "line 2: fewer fields"),
    (HEAD + P5.replace("55.04", "-1"), "line 2: price '-1'"),
    (HEAD + P5.replace("55.04", "nan"), "line 2: price 'nan'"),
    (HEAD + P5.replace("55.04", "cheap"), "line 2: price 'cheap'"),
    (HEAD + P5.replace(",8,", ",0,"), "gpu_count '0'"),
    (HEAD + "aws,g3,us-east-1,1.1,1,M60,8,False\n", "not one price is of an accelerator in the catalogue"),
])  # fmt: skip
def test_a_table_that_is_wrong_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_what_is_written_is_read_back_as_the_same_offers(tmp_path: Path) -> None:
    offers, _ = read(tmp_path, HEAD + P5 + "runpod,NVIDIA H100 PCIe,CA,2.89,1,H100,80,True\n")
    prices.write_offers(tmp_path / "mine", offers)
    assert offers == [o for o in load(tmp_path / "mine").offers if o.source == "prices.csv"]


def gpuhunt(monkeypatch: pytest.MonkeyPatch, items: list[Any], broken: str = "") -> None:
    """Put a client in the place of gpuhunt."""

    class Catalog:
        def load(self) -> None:
            logging.getLogger("gpuhunt._internal.catalog").error("Failed to load %s catalog", "oci")
            if broken:
                raise OSError(broken)

        def query(self, min_gpu_count: int) -> list[Any]:
            return [item for item in items if item.gpu_count >= min_gpu_count]

    module = ModuleType("gpuhunt")
    module.Catalog = Catalog  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gpuhunt", module)


def test_prices_come_from_gpuhunt(monkeypatch: pytest.MonkeyPatch) -> None:
    item = SimpleNamespace(
        **dict(zip(prices.COLUMNS, ("aws", "p5.48xlarge", "x", 55.04, 8, "H100", 80.0, True), strict=True))
    )
    gpuhunt(monkeypatch, [item])
    rows, said = prices.rows_of_gpuhunt()
    (offer,), _ = prices.offers_of(rows, load(), seen=DAY, source="gpuhunt")
    assert ["Failed to load oci catalog"] == said
    assert ("p5.48xlarge", "spot", 55.04) == (offer.node, offer.term, offer.price.usd)


def test_a_network_that_is_down_is_an_error_in_words_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpuhunt(monkeypatch, [], broken="no route to host")
    with pytest.raises(InputError, match=r"no route to host.*offline"):
        prices.rows_of_gpuhunt()
    assert ("", "") == tuple(capsys.readouterr())


def test_providers_that_answer_with_nothing_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    gpuhunt(monkeypatch, [])
    with pytest.raises(InputError, match="answered with nothing"):
        prices.rows_of_gpuhunt()


def test_without_gpuhunt_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(InputError, match=r"clusterwright\[prices\]"):
        prices.rows_of_gpuhunt()
