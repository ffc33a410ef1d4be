"""What we saw: observed runs, ours or published, and the calibration fitted to them."""

from __future__ import annotations

from clusterwright.noun import Noun


class Factor(Noun):
    """A fitted, named factor with its spread (one standard deviation of its logarithm)."""

    value: float
    spread: float = 0.0


class Calibration(Noun):
    """Fitted efficiencies that multiply the shipped ones; empty means as shipped."""

    compute: Factor = Factor(value=1.0)
    communication: Factor = Factor(value=1.0)
    overhead: Factor = Factor(value=1.0)
    runs: int = 0
    error_before: float | None = None
    error_after: float | None = None
