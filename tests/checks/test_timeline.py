"""Times of all files are brought to one clock, so that what failed first comes first."""

from __future__ import annotations

import io

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose
from clusterwright.checks.timeline import Timeline
from clusterwright.health import Evidence, Where
from clusterwright.probes.envelope import time_of

KNOWLEDGE = load_faults()
XID = "NVRM: Xid (PCI:0000:{}:00): 48, DBE (double bit error)"


def line(text: str, file: str = "a.log", node: str | None = None) -> Evidence:
    time_s, clock = time_of(text.encode())
    return Evidence(file=file, line=1, text=text, time_s=time_s, clock=clock, where=Where(node=node))


def first(*texts: str) -> str | None:
    said = diagnose([io.BytesIO(text.encode()) for text in texts], KNOWLEDGE)
    return said.findings[0].where.accelerator


def test_the_earlier_of_two_causes_comes_first_whatever_the_order_of_the_files() -> None:
    late = "2026-01-05T04:10:09Z node-1 kernel: " + XID.format("aa")
    early = "2026-01-05T04:10:01Z node-2 kernel: " + XID.format("bb")
    assert first(late, early) == first(early, late) == "0000:bb:00.0"


def test_a_zone_is_heeded() -> None:
    late = "2026-01-05T04:10:09+00:00 node-1 kernel: " + XID.format("aa")
    early = "2026-01-05T05:10:01+01:00 node-2 kernel: " + XID.format("bb")
    assert first(late, early) == "0000:bb:00.0"


def test_a_time_without_year_takes_the_year_of_the_others() -> None:
    late = "2026-01-05T04:10:09Z node-1 kernel: " + XID.format("aa")
    early = "Jan  5 04:10:01 node-2 kernel: " + XID.format("bb")
    assert first(late, early) == "0000:bb:00.0"


def test_a_time_without_year_crosses_new_year() -> None:
    evidence = [line("2026-01-01T00:00:30Z x"), line("Dec 31 23:59:50 node-2 kernel: x", "b.log")]
    timeline = Timeline.of(evidence)
    assert [timeline.at(one) for one in evidence] == [pytest.approx(1767225630), pytest.approx(1767225590)]


def test_seconds_since_boot_are_told_by_a_line_that_has_both() -> None:
    both = line("Jan  5 04:10:00 node-2 kernel: [  100.000000] x", "messages", "node-2")
    kernel = line("[  103.500000] NVRM: y", "dmesg", "node-2")
    timeline = Timeline.of([both, kernel])
    assert timeline.at(kernel) == pytest.approx(timeline.at(both) + 3.5)  # type: ignore[operator]


def test_seconds_since_boot_alone_have_no_moment() -> None:
    kernel = line("[  103.500000] NVRM: y", "dmesg", "node-2")
    assert Timeline.of([kernel]).at(kernel) is None
