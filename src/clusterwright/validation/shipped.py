"""The published runs that are shipped, and the errors that they are held to."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from clusterwright.validation import bands
from clusterwright.validation.scoreboard import Scoreboard, validate

if TYPE_CHECKING:
    from clusterwright.estimators.observed import Known
    from clusterwright.measurement import Calibration


def validate_shipped(known: Known, calibration: Calibration | None = None, *, held: bool = True) -> Scoreboard:
    """Score every shipped run; the bands hold for the shipped facts and efficiencies alone (``held``)."""
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        board = validate((table,), known, calibration)
    return replace(board, worsened=bands.judge(board, bands.shipped())) if held else board
