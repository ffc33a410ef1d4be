"""Observed runs become jobs: what their tables leave out is assumed, and named."""

from __future__ import annotations

import pytest

from clusterwright.catalog import load
from clusterwright.estimators.job import Job
from clusterwright.estimators.observed import Scored, job_of, score
from clusterwright.measurement import TrainingRun, read_run
from tests.validation.runs import ROW as PLAIN

ROW = PLAIN | {
    "framework": "NeMo 24.09", "source_date": "2024-10", "seq_len": "4096", "n_gpus": "8", "dp": "8", "mbs": "1",
    "gbs": "32", "step_time_s": "1",
}  # fmt: skip
PACKED = "samples of 250 tokens, packed"
OFFLOADED = "recompute: none, activations of half the layers go to the Grace's memory"
LEAST = "recompute: the least that fits"
GRACE = {"framework": "Megatron-Bridge", "source_date": "2026-01", "gpu": "gb200", "sharding": "fsdp",
         "recompute": "unknown"}  # fmt: skip


def observed(**columns: str) -> TrainingRun:
    run = read_run({**ROW, **columns})
    assert isinstance(run, TrainingRun)
    return run


def scored(**columns: str) -> Scored:
    (found,), skipped = score([observed(**columns)], load())
    assert skipped == []
    return found


def job(**columns: str) -> Job:
    found = job_of(observed(**columns), load())
    assert isinstance(found, Job)
    return found


TUNED = pytest.mark.parametrize("tuned", [{"lora": "1"}, {"model": "mine SFT"}], ids=["lora", "sft"])


@TUNED
def test_a_tuning_run_of_nemo_is_taken_to_have_packed_samples_and_says_so(tuned: dict[str, str]) -> None:
    assert (PACKED,) == scored(**tuned).assumptions
    assert 250 == job(**tuned).sample_length


@TUNED
@pytest.mark.parametrize(
    "other",
    [
        {"framework": "Megatron-Bridge", "source_date": "2026-01"},
        {"framework": "NeMo 25.09", "source_date": "2025-10"},
        {"framework": "torchtune"},
    ],
    ids=["bridge", "later", "another"],
)
def test_no_other_tuning_run_is(tuned: dict[str, str], other: dict[str, str]) -> None:
    assert () == scored(**tuned, **other).assumptions
    assert job(**tuned, **other).sample_length is None


def test_a_run_that_trains_from_the_start_is_not_taken_to_have_packed_samples() -> None:
    assert () == scored().assumptions
    assert job().sample_length is None


def test_packed_samples_are_estimated_to_be_faster() -> None:
    assert scored(model="mine SFT").step_s < scored().step_s


def test_a_fully_sharded_run_beside_a_grace_offloads_and_says_so() -> None:
    found = scored(**GRACE)
    assert OFFLOADED in found.assumptions
    assert LEAST not in found.assumptions
    assert "activations to the host" in found.parts
    assert job(**GRACE).saving.offload_activations
    assert 0.5 == job(**GRACE).saving.offload_share


@pytest.mark.parametrize("known", ["selective", "full"])
def test_a_run_whose_recompute_is_known_does_not_offload(known: str) -> None:
    found = scored(**{**GRACE, "recompute": known})
    assert OFFLOADED not in found.assumptions
    assert "activations to the host" not in found.parts


@pytest.mark.parametrize(
    "other",
    [{"gpu": "b200-sxm"}, {"sharding": "distopt"}, {"framework": "torchtitan"}],
    ids=["pcie", "optimizer", "another"],
)
def test_no_other_run_whose_recompute_is_unknown_offloads(other: dict[str, str]) -> None:
    found = scored(**{**GRACE, **other})
    assert LEAST in found.assumptions
    assert OFFLOADED not in found.assumptions
    assert not job(**{**GRACE, **other}).saving.offload_activations
