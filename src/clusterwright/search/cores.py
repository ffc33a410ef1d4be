"""The work of a large search on all cores.

By processes: threads that make many short array operations wait for one another.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Given = TypeVar("Given")
Found = TypeVar("Found")

LARGE = 30_000_000
"""From so many candidates on it pays to start processes: some seconds of one core."""
MOST = 8
"""Processes; each holds some hundred megabytes."""


def shared(work: Callable[[Given], Found], tasks: Sequence[Given], size: int) -> Iterator[Found]:
    """The results of some tasks, in their order; on several cores where the whole is large.

    Args:
        work: A function of a module.
        tasks: Its arguments.
        size: Candidates of all tasks together. [1]
    """
    workers = min(_cores(), len(tasks), MOST) if size >= LARGE else 1
    if workers <= 1 or not _may_fork():
        yield from map(work, tasks)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
        yield from pool.map(work, tasks)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _may_fork() -> bool:
    """A copy of a process with other threads may hang on a lock that they held."""
    return sys.platform == "linux" and threading.active_count() == 1
