"""The training estimate: its parts add up, its limits hold, and it meets published figures."""

from dataclasses import replace

import numpy as np
import pytest

from clusterwright.estimators.expectation import collectives, terms
from clusterwright.estimators.grid import Layouts, distinct
from clusterwright.estimators.job import Job
from clusterwright.estimators.training import Estimates, estimate, model_flop_per_token, run
from clusterwright.layout import Layout
from clusterwright.measurement import Calibration, Factor
from clusterwright.model import Model

BASE = Layout(tp=4, cp=2, pp=4, vpp=5, dp=2, sharding="distopt", micro_batch=1, global_batch=128)


def one(job: Job, layout: Layout = BASE) -> Estimates:
    return run(job, Layouts.of(layout))


def test_parts_of_the_step_add_up_to_it(job: Job) -> None:
    found = one(job)
    assert np.isclose(sum(float(v[0]) for v in found.parts.values()), float(found.step_time_s[0]))
    assert np.isclose(sum(float(v[0]) for v in found.memory_parts.values()), float(found.memory_bytes[0]))


def test_a_published_run_of_70b_on_64_h100_is_met_within_a_tenth(job: Job) -> None:
    # NVIDIA DGX Cloud benchmarking, Llama 3.1 70B, bf16, 64 H100, TP 4 CP 2 PP 4 VP 5: 14.61 s
    assert abs(float(one(job).step_time_s[0]) / 14.61 - 1) < 0.1


def test_tensor_parallelism_of_one_has_no_communication(job: Job) -> None:
    found = one(job, Layout(tp=1, pp=8, vpp=1, dp=8, sharding="distopt", global_batch=128))
    assert float(found.parts["tensor-parallel communication"][0]) == 0.0
    assert float(found.parts["context-parallel communication"][0]) == 0.0
    assert float(found.parts["expert-parallel communication"][0]) == 0.0


def test_one_stage_has_neither_bubble_nor_messages(job: Job) -> None:
    found = one(job, Layout(tp=8, dp=8, sharding="distopt", global_batch=128))
    assert float(found.parts["pipeline bubble"][0]) == 0.0
    assert float(found.parts["pipeline communication"][0]) == 0.0


