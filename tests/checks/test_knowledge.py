"""Every fault in the knowledge fires on its example and not on its near miss."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose
from clusterwright.checks.observing import Observer
from clusterwright.probes.patterns import any_of
from clusterwright.probes.reading import Reader

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis
    from clusterwright.knowledge import Fault, Threshold, Xid

KNOWLEDGE = load_faults()
UNSOURCED = 42
"""Entries that say that no page was read for them: may only become fewer."""


def seen(text: str) -> set[str]:
    observer = Observer(KNOWLEDGE)
    observer.take(Reader(any_of(observer.words())).lines([io.BytesIO(text.encode())]))
    return {observation.judgement.name for observation in observer.seen.values()}


@pytest.mark.parametrize("fault", KNOWLEDGE.faults, ids=lambda fault: fault.name)
def test_a_fault_fires_on_its_example_and_not_on_its_near_miss(fault: Fault) -> None:
    assert fault.name in seen(fault.example)
    assert fault.name not in seen(fault.near_miss)


@pytest.mark.parametrize(
    "threshold",
    [one for one in KNOWLEDGE.thresholds if one.name not in {"socket-speed", "dcgm-link-down"}],
    ids=lambda threshold: threshold.name,
)
def test_a_threshold_fires_on_its_example_and_not_on_its_near_miss(threshold: Threshold) -> None:
    assert threshold.name in seen(threshold.example)
    assert threshold.name not in seen(threshold.near_miss)


@pytest.mark.parametrize("name", ["socket-speed", "dcgm-link-down"])
def test_a_threshold_over_all_readings_fires_on_its_example_alone(name: str) -> None:
    threshold = next(one for one in KNOWLEDGE.thresholds if one.name == name)
    assert [finding.cause for finding in answer(threshold.example).findings] == [threshold.cause]
    assert threshold.cause not in [finding.cause for finding in answer(threshold.near_miss).findings]


def answer(text: str) -> Diagnosis:
    return diagnose([io.BytesIO(text.encode())], KNOWLEDGE)


@pytest.mark.parametrize("xid", KNOWLEDGE.xids, ids=lambda xid: str(xid.code))
def test_every_xid_is_seen_by_its_number_and_its_neighbour_is_not(xid: Xid) -> None:
    line = "NVRM: Xid (PCI:0000:5e:00): {}, pid=7, name=python3, event"
    assert xid.name in seen(line.format(xid.code))
    assert xid.name not in seen(line.format(xid.code + 1000))


@pytest.mark.parametrize("xid", KNOWLEDGE.xids, ids=lambda xid: str(xid.code))
def test_no_unknown_xid_takes_a_node_away(xid: Xid) -> None:
    if xid.confidence == "unknown":
        assert xid.action in {"investigate", "none"}


def test_no_fault_of_unknown_confidence_takes_anything_away() -> None:
    actions = {fault.action for fault in KNOWLEDGE.faults if fault.confidence == "unknown"}
    assert actions <= {"investigate", "none"}


def test_configuration_is_never_answered_with_hardware() -> None:
    actions = {fault.action for fault in KNOWLEDGE.faults if fault.scope == "config"}
    assert actions <= {"fix-config", "investigate"}


def test_names_are_unique_and_every_entry_has_a_source_or_says_that_it_has_none() -> None:
    names = [fault.name for fault in KNOWLEDGE.faults] + [threshold.name for threshold in KNOWLEDGE.thresholds]
    assert len(names) == len(set(names))
    everything = (*KNOWLEDGE.faults, *KNOWLEDGE.thresholds, *KNOWLEDGE.xids)
    unsourced = {one.name for one in everything if not one.source.startswith("https://")}
    assert len(unsourced) <= UNSOURCED
    assert all(one.source.startswith(("https://", "none read: ")) for one in everything)
