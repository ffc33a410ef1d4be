"""Bands: an error that grows fails, a band is only tightened."""

from __future__ import annotations

import tomllib

import pytest

from clusterwright.catalog import load
from clusterwright.validation import Scoreboard, bands, validate_shipped
from tests.validation.runs import scored


@pytest.fixture(scope="module")
def board() -> Scoreboard:
    return validate_shipped(load())


def made_up(*errors: float) -> Scoreboard:
    runs = tuple(scored(1.0, 1.0 + error, id=str(i)) for i, error in enumerate(errors))
    return Scoreboard(len(runs), runs, ())


def test_no_error_of_the_shipped_runs_is_worse_than_it_was(board: Scoreboard) -> None:
    assert board.worsened is not None
    assert [] == [str(broken) for broken in board.worsened]


def test_every_source_that_was_never_fitted_is_held(board: Scoreboard) -> None:
    sources = {group["source_group"] for group in board.only("check").groups(by="source_group")}
    assert sources == set(bands.shipped()["step-by-source"])
    assert {"single-node", "multi-node"} == set(bands.shipped()["pick-regret"])


def test_an_error_over_its_band_is_named() -> None:
    (broken,) = bands.judge(made_up(0.02, 0.04, 0.06, 0.08, 0.5), {"step-by-source": {"s": 0.05}})
    assert "step-by-source s: 6.00%, the band is 5.0%" == str(broken)


def test_a_source_that_is_no_longer_scored_is_named() -> None:
    (broken,) = bands.judge(made_up(0.0, 0.0, 0.0, 0.0, 0.5), {"step-by-source": {"gone": 0.05}})
    assert "step-by-source gone: no run is scored any more" == str(broken)


def test_an_interval_that_holds_too_few_or_too_many_is_named() -> None:
    assert "80% interval" in str(bands.judge(made_up(0.5, 0.5, 0.0), {})[0])
    assert "80% interval" in str(bands.judge(made_up(0.0, 0.0, 0.0), {})[0])
    assert () == bands.judge(made_up(0.5, 0.0, 0.0, 0.0, 0.0), {})


def test_runs_that_were_fitted_hold_no_band() -> None:
    fitted = scored(1.0, 9.0, split="fit")
    assert {} == bands.figures(Scoreboard(1, (fitted,), ()))["step-by-source"]


def test_a_band_is_tightened_and_never_loosened() -> None:
    before = "# why\n[step-by-source]\nworse = 0.05\nbetter = 0.05\ngone = 0.05\n"
    after = bands.tighten(before, {"step-by-source": {"worse": 0.09, "better": 0.0201, "new": 0.3}})
    assert "# why" in after
    assert {"worse": 0.05, "better": 0.021, "gone": 0.05, "new": 0.3} == tomllib.loads(after)["step-by-source"]


def test_a_band_that_was_tightened_holds_the_figure_it_was_tightened_to() -> None:
    board = made_up(0.0213, 0.0213, 0.0213, 0.0213, 0.5)
    held = tomllib.loads(bands.tighten("", bands.figures(board)))
    assert () == bands.judge(board, held)
