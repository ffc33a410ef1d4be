"""With a plan, a diagnosis says how far off the measured is."""

from __future__ import annotations

import io
from datetime import date
from typing import TYPE_CHECKING

import pytest

from clusterwright.catalog import load
from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose
from clusterwright.hardware import Fabric, Storage
from clusterwright.layout import Layout
from clusterwright.model import Attention, Block, FeedForward, Model
from clusterwright.plan import Candidate, Estimate, Plan, Rent

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis

KNOWLEDGE = load_faults()
STEP = " iteration {}/ 1000 | elapsed time per iteration (ms): {} | lm loss: 2.3E+00 |\n"
ROW = "  1073741824  268435456  float  sum  -1  9306.7  {0}  {0}  0  9291.5  {0}  {0}  0\n"


@pytest.fixture(scope="module")
def plan() -> Plan:
    chosen = Candidate(
        accelerator="h100-sxm", node="dgx-h100", nodes=2, accelerators=16,
        offer=Rent(provider="example", term="on-demand", usd_per_accelerator_hour=2.5, seen=date(2026, 9, 1)),
        layout=Layout(tp=8, dp=2, global_batch=64),
        estimate=Estimate(
            step_time_s=1.0, interval=(0.9, 1.1), mfu=0.4, tokens_per_s=1e5, memory_bytes=6e10, train_time_s=1e6,
            goodput=0.97, cost_usd=1e5, power_w=2e4,
        ),
        fabric=Fabric(topology="single-switch", tiers=1, leaf=1, spine=0, core=0, nic_bits_per_s=4e11, cables=16),
        storage=Storage(write_bytes_per_s=1e9, checkpoint_bytes=1e9, checkpoint_interval_s=3600.0),
    )  # fmt: skip
    blocks = (Block(count=2, mixer=Attention(heads=4, kv_heads=2, head_size=16), feed=FeedForward(ffn=128)),)
    model = Model(name="tiny", hidden=64, vocab=256, blocks=blocks)
    return Plan(
        workload={"model": {"name": "tiny"}}, model=model, chosen=chosen, hardware_node=load().node("dgx-h100"),
        catalogue_date=date(2026, 9, 1),
    )  # fmt: skip


def answer(text: str, plan: Plan | None) -> Diagnosis:
    return diagnose([io.BytesIO(text.encode())], KNOWLEDGE, plan)


def test_steps_slower_than_the_interval_are_told_with_how_much(plan: Plan) -> None:
    said = answer("".join(STEP.format(step, 1500) for step in range(5)), plan)
    assert said.verdict == "unknown"
    assert said.findings[0].cause == "steps are 50% slower than planned"


def test_steps_within_the_interval_are_healthy(plan: Plan) -> None:
    assert answer(STEP.format(1, 1050), plan).verdict == "healthy"


def test_one_slow_step_among_many_is_no_finding(plan: Plan) -> None:
    assert answer("".join(STEP.format(step, 9000 if step == 3 else 1000) for step in range(9)), plan).findings == ()


def test_a_bus_bandwidth_far_under_the_ports_of_the_plan_is_told(plan: Plan) -> None:
    assert (
        answer(ROW.format(200.0), plan).findings[0].cause == "bus bandwidth is 50% of what the plan's network carries"
    )
    assert answer(ROW.format(380.0), plan).verdict == "healthy"


def test_without_a_plan_nothing_is_expected() -> None:
    assert answer(STEP.format(1, 99000), None).findings == ()


PACES = {
    "Megatron": " iteration {step}/ 1000 | elapsed time per iteration (ms): {ms} | lm loss: 2.3E+00 |\n",
    "torchtitan": "\x1b[31mstep: {step}  \x1b[32mloss:  8.1  \x1b[34mtps: {tps:,.0f}  \x1b[36mmfu: 30.3%\x1b[39m\n",
    "nanotron": "iteration: {step} / 100 | elapsed_time_per_iteration_ms: {kms}K | lm_loss: 8.2 | lr: 1e-05\n",
    "NeMo": "Epoch 0: global_step={step}.0, reduced_train_loss=2.1, train_step_timing in s={s}\n",
    "MaxText": "completed step: {step}, seconds: {s}, TFLOP/s/device: 412.1, Tokens/s/device: 9.9, loss: 2.3\n",
    "Trainer": " 10%|#         | {step}/1000 [10:00<1:30:00,  {s}s/it]\n",
    "DeepSpeed": "[Rank 0] step={step}, RunningAvgSamplesPerSec=12.5, CurrSamplesPerSec={samples}, MemAllocated=9GB\n",
}


@pytest.mark.parametrize("framework", PACES)
@pytest.mark.parametrize(("slower", "causes"), [(1.5, ["steps are 50% slower than planned"]), (1.0, [])])
def test_the_pace_is_read_in_the_words_of_every_framework(
    plan: Plan, framework: str, slower: float, causes: list[str]
) -> None:
    said = {
        "ms": 1000 * slower, "kms": slower, "s": slower, "tps": 1e5 / 16 / slower, "samples": 64 / slower,
    }  # fmt: skip
    text = "".join(PACES[framework].format(step=step, **said) for step in range(1, 6))
    assert [finding.cause for finding in answer(text, plan).findings] == causes


def test_a_progress_bar_of_something_else_is_no_pace(plan: Plan) -> None:
    assert answer("Loading checkpoint shards: 100%|####| 4/4 [00:36<00:00,  9.00s/it]\n", plan).findings == ()


def test_a_job_with_fewer_ranks_than_the_plan_is_told_with_the_nodes_that_are_not_in_it(plan: Plan) -> None:
    said = answer("using world size: 8, data-parallel size: 1\n", plan).findings
    assert [finding.cause for finding in said] == ["the job runs on 8 of 16 accelerators of the plan"]
    assert "1 nodes are not in it" in said[0].because
    assert answer("using world size: 16, data-parallel size: 2\n", plan).findings == ()
