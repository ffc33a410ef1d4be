"""Where the errors of a source may come from: what its steps are made of, and what the error goes with."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from clusterwright.estimators.observed import Scored

LEAST = 8
"""Runs that a source must have for a correlation to say anything."""


@dataclass(frozen=True)
class Residual:
    """One source: its errors, and its estimated steps by term."""

    source: str
    n: int
    median_abs_error: float
    bias: float
    """Median of estimated / measured - 1."""
    shares: dict[str, float]
    """Mean share of the estimated step time of each term."""
    goes_with: str | None
    """The term whose share goes with the error: where it is large, the estimate is high, or (below zero) low."""
    correlation: float | None
    """Spearman's, of that share and the signed error."""


def residuals(scored: Iterable[Scored]) -> list[Residual]:
    """Every source with measured step times, the worst first."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for item in scored:
        if item.run.number("step_time_s"):
            groups[item.run.text("source_group") or "-"].append(item)
    return sorted((_residual(name, rows) for name, rows in groups.items()), key=lambda r: -r.median_abs_error)


def _residual(source: str, rows: Sequence[Scored]) -> Residual:
    step = np.array([item.step_s for item in rows])
    error = step / np.array([item.run.number("step_time_s") for item in rows]) - 1
    names = list(dict.fromkeys(name for item in rows for name in item.parts))
    shares = {name: np.array([item.parts.get(name, 0.0) for item in rows]) / step for name in names}
    found = {name: rank_correlation(share, error) for name, share in shares.items()} if len(rows) >= LEAST else {}
    goes_with = max(found, key=lambda name: abs(found[name]), default=None)
    return Residual(
        source,
        len(rows),
        float(np.median(np.abs(error))),
        float(np.median(error)),
        {name: float(share.mean()) for name, share in shares.items()},
        goes_with,
        None if goes_with is None else found[goes_with],
    )


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    r"""Spearman's correlation: Pearson's, of the ranks; equals share the mean of their ranks.

    Args:
        one: A figure of each thing. [any unit], shape (n,)
        other: Another. [any unit], shape (n,)

    Returns:
        From -1 to 1; 0 where one of the two is the same for all [1].

    Sources:
        Spearman, "The proof and measurement of association between two things", Am. J. Psychol. 15 (1904), 72-101.

    >>> rank_correlation(np.array([1.0, 2.0, 4.0]), np.array([9.0, 8.0, 1.0]))
    -1.0
    """
    first, second = (_ranks(v) - (len(v) - 1) / 2 for v in (one, other))
    scale = np.sqrt((first @ first) * (second @ second))
    return float(first @ second / scale) if scale else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[where], dtype=float)


def documents(found: Iterable[Residual]) -> list[dict[str, Any]]:
    """The residuals as JSON."""
    return [asdict(one) for one in found]
