"""Adapters are trained beside weights that are only read: what has gradients, and what full sharding gathers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clusterwright.estimators.adapters import adapter_parameters, frozen_bytes, trained_a_rank, weight_bytes_a_rank
from clusterwright.estimators.grid import Layouts
from clusterwright.estimators.job import parameters_a_rank
from clusterwright.estimators.training import run
from clusterwright.layout import Layout

if TYPE_CHECKING:
    from clusterwright.estimators.job import Job

BF16 = 2.0
FSDP = Layout(dp=32, sharding="fsdp", global_batch=32)


def gathering(job: Job, sharding: str = "fsdp") -> float:
    """Exposed communication of data parallelism over a network a hundred times slower than it is [s]."""
    slow = job.node.model_copy(update={"nic_bits_per_s": job.node.nic_bits_per_s / 100})
    layouts = Layouts.of(Layout(dp=32, sharding=sharding, global_batch=32))
    return float(run(replace(job, node=slow), layouts).parts["data-parallel communication"][0])


def test_all_is_trained_where_there_are_no_adapters(job: Job) -> None:
    lay = Layouts.of(FSDP)
    dense, experts, ends = parameters_a_rank(job, lay)
    plain, apart = trained_a_rank(job, lay)
    assert np.array_equal(plain, dense + ends)
    assert np.array_equal(apart, experts)
    assert np.allclose(weight_bytes_a_rank(job, lay, BF16)[0], BF16 * plain)


@pytest.mark.parametrize("rank", [1, 16, 256])
def test_parameters_of_adapters_follow_their_rank_and_are_few(job: Job, rank: int) -> None:
    tuned, lay = replace(job, method="lora", lora_rank=rank), Layouts.of(FSDP)
    assert rank * adapter_parameters(replace(tuned, lora_rank=1)) == pytest.approx(adapter_parameters(tuned))
    plain, experts = trained_a_rank(tuned, lay)
    assert 0 < float(plain[0]) < 0.5 * job.model.parameters
    assert 0.0 == float(experts[0])


def test_stages_share_the_adapters(job: Job) -> None:
    tuned = replace(job, method="lora")
    whole = trained_a_rank(tuned, Layouts.of(FSDP))[0]
    half = trained_a_rank(tuned, Layouts.of(Layout(pp=2, dp=16, sharding="fsdp", global_batch=32)))[0]
    assert float(half[0]) == pytest.approx(float(whole[0]) / 2)


def test_full_sharding_gathers_frozen_weights_too(job: Job) -> None:
    tuned = replace(job, method="lora", lora_rank=1)
    assert gathering(tuned) > 0.5 * gathering(job)
    assert gathering(tuned, "zero2") < 0.01 * gathering(tuned)


def test_quantised_weights_are_gathered_as_they_are_kept(job: Job) -> None:
    four_bits = frozen_bytes(replace(job, method="qlora"), BF16)
    assert 0.5 <= four_bits < 0.6
    assert frozen_bytes(replace(job, method="lora"), BF16) == frozen_bytes(job, BF16) == BF16
    assert gathering(replace(job, method="qlora")) < gathering(replace(job, method="lora"))


def test_adapters_of_a_higher_rank_are_never_sent_quicker(job: Job) -> None:
    few, many = (gathering(replace(job, method="lora", lora_rank=rank), "zero1") for rank in (8, 64))
    assert few < many
