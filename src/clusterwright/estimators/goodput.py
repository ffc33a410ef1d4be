"""Failures, checkpoints and useful time of a job, over arrays of cluster sizes.

The job is one that any interruption stops whole. Saves are of three modes:

- ``sync``: the job waits until the checkpoint is on storage.
- ``async``: it waits until the copy into host memory is prepared and made; the write runs behind, and a checkpoint
  counts once written.
- ``memory``: it waits for the copy alone, and what counts is a copy in the memory of another host, at the rate of the
  host link.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.laws import reliability as laws
from clusterwright.term import Kind, Term
from clusterwright.units import DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.hardware import FailureRates
    from clusterwright.units import Bytes, BytesPerSecond, Count, Seconds

    Floats = NDArray[np.float64]

SPARES_CONFIDENCE = 0.99
"""Share of the time in which the spares suffice, where nothing else is asked."""


SAVE_LAW = "bytes / bandwidth; asynchronous: of the copy, and a fixed time"


class SaveMode(StrEnum):
    """What the job waits for when it saves."""

    SYNC = "sync"
    ASYNC = "async"
    MEMORY = "memory"


@dataclass(frozen=True)
class GoodputEstimate:
    """Useful time of jobs; every field is an array of the broadcast shape of the arguments."""

    mtbf_s: Floats
    """Between interruptions of the job."""
    failures_per_day: Floats
    checkpoint_stall_s: Floats
    """How long one save stops the job."""
    checkpoint_lag_s: Floats
    """From the end of the stall until the checkpoint may be used."""
    interval_young_s: Floats
    interval_daly_s: Floats
    interval_exact_s: Floats
    checkpoint_interval_s: Floats
    """Useful work between saves that the goodput below is for."""
    goodput: Floats
    stall_share: Floats
    """Of the time, lost to saves."""
    restart_share: Floats
    """Of the time, lost to detection and restart."""
    rework_share: Floats
    """Of the time, lost to work done again."""
    spares: NDArray[np.int64]
    """Nodes."""


def estimate_goodput(
    accelerators: Count,
    checkpoint_bytes: Bytes,
    write_bytes_per_s: BytesPerSecond,
    rates: FailureRates,
    *,
    mode: SaveMode | str = SaveMode.ASYNC,
    interval_s: Seconds | None = None,
    confidence: float = SPARES_CONFIDENCE,
) -> GoodputEstimate:
    """Useful time of a job at its best checkpoint interval, or at the one given.

    Args:
        accelerators: Of the job [1], any shape.
        checkpoint_bytes: Of one checkpoint of the whole job [B].
        write_bytes_per_s: Of the storage, all writers together [B/s].
        rates: MTBF of an accelerator, detection, restart, repair, rate of the host link.
        mode: ``sync``, ``async`` or ``memory``.
        interval_s: Useful work between saves [s]; the exact optimum when none. Never shorter than the write behind.
        confidence: Share of the time in which the spares suffice [1].

    Returns:
        Every figure as an array of the broadcast shape.
    """
    count, size, rate = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.float64) for a in (accelerators, checkpoint_bytes, write_bytes_per_s))
    )
    mtbf = laws.job_mtbf(count, rates.mtbf_s)
    stall, lag = save_times(count, size, rate, rates.host_copy_bytes_per_s, mode, save_overhead_s=rates.save_overhead_s)
    restart = rates.detection_s + rates.restart_s
    exact = laws.checkpoint_interval_exact(stall, mtbf)
    wanted = exact if interval_s is None else np.broadcast_to(np.asarray(interval_s, dtype=np.float64), mtbf.shape)
    # A save that is written behind is done before the next begins.
    interval = np.maximum(wanted, lag - stall)
    useful = laws.goodput(interval, stall, restart, lag, mtbf)
    stall_share = np.where(interval > 0, useful * stall / np.where(interval > 0, interval, 1.0), 0.0)
    restart_share = -np.expm1(-restart / mtbf)
    # Each failure takes one node out, whatever number of accelerators it has.
    down = rates.hardware_share * rates.repair_s / mtbf
    return GoodputEstimate(
        mtbf_s=mtbf,
        failures_per_day=DAY / mtbf,
        checkpoint_stall_s=stall,
        checkpoint_lag_s=lag,
        interval_young_s=laws.checkpoint_interval_young_1974(stall, mtbf),
        interval_daly_s=laws.checkpoint_interval_daly_2006(stall, mtbf),
        interval_exact_s=exact,
        checkpoint_interval_s=interval,
        goodput=useful,
        stall_share=stall_share,
        restart_share=restart_share,
        rework_share=1.0 - useful - stall_share - restart_share,
        spares=laws.spares_needed(down, confidence),
    )


def with_reclaims(rates: FailureRates, node_mtbi_s: float, accelerators_a_node: int) -> FailureRates:
    """The same rates where a provider also takes nodes away: each time the job stops as by a failure.

    A node that is taken away needs no repair; that another can be had at once is taken for granted.

    Args:
        rates: Of failures.
        node_mtbi_s: Mean time of one node until it is taken away [s]; infinite: never.
        accelerators_a_node: [1].
    """
    failures, reclaims = 1.0 / rates.mtbf_s, 1.0 / (accelerators_a_node * node_mtbi_s)
    if not reclaims:
        return rates
    both = failures + reclaims
    return rates.model_copy(update={
        "mtbf_s": 1.0 / both,
        "hardware_share": rates.hardware_share * failures / both,
        "reclaim_share": 1.0 - (1.0 - rates.reclaim_share) * failures / both,
    })  # fmt: skip


def save_times(
    accelerators: Count,
    checkpoint_bytes: Bytes,
    write_bytes_per_s: BytesPerSecond,
    host_copy_bytes_per_s: BytesPerSecond,
    mode: SaveMode | str,
    *,
    save_overhead_s: Seconds,
) -> tuple[Floats, Floats]:
    """How long a save stops the job, and how long after that the checkpoint may be used [s], [s].

    Every accelerator holds an equal part and copies it at ``host_copy_bytes_per_s``; an asynchronous save takes
    ``save_overhead_s`` more, and where the write itself is over sooner, it is a synchronous one.

    >>> [float(t) for t in save_times(512, 5.29e12, 88e9, 55.4e9, "sync", save_overhead_s=0.77)]
    [60.1..., 0.0]
    >>> [float(t) for t in save_times(512, 5.29e12, 88e9, 55.4e9, "async", save_overhead_s=0.77)]
    [0.95..., 60.1...]
    """
    mode = SaveMode(mode)
    write = np.asarray(checkpoint_bytes, dtype=np.float64) / np.asarray(write_bytes_per_s)
    copy = np.asarray(checkpoint_bytes, dtype=np.float64) / (
        np.asarray(accelerators, dtype=np.float64) * np.asarray(host_copy_bytes_per_s)
    )
    if mode is SaveMode.SYNC:
        return write, np.zeros_like(write)
    if mode is SaveMode.MEMORY:
        return copy, copy
    behind = copy + np.asarray(save_overhead_s, dtype=np.float64)
    pays = behind < write
    return np.where(pays, behind, write), np.where(pays, write, 0.0)


@dataclass(frozen=True)
class Reclaims:
    """How often a provider takes a node of a job away."""

    mean_s: float
    """Mean time between two. [s]"""
    source: str


def explain_goodput(estimate: GoodputEstimate, rates: FailureRates, reclaims: Reclaims | None = None) -> Term:
    """The goodput of one job (scalar fields) as what is lost to what; of ``reclaims`` when its nodes are taken away."""
    source = rates.sources[0] if rates.sources else ""
    causes: tuple[Term, ...] = ()
    if reclaims is not None:
        failing = 1.0 / max(1.0 / float(estimate.mtbf_s) - 1.0 / reclaims.mean_s, 1e-300)
        causes = (
            Term(name="between failures", value=failing, unit="s", source=source),
            Term(name="between nodes taken away", value=reclaims.mean_s, unit="s", source=reclaims.source),
        )
        source = "failures, and nodes that the provider takes away"
    mtbf = Term(
        name="MTBF of the job", value=float(estimate.mtbf_s), unit="s", source=source, kind=Kind.ESTIMATED, parts=causes
    )
    interval = Term(name="checkpoint interval", value=float(estimate.checkpoint_interval_s), unit="s", source="optimum")
    stall = Term(name="stall of a save", value=float(estimate.checkpoint_stall_s), unit="s", source=SAVE_LAW)
    lost = (
        Term(
            name="saving",
            value=float(estimate.stall_share),
            unit="1",
            source="stall / interval",
            parts=(stall, interval),
        ),
        Term(name="detection and restart", value=float(estimate.restart_share), unit="1", source="1 - exp(-R / M)"),
        Term(name="work done again", value=float(estimate.rework_share), unit="1", source="Daly 2006, equation 13"),
    )
    return Term(
        name="goodput", value=float(estimate.goodput), unit="1", source="Daly 2006, equation 13", parts=(mtbf, *lost)
    )