def test_memory_falls_with_pipeline_and_tensor_parallelism(job: Job) -> None:
    def memory(tp: int, pp: int) -> float:
        return float(one(job, Layout(tp=tp, pp=pp, dp=64 // (tp * pp), global_batch=128)).memory_bytes[0])

    assert memory(8, 4) < memory(8, 2) < memory(8, 1)
    assert memory(8, 2) < memory(4, 2) < memory(2, 2)


def test_recompute_trades_memory_for_time(job: Job) -> None:
    none, full = (one(job, BASE.model_copy(update={"recompute": r})) for r in ("none", "full"))
    assert float(full.memory_bytes[0]) < float(none.memory_bytes[0])
    assert float(full.step_time_s[0]) > float(none.step_time_s[0])


def test_fp8_is_faster_than_bf16(job: Job) -> None:
    assert float(one(replace(job, precision="fp8")).step_time_s[0]) < float(one(job).step_time_s[0])


@pytest.mark.parametrize("bandwidth", [5e9, 12.5e9, 25e9])
def test_a_slower_network_is_never_faster(job: Job, bandwidth: float) -> None:
    slow = one(replace(job, nic_bytes_per_s=bandwidth))
    assert float(slow.step_time_s[0]) >= float(one(job).step_time_s[0])


def test_the_interval_holds_the_estimate(job: Job) -> None:
    found = one(job)
    assert float(found.low_s[0]) < float(found.step_time_s[0]) < float(found.high_s[0])


def test_many_layouts_at_once_give_what_each_gives_alone(job: Job) -> None:
    layouts = [
        BASE,
        Layout(tp=8, pp=2, dp=4, global_batch=128),
        Layout(dp=64, sharding="fsdp", recompute="full", global_batch=128),
    ]
    together = run(job, Layouts.of(*layouts))
    alone = [float(one(job, layout).step_time_s[0]) for layout in layouts]
    assert np.allclose(together.step_time_s, alone)


def test_an_open_grid_broadcasts(job: Job) -> None:
    tp = np.array([1, 2, 4, 8]).reshape(-1, 1)
    pp = np.array([1, 2, 4]).reshape(1, -1)
    fixed = {name: np.array(1) for name in ("cp", "vpp", "ep", "micro_batch")}
    grid = Layouts(
        tp=tp,
        pp=pp,
        dp=64 // (tp * pp),
        global_batch=np.array(128),
        sharding=np.array(6),
        recompute=np.array(0),
        **fixed,
    )
    found = run(job, grid)
    assert found.step_time_s.shape == (4, 3)
    assert np.isclose(
        found.step_time_s[3, 1],
        float(one(job, Layout(tp=8, pp=2, dp=4, sharding="distopt", global_batch=128)).step_time_s[0]),
    )


def test_experts_spread_over_nodes_talk_longer(mixture: Model, job: Job) -> None:
    inside = one(
        replace(job, model=mixture, sequence_length=4096),
        Layout(tp=1, pp=4, ep=8, dp=16, sharding="distopt", global_batch=128),
    )
    assert float(inside.parts["expert-parallel communication"][0]) > 0.0
    slow = one(
        replace(job, model=mixture, sequence_length=4096, node=job.node.model_copy(update={"scale_up_domain": 1})),
        Layout(tp=1, pp=4, ep=8, dp=16, sharding="distopt", global_batch=128),
    )
    assert float(slow.parts["expert-parallel communication"][0]) > float(
        inside.parts["expert-parallel communication"][0]
    )


def test_adapters_need_far_less_memory(job: Job) -> None:
    layout = Layout(tp=8, dp=1, global_batch=8)
    full, lora, qlora = (float(one(replace(job, method=m), layout).memory_bytes[0]) for m in ("full", "lora", "qlora"))
    assert qlora < lora < full / 2


def test_useful_work_is_six_operations_a_parameter_and_attention(dense: Model) -> None:
    flop = model_flop_per_token(dense, 8192)
    weights = 6.0 * (dense.parameters - dense.embedding_parameters)
    assert flop == pytest.approx(weights + 3 * 80 * 2 * 4096.5 * 64 * 256)


def test_a_calibration_scales_its_own_parts(job: Job) -> None:
    slower = Calibration(compute=Factor(value=1.2, spread=0.05), runs=4)
    found, plain = run(job, Layouts.of(BASE), slower), one(job)
    assert np.isclose(found.parts["matrix products"], 1.2 * plain.parts["matrix products"]).all()
    assert float((found.high_s / found.low_s)[0]) < float((plain.high_s / plain.low_s)[0])


def test_the_tree_of_terms_adds_up(job: Job) -> None:
    tree = terms(job.model, job.accelerator, job.node, BASE, sequence_length=8192, framework="megatron")
    step = tree.find("step time")
    assert step is not None
    assert sum(part.value for part in step.parts) == pytest.approx(step.value)
    assert all(part.source for part in step.parts)


def test_expected_collectives_name_their_ranks_and_stay_below_the_wire(job: Job) -> None:
    found = collectives(job.model, job.accelerator, job.node, BASE, sequence_length=8192, framework="megatron")
    assert {c.axis for c in found} == {"tp", "dp"}
    assert next(c.ranks for c in found if c.axis == "dp") == BASE.dp * BASE.cp
    assert all(c.expected_bus_bytes_per_s < 1.1 * job.accelerator.scale_up_bytes_per_s for c in found)


def test_estimate_takes_the_fields_of_a_job(job: Job) -> None:
    found = estimate(job.model, job.accelerator, job.node, Layouts.of(BASE), sequence_length=8192, framework="megatron")
    assert np.allclose(found.step_time_s, one(job).step_time_s)


def test_distinct_combinations_rebuild_the_whole() -> None:
    first, second = np.array([1, 8, 2, 8, 1]), np.array([3, 3, 5, 3, 5])
    values, where = distinct(first, second)
    assert np.array_equal(values[0][where], first)
    assert np.array_equal(values[1][where], second)
    assert len(values[0]) == 4
