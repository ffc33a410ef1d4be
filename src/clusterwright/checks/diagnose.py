"""The door of diagnose: logs in, verdict out."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from clusterwright.checks.expectation import against
from clusterwright.checks.observing import Observer
from clusterwright.checks.ranking import findings as ranked
from clusterwright.checks.topology import indexed
from clusterwright.errors import InputError
from clusterwright.health import Diagnosis, Evidence, Finding, Verdict
from clusterwright.probes.labels import file_of
from clusterwright.probes.patterns import any_of
from clusterwright.probes.reading import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from clusterwright.knowledge import Knowledge
    from clusterwright.plan import Plan

COLLECT = (
    "the kernel log of every node of the job (dmesg -T or journalctl -k), from 15 minutes before the first error",
    "the output of all ranks, not of rank 0 alone, with NCCL_DEBUG=INFO",
    "nvidia-smi -q and nvidia-smi nvlink -s of the nodes (or rocm-smi, hl-smi)",
    "ibstat and the port counters of the nodes, read twice",
)


def diagnose(
    paths: Iterable[str | Path | IO[bytes]],
    knowledge: Knowledge,
    plan: Plan | None = None,
    progress: Callable[[int], None] | None = None,
) -> Diagnosis:
    """Read logs and say what failed first, where, why, and what to do now; or honestly "unknown".

    Args:
        paths: Files, folders, gzip files, ``-`` for standard input, or open binary streams.
        knowledge: The faults to know; see `clusterwright.catalog.faults.load_faults`.
        plan: What was expected of the cluster, where known.
        progress: Called with the number of bytes just read [B].

    Returns:
        The verdict with its findings, most likely root first.

    Raises:
        InputError: a path does not exist, or nothing at all could be read; names it.

    >>> import io
    >>> from clusterwright.catalog.faults import load_faults
    >>> log = io.BytesIO(b"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    >>> diagnose([log], load_faults()).findings[0].action
    'reboot-node'
    """
    observer = Observer(knowledge)
    reader = Reader(any_of(observer.words()), progress)
    observer.take(reader.lines(paths), reader.repeats)
    observer.dumps = reader.dumps
    if reader.unreadable and len(reader.unreadable) >= len(reader.files) and not reader.bytes_read:
        raise InputError(reader.unreadable[0])
    found = indexed(ranked(observer), observer.readings) + (
        against(plan, observer.readings) if plan is not None else []
    )
    verdict = verdict_of(found, recognised=bool(_recognised(observer)), whole=not reader.unreadable)
    return Diagnosis(
        verdict=verdict,
        findings=tuple(_of_files(finding) for finding in found),
        read=tuple(sorted(observer.tools)),
        bytes_read=reader.bytes_read,
        collect=COLLECT if verdict == "unknown" else (),
        unreadable=tuple(reader.unreadable),
    )


def _of_files(finding: Finding) -> Finding:
    """The finding with the files as they are named, without the labels of the speakers in them."""

    def of_file(lines: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        return tuple(line.model_copy(update={"file": file_of(line.file)}) for line in lines)

    return finding.model_copy(update={"evidence": of_file(finding.evidence), "echoes": of_file(finding.echoes)})


def verdict_of(found: list[Finding], *, recognised: bool, whole: bool) -> Verdict:
    """Fault, healthy or unknown: "healthy" only where something was read, recognised, and found to be in order."""
    if not found:
        return "healthy" if recognised and whole else "unknown"
    first = found[0]
    if first.health == "failed":
        return "unknown" if first.confidence == "unknown" else "fault"
    if first.health == "degraded":
        return "fault" if first.confidence == "certain" else "unknown"
    return "healthy"


SLOW_BUS_GBPS = 50.0
"""Below this bus bandwidth [GB/s], without an expectation, a result may be a slow network or a small machine."""


def _recognised(observer: Observer) -> set[str]:
    """The kinds of output that can tell health by themselves."""
    speeds = [float(evidence.value) for evidence in observer.readings.get("nccl_tests.busbw", [])]
    silent = {"pytorch watchdog"} | ({"nccl-tests"} if max(speeds, default=0.0) < SLOW_BUS_GBPS else set())
    return observer.tools - silent
