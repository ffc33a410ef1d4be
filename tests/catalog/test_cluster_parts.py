"""Figures without unit or source are refused; the shipped ones are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog import cluster_parts
from clusterwright.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def test_every_shipped_figure_says_where_it_is_from() -> None:
    assert all(s.startswith("http") for s in cluster_parts.load_fabric_parts().sources)
    assert all(run.source.startswith("http") for run in cluster_parts.load_published_runs())
    assert all("http" in s.source or "arXiv" in s.source for s in cluster_parts.load_storage_systems())


def test_the_causes_add_up_to_the_interruptions_and_to_the_share_that_needs_repair() -> None:
    causes, rates = cluster_parts.load_failure_causes(), cluster_parts.load_failure_rates()
    assert 419 == sum(c.count for c in causes)
    assert rates.hardware_share == pytest.approx(sum(c.count for c in causes if c.repair) / 419, abs=0.001)
    assert rates.mtbf_s == pytest.approx(16384 * 54 * 86400 / 419, rel=1e-6)


def test_what_is_assumed_is_told() -> None:
    assert any("repair" in a for a in cluster_parts.load_failure_rates().assumptions)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "switch_ports is missing"),
        ("switch_ports = 64", "switch_ports is missing"),
        ('[switch_ports]\nvalue = 64\nunit = "1"\nseen = "2024"', "source missing"),
        ('[switch_ports]\nvalue = 64\nunit = "W"\nseen = "2024"\nsource = "x"', "'1' is wanted"),
        ("[", "not TOML"),
    ],
)
def test_a_figure_without_unit_or_source_is_refused_with_its_place(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "parts.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=word) as refused:
        cluster_parts.load_fabric_parts(path)
    assert str(path) in str(refused.value)


def test_a_storage_row_of_another_unit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "storage.toml"
    row = 'name = "x"\nscale = "y"\nunit = "GB/s"\nmetric = "z"\ndate = "2024"\nsource = "s"'
    path.write_text(f"[[system]]\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match="'B/s' is wanted"):
        cluster_parts.load_storage_systems(path)
