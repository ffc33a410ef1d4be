"""The workloads that are shipped as examples, small and large: each has a plan, and a sane one."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusterwright import api

if TYPE_CHECKING:
    from clusterwright.plan import Plan

EXAMPLES = Path(__file__).parents[2] / "examples"
MFU = {"llama-3.1-8b-qlora-rtx-4090": (0.02, 0.75)}
"""Where it is not a fifth to six tenths: frozen weights need two thirds of the work."""


@functools.cache
def designed(folder: str) -> Plan:
    return api.design(api.load_workload(EXAMPLES / folder / "workload.toml"))


@pytest.mark.parametrize("folder", sorted(p.name for p in EXAMPLES.iterdir() if (p / "workload.toml").exists()))
def test_an_example_has_a_sane_plan(folder: str) -> None:
    plan = designed(folder)
    one = plan.chosen
    assert one is not None
    assert plan.hardware_accelerator is not None
    assert one.estimate.memory_bytes < plan.hardware_accelerator.memory_bytes
    low, high = MFU.get(folder, (0.15, 0.6))
    assert low < one.estimate.mfu < high
    assert one.layout.global_batch % (one.layout.dp * one.layout.micro_batch) == 0
    assert plan.reasons
    assert plan.robustness.swings


def planned(folder: str) -> tuple[int, dict[str, int]]:
    plan = designed(folder)
    assert plan.chosen is not None
    layout = plan.chosen.layout
    return plan.chosen.accelerators, {axis: getattr(layout, axis) for axis in ("tp", "cp", "pp", "ep", "dp")}


def test_a_model_that_fits_one_accelerator_is_not_split() -> None:
    count, degrees = planned("llama-3.1-8b-qlora-rtx-4090")
    assert count == 1
    assert set(degrees.values()) == {1}


def test_7b_on_two_nodes_shards_over_both_and_splits_nothing() -> None:
    count, degrees = planned("llama-2-7b-two-nodes")
    assert count == 16
    assert degrees["dp"] == 16


def test_405b_on_16384_accelerators_splits_tensors_in_the_node_and_layers_across_nodes() -> None:
    count, degrees = planned("llama-3.1-405b-16384-h100")
    assert count == 16384
    assert degrees["tp"] == 8
    assert degrees["pp"] >= 8


def test_a_trillion_parameters_spread_their_experts_within_a_rack() -> None:
    _, degrees = planned("kimi-k2-gb200-nvl72")
    assert 8 <= degrees["ep"] <= 72
