"""Dumps of the flight recorder name the rank that did not come."""

from __future__ import annotations

import io
import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from pathlib import Path

    from clusterwright.health import Diagnosis

KNOWLEDGE = load_faults()


def dump(enqueued: int, completed: int, *, ranks: int = 4, name: str = "nccl:all_reduce") -> dict[str, Any]:
    entries = [
        {
            "process_group": ["0", "default_pg"], "collective_seq_id": seq, "profiling_name": name, "is_p2p": False,
            "input_sizes": [[4]], "state": "completed" if seq <= completed else "scheduled",
        }
        for seq in range(1, enqueued + 1)
    ]  # fmt: skip
    return {
        "version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str([*range(ranks)])}},
        "pg_status": {"0": {"last_enqueued_collective": enqueued, "last_completed_collective": completed}},
        "entries": entries,
    }  # fmt: skip


def answer(folder: Path, dumps: dict[int, dict[str, Any]], *, pickled: bool = False) -> Diagnosis:
    for rank, told in dumps.items():
        data = pickle.dumps(told) if pickled else json.dumps(told).encode()
        (folder / f"nccl_trace_rank_{rank}").write_bytes(data)
    return diagnose([folder], KNOWLEDGE)


@pytest.mark.parametrize("pickled", [False, True])
def test_the_rank_that_did_not_come_is_named(tmp_path: Path, *, pickled: bool) -> None:
    said = answer(tmp_path, {0: dump(7, 6), 1: dump(7, 6), 2: dump(6, 6), 3: dump(7, 6)}, pickled=pickled)
    first = said.findings[0]
    assert (said.verdict, first.where.rank, first.action) == ("fault", "2", "investigate")
    assert "collective 7 (nccl:all_reduce) of group default_pg" in first.because


def test_all_ranks_in_the_same_collective_name_none(tmp_path: Path) -> None:
    said = answer(tmp_path, {rank: dump(7, 6) for rank in range(4)})
    assert (said.verdict, said.findings[0].where.rank) == ("unknown", None)


def test_a_rank_without_a_dump_is_asked_after(tmp_path: Path) -> None:
    said = answer(tmp_path, {rank: dump(7, 6) for rank in (0, 1, 3)})
    assert said.findings[0].where.rank == "2"


def test_ranks_in_different_collectives_are_a_fault_of_the_program(tmp_path: Path) -> None:
    dumps = {rank: dump(7, 6) for rank in range(4)} | {1: dump(7, 6, name="nccl:broadcast")}
    said = answer(tmp_path, dumps).findings[0]
    assert (said.where.rank, said.scope) == ("1", "job")
    assert "mismatch" in said.cause


def test_recorders_of_a_job_that_ended_well_say_nothing(tmp_path: Path) -> None:
    assert answer(tmp_path, {rank: dump(7, 7) for rank in range(4)}).findings == ()


def test_what_a_dump_would_run_is_not_run(tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    (tmp_path / "nccl_trace_rank_0").write_bytes(pickle.dumps({"entries": [], "pg_config": Hostile()}))
    said = diagnose([tmp_path, io.BytesIO(b"step 1 loss 2.0\n")], KNOWLEDGE)
    assert not (tmp_path / "made").exists()
    assert len(said.unreadable) == 1


def test_the_report_of_the_analyser_is_read_too() -> None:
    text = "Not all ranks joining collective 5 at entry 4\ngroup info: 0:default_pg\nmissing ranks: {1}\n"
    said = diagnose([io.BytesIO(text.encode())], KNOWLEDGE)
    assert (said.verdict, said.findings[0].where.rank) == ("fault", "1")
