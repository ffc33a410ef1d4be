"""What a plan asks of storage: bytes of a checkpoint, bandwidth for a bounded stall, capacity, who delivers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.facility import StorageNeed
from clusterwright.hardware import Storage
from clusterwright.laws import reliability as laws

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from clusterwright.facility import FacilityFigures, SaveWay
    from clusterwright.hardware import StorageSystem
    from clusterwright.units import Bytes, BytesPerSecond, Count, Seconds, Share

    Floats = NDArray[np.float64]

CHECKPOINT_BYTES_PER_PARAMETER = 12.9
"""Full training state in mixed precision as saved: Llama 3 70B, 912 GB; others measure 13.1.

Source: https://github.com/mlcommons/storage, Submission_guidelines.md, table 2 (2025-06-13).
"""

CHECKPOINT_FORMATS = {"full": CHECKPOINT_BYTES_PER_PARAMETER, "weights-fp32": 4.0, "weights-bf16": 2.0}
"""Bytes saved of a parameter by what a checkpoint holds: what training goes on from, or the weights alone. [B]"""
CHECKPOINTS_KEPT = 10
"""Checkpoints that are kept where nothing else is asked. [1]"""
_ITERATIONS = 200


def checkpoint_bytes(parameters: Count, bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER) -> Floats:
    """Bytes of one checkpoint [B]: parameters times what is saved of each (gradients are not).

    Args:
        parameters: Trained parameters [1], any shape; for adapters those of the adapters.
        bytes_per_parameter: [B].

    >>> float(checkpoint_bytes(70.6e9)) / 1e9
    910.74
    """
    return np.asarray(parameters, dtype=np.float64) * bytes_per_parameter


def write_bandwidth_for_stall(size: Bytes, mtbf: Seconds, stall_share: Share = 0.01) -> Floats:
    r"""Storage bandwidth at which synchronous saves, at their optimum, stop the job for that share of its time.

    .. math:: \delta = \sigma \, (\tau(\delta) + \delta), \qquad W = B / \delta

    with the exact optimum :math:`\tau`, solved by bisection (the share grows with :math:`\delta`).

    Args:
        size: Of a checkpoint, :math:`B` [B], any shape.
        mtbf: Of the job, :math:`M` [s].
        stall_share: :math:`\sigma` [1].

    Returns:
        [B/s], the broadcast shape.

    >>> round(float(write_bandwidth_for_stall(912e9, 50 * 3600.0)) / 1e9, 1)  # 70B on about 1,000 H100
    25.2
    """
    data, mean = np.broadcast_arrays(np.asarray(size, dtype=np.float64), np.asarray(mtbf, dtype=np.float64))
    low, high = np.zeros_like(mean), mean.copy()
    for _ in range(_ITERATIONS):
        middle = (low + high) / 2.0
        share = middle / (laws.checkpoint_interval_exact(middle, mean) + middle)
        low, high = np.where(share < stall_share, middle, low), np.where(share < stall_share, high, middle)
    return np.asarray(data / high, dtype=np.float64)


def read_bandwidth_for_data(samples_per_s: Count, sample_bytes: Bytes) -> Floats:
    """Bandwidth that feeding the job needs [B/s]: text is nearly free (a token is 2 to 4 bytes), images are not.

    >>> float(read_bandwidth_for_data(1e6, 4.0)) / 1e6  # a million tokens a second
    4.0
    """
    return np.asarray(samples_per_s, dtype=np.float64) * np.asarray(sample_bytes, dtype=np.float64)


def token_bytes(vocab: int) -> float:
    """Bytes of one token as it lies on disk [B]: a whole number of two bytes while the vocabulary allows it.

    >>> token_bytes(32_000), token_bytes(128_256)
    (2.0, 4.0)
    """
    return 2.0 if vocab <= 2**16 else 4.0


def require_storage(  # noqa: PLR0913 - what a job writes, reads and keeps
    size: float,
    mtbf_s: float,
    interval_s: float,
    figures: FacilityFigures,
    *,
    stall_share: float = 0.01,
    checkpoints_kept: int = CHECKPOINTS_KEPT,
    data_bytes: float = 0.0,
    read_bytes_per_s: float = 0.0,
    ways: tuple[SaveWay, ...] = (),
) -> StorageNeed:
    """The bandwidth and the capacity of one plan, what it costs, and which measured systems have the bandwidth.

    Args:
        size: Of a checkpoint [B].
        mtbf_s: Of the job [s].
        interval_s: Between saves [s], for asynchronous ones.
        figures: Systems as measured, prices of storage.
        stall_share: Share of the time that synchronous saves may take [1].
        checkpoints_kept: [1].
        data_bytes: Of the data set [B].
        read_bytes_per_s: That feeding the job needs [B/s].
        ways: What each way of saving does, where it was estimated.
    """
    sync = float(write_bandwidth_for_stall(size, mtbf_s, stall_share))
    capacity = checkpoints_kept * size + data_bytes
    room = capacity * figures.storage_over_use
    return StorageNeed(
        checkpoint_bytes=size,
        sync_write_bytes_per_s=sync,
        async_write_bytes_per_s=size / interval_s,
        read_bytes_per_s=read_bytes_per_s,
        checkpoints_kept=checkpoints_kept,
        data_bytes=data_bytes,
        capacity_bytes=capacity,
        room_bytes=room,
        usd_per_month=room * figures.usd_per_byte_month,
        capex_usd=room * figures.usd_per_byte,
        ways=ways,
        deliverers=who_delivers(sync, figures.systems),
    )


def who_delivers(write_bytes_per_s: float, systems: Iterable[StorageSystem]) -> tuple[StorageSystem, ...]:
    """Systems that write as fast as asked: measured ones first, then advice of vendors; the smallest first."""
    able = [s for s in systems if s.write_bytes_per_s is not None and s.write_bytes_per_s >= write_bytes_per_s]
    return tuple(sorted(able, key=lambda s: (s.guideline, s.write_bytes_per_s or 0.0, s.name)))


def who_reads(read_bytes_per_s: float, systems: Iterable[StorageSystem]) -> tuple[StorageSystem, ...]:
    """Systems that read as fast as asked: measured ones first, then advice of vendors; the smallest first."""
    able = [s for s in systems if s.read_bytes_per_s is not None and s.read_bytes_per_s >= read_bytes_per_s]
    return tuple(sorted(able, key=lambda s: (s.guideline, s.read_bytes_per_s or 0.0, s.name)))


def storage_of_plan(size: float, interval_s: float, write_bytes_per_s: BytesPerSecond) -> Storage:
    """The storage as a plan carries it."""
    return Storage(write_bytes_per_s=float(write_bytes_per_s), checkpoint_bytes=size, checkpoint_interval_s=interval_s)
