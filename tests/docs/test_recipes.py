"""The page that sets our layouts beside published recipes shows what its script finds."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright import catalog
from clusterwright.search.evaluate import TIE

if TYPE_CHECKING:
    from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def recipes() -> ModuleType:
    specification = importlib.util.spec_from_file_location("recipes", DOCS / "recipes.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["recipes"] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(recipes: ModuleType) -> list[Any]:
    return list(recipes.compared(catalog.load()))


def test_the_page_shows_every_job_and_every_model(recipes: ModuleType, rows: list[Any]) -> None:
    page = (DOCS / "recipes.md").read_text("utf-8")
    for name in recipes.PLANNED:
        assert page.count(f"| {name} |") == 3
    assert f"Of {len(rows)} jobs" in page
    for row in rows:
        model, cluster, precision = row.name.split(", ")
        assert f"| {model}, {cluster.strip()}, {precision}, batch {row.theirs.global_batch:,} |" in page


def test_a_recipe_that_fits_is_never_estimated_much_quicker_than_the_pick(rows: list[Any]) -> None:
    assert len(rows) > 30
    assert [] == [row.name for row in rows if row.fits and row.gap > 2 * TIE]


def test_every_pick_uses_the_accelerators_and_the_batch_of_its_recipe(rows: list[Any]) -> None:
    for row in rows:
        assert row.ours.accelerators == row.theirs.accelerators
        assert row.ours.global_batch == row.theirs.global_batch


def test_many_picks_split_the_model_as_the_recipe_does(rows: list[Any]) -> None:
    assert sum(all(row.splits) for row in rows) >= len(rows) // 4
