"""Several processes find what one finds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clusterwright.search import cores
from clusterwright.search.design import offered_by, setting_of, trainable
from clusterwright.search.table import evaluate
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.search.design import Known


def process_of(_: int) -> int:
    return os.getpid()


def test_a_small_work_stays_in_this_process() -> None:
    assert {os.getpid()} == set(cores.shared(process_of, range(4), cores.LARGE - 1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot copy a process")
def test_a_large_work_leaves_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_cores", lambda: 2)
    monkeypatch.setattr(cores, "_may_fork", lambda: True)
    found = list(cores.shared(process_of, range(4), cores.LARGE))
    assert len(found) == 4
    assert os.getpid() not in found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot copy a process")
def test_a_search_by_processes_finds_the_same(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = wish(constraints={"accelerators": ["h100-sxm", "h200-sxm"]})
    setting = setting_of(asked, trainable(asked.workload), known)
    kinds = offered_by(asked, setting, known).kinds
    told: list[float] = []
    one = evaluate(setting, kinds, 16, {})
    monkeypatch.setattr(cores, "LARGE", 1)
    monkeypatch.setattr(cores, "_cores", lambda: 2)
    monkeypatch.setattr(cores, "_may_fork", lambda: True)
    two = evaluate(setting, kinds, 16, {}, told.append)
    assert one.counts == two.counts
    assert one.refused == two.refused
    assert np.array_equal(one.time_s, two.time_s)
    assert np.array_equal(one.cost_usd, two.cost_usd)
    assert [one.candidate(i) for i in range(len(one.rows))] == [two.candidate(i) for i in range(len(two.rows))]
    assert told == sorted(told)
    assert told[-1] == 1.0
