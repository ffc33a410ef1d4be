"""Arrays of layouts, and evaluating a law on the few distinct values of the axes it depends on."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.layout import Layout

SHARDINGS = ("none", "zero1", "zero2", "zero3", "fsdp", "hsdp", "distopt")
RECOMPUTES = ("none", "selective", "full")
SCHEDULES = ("1f1b", "zero-bubble")
WORDS = {"sharding": SHARDINGS, "recompute": RECOMPUTES, "schedule": SCHEDULES}
"""Columns that are places among words."""


@dataclass(frozen=True)
class Layouts:
    """Many layouts: integer arrays of any shapes that broadcast together."""

    tp: NDArray[np.integer]
    cp: NDArray[np.integer]
    pp: NDArray[np.integer]
    vpp: NDArray[np.integer]
    ep: NDArray[np.integer]
    dp: NDArray[np.integer]
    micro_batch: NDArray[np.integer]
    global_batch: NDArray[np.integer]
    sharding: NDArray[np.integer]
    """Index into `SHARDINGS`."""
    recompute: NDArray[np.integer]
    """Index into `RECOMPUTES`."""
    schedule: NDArray[np.integer] = field(default_factory=lambda: np.array([], dtype=np.int64))
    """Index into `SCHEDULES`; where it is not given, 1F1B."""

    def __post_init__(self) -> None:
        """Every layout has a schedule."""
        if not self.schedule.size:
            object.__setattr__(self, "schedule", np.zeros_like(self.tp))

    @classmethod
    def of(cls, *layouts: Layout) -> Layouts:
        """Arrays of shape (n,) from n layouts."""
        columns: dict[str, Any] = {}
        for column in fields(cls):
            values = [getattr(layout, column.name) for layout in layouts]
            if column.name in WORDS:
                values = [WORDS[column.name].index(v) for v in values]
            columns[column.name] = np.array(values, dtype=np.int64)
        return cls(**columns)

    @property
    def accelerators(self) -> NDArray[np.int64]:
        """World size of each layout."""
        return np.asarray(self.tp * self.cp * self.pp * self.dp, dtype=np.int64)

    @property
    def micro_batches(self) -> NDArray[np.int64]:
        """Micro-batches that a data-parallel rank of each layout runs in one step, at least one."""
        return np.asarray(np.maximum(self.global_batch // (self.dp * self.micro_batch), 1), dtype=np.int64)

    def flat(self) -> tuple[Layouts, tuple[int, ...]]:
        """All arrays broadcast to one shape and flattened; with that shape."""
        arrays = np.broadcast_arrays(*(np.asarray(getattr(self, f.name)) for f in fields(self)))
        return Layouts(*(a.reshape(-1) for a in arrays)), arrays[0].shape


def distinct(*axes: NDArray[np.integer]) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """The distinct combinations of small non-negative integer arrays, and where each element's is.

    Linear in the number of elements: no sorting.

    >>> values, where = distinct(np.array([1, 2, 1]), np.array([4, 4, 4]))
    >>> values[0].tolist(), where.tolist()
    ([1, 2], [0, 1, 0])
    """
    code = np.zeros(axes[0].shape, dtype=np.int64)
    tables = []
    for axis in axes:
        table = np.flatnonzero(np.bincount(axis)) if axis.size and int(axis.max()) < 10**7 else np.unique(axis)
        index = np.searchsorted(table, axis) if len(table) > 1 else 0
        code = code * len(table) + index
        tables.append(table)
    present = np.zeros(int(np.prod([len(t) for t in tables])), dtype=bool)
    present[code] = True
    codes = np.flatnonzero(present)
    where = (np.cumsum(present) - 1)[code]
    values: list[NDArray[np.int64]] = []
    rest = codes
    for table in reversed(tables):
        rest, index = np.divmod(rest, len(table))
        values.insert(0, table[index])
    return values, where
