"""What software stacks do to a training step: messages that stall, graphs, launches, and what they overlap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.estimators.efficiency import shipped
from clusterwright.estimators.expectation import terms
from clusterwright.estimators.grid import Layouts
from clusterwright.estimators.job import Job, dispatches_once
from clusterwright.estimators.keeping import Saving
from clusterwright.estimators.training import Estimates, run
from clusterwright.layout import Layout
from clusterwright.model import Attention, Block, Experts, FeedForward, Model
from tests.estimators.drawn import jobs, layouts

BASE = Layout(tp=4, cp=2, pp=4, vpp=5, dp=2, sharding="distopt", micro_batch=1, global_batch=128)
ALONE = Layout(tp=8, dp=8, sharding="distopt", global_batch=128)
PIPELINE = Layout(tp=4, pp=4, dp=32, global_batch=128)
STALLED = "stalled messages"
EXPERTS = "expert-parallel communication"
ONCE = {"pipeline bubble", "data-parallel communication", "optimizer step", "fixed time of a step", "stragglers"}
TINY = Model(
    name="tiny",
    hidden=256,
    vocab=1024,
    blocks=(Block(count=16, mixer=Attention(heads=8, kv_heads=8, head_size=32), feed=FeedForward(ffn=512)),),
)
LAUNCHED = ("matrix products", "attention", "memory-bound kernels", "output head and loss", "launch floor",
            "tensor-parallel communication")  # fmt: skip
WAITS = "tensor-parallel waits"
drawn = settings(max_examples=30, deadline=None)


def one(job: Job, layout: Layout = BASE) -> Estimates:
    return run(job, Layouts.of(layout))


def blackwell(job: Job) -> Job:
    """The job on a GB200 NVL72 at nameplate."""
    accelerator = job.accelerator.model_copy(
        update={
            "name": "gb200",
            "architecture": "blackwell",
            "memory_bytes": 186e9,
            "memory_bytes_per_s": 8e12,
            "peak_flop_per_s": {"bf16": 2.5e15, "fp8": 5e15, "fp4": 10e15},
            "multiprocessors": 148,
            "scale_up_bytes_per_s": 900e9,
            "scale_up_peer_bytes_per_s": 900e9,
            "power_w": 1200,
        }
    )
    node = job.node.model_copy(update={"accelerator": "gb200", "accelerators": 4, "scale_up_domain": 72, "nics": 4})
    return replace(job, accelerator=accelerator, node=node)


@drawn
@given(jobs(), layouts())
def test_only_a_stack_whose_messages_block_has_stalled_messages(job: Job, layout: Layout) -> None:
    assert (job.framework == "nanotron") == (STALLED in one(job, layout).parts)


@drawn
@given(jobs(), st.sampled_from([(1, 1), (1, 2), (2, 2), (2, 1), (1, 4)]))
def test_no_message_stalls_on_one_node(job: Job, ranks: tuple[int, int]) -> None:
    dp, pp = ranks
    job = replace(job, framework="nanotron")
    assert 0.0 == float(one(job, Layout(pp=pp, dp=dp, global_batch=8)).parts[STALLED][0])


def test_messages_stall_on_64_nodes_with_a_pipeline_and_the_interval_holds_both(job: Job) -> None:
    found = one(replace(job, framework="nanotron"), PIPELINE)
    step, stalled = float(found.step_time_s[0]), float(found.parts[STALLED][0])
    assert stalled > 0.0
    assert float(found.low_s[0]) < step - stalled < step < float(found.high_s[0])


def test_of_a_job_that_almost_surely_has_a_bad_node_no_end_of_the_interval_is_free_of_stalls(job: Job) -> None:
    job = replace(job, framework="nanotron")
    found = one(job, PIPELINE.model_copy(update={"dp": 256, "global_batch": 1024}))
    step, stalled = float(found.step_time_s[0]), float(found.parts[STALLED][0])
    assert np.isclose(step**2, float(found.low_s[0] * found.high_s[0]))
    assert stalled == pytest.approx(float(one(job, PIPELINE).parts[STALLED][0]))


def test_a_job_that_may_have_a_bad_node_is_estimated_without_and_its_interval_reaches_to_the_stalls(job: Job) -> None:
    job = replace(job, framework="nanotron")
    found = one(job, PIPELINE.model_copy(update={"dp": 4, "global_batch": 16}))  # 8 nodes
    assert 0.0 == float(found.parts[STALLED][0])
    assert float(found.high_s[0] / found.step_time_s[0]) > float(found.step_time_s[0] / found.low_s[0]) * (1 + 1e-9)


def test_without_a_pipeline_the_all_reduce_of_whole_gradients_stalls_and_a_sharded_one_does_not(job: Job) -> None:
    job = replace(job, framework="nanotron")
    whole, sharded = (
        one(job, Layout(tp=8, dp=64, sharding=sharding, global_batch=128)).parts[STALLED]
        for sharding in ("none", "zero1")
    )
    assert float(whole[0]) > 0.0 == float(sharded[0])


def test_a_mixture_is_faster_where_its_recipe_runs_as_a_graph(mixture: Model, job: Job) -> None:
    job = replace(blackwell(job), model=mixture, framework="megatron-bridge", precision="mxfp8", sequence_length=4096)
    layout = Layout(ep=8, dp=16, sharding="distopt", global_batch=128)
    before, after = (one(replace(job, year=year), layout) for year in (2026.3, 2026.5))
    assert float(after.step_time_s[0]) < 0.9 * float(before.step_time_s[0])
    assert 0.0 == float(after.parts["launch floor"][0])
    assert float(after.parts[EXPERTS][0]) < float(before.parts[EXPERTS][0])


def test_a_graph_waits_for_no_host(job: Job) -> None:
    feed = Experts(experts=8, top_k=2, ffn=256)
    small = TINY.model_copy(update={"blocks": (TINY.blocks[0].model_copy(update={"feed": feed}),)})
    job = replace(blackwell(job), model=small, framework="megatron-bridge", precision="mxfp8", sequence_length=128)
    before, after = (one(replace(job, year=year), Layout(dp=4, global_batch=32)) for year in (2026.3, 2026.5))
    assert float(before.parts["launch floor"][0]) > float(before.step_time_s[0]) / 2
    assert 0.0 == float(after.parts["launch floor"][0])


def test_a_dense_network_gains_no_more_between_these_releases_than_a_stack_gains_with_time(job: Job) -> None:
    job = replace(blackwell(job), framework="megatron-bridge", precision="mxfp8")
    before, after = (one(replace(job, year=year), ALONE) for year in (2026.3, 2026.5))
    assert 0.9 * float(before.step_time_s[0]) < float(after.step_time_s[0]) < float(before.step_time_s[0])


@pytest.mark.parametrize("framework", ["nanotron", "megatron", "deepspeed"])
def test_a_pipeline_inside_one_node_launches_no_slower_than_none(job: Job, framework: str) -> None:
    def launched(layout: Layout) -> float:
        """Time of one micro-batch on a stage of a network that the host is too slow for [s]."""
        found = one(replace(job, model=TINY, sequence_length=128, framework=framework), layout)
        count = layout.global_batch // layout.dp
        return sum(float(found.parts[name][0]) for name in LAUNCHED) / count

    alone = launched(Layout(tp=2, dp=4, global_batch=32))
    assert alone == pytest.approx(2 * launched(Layout(tp=2, pp=2, dp=2, global_batch=32)))
    between = launched(Layout(tp=2, pp=2, dp=4, global_batch=32))
    assert (framework == "nanotron") == (2 * between > alone * (1 + 1e-9))


@drawn
@given(jobs(), layouts())
def test_a_recipe_that_gains_is_never_faster_in_an_older_year(job: Job, layout: Layout) -> None:
    old, new = (one(replace(job, framework="megatron-bridge", year=year), layout) for year in (2024.0, 2026.0))
    for name in ("matrix products", "memory-bound kernels", "attention"):
        assert float(new.parts[name][0]) <= float(old.parts[name][0])


@pytest.mark.parametrize("unfitted", ["cdna3", "xe", "one that nobody has seen"])
def test_an_architecture_whose_runs_were_not_fitted_has_a_wider_interval(job: Job, unfitted: str) -> None:
    fitted, other = (
        one(replace(job, accelerator=job.accelerator.model_copy(update={"architecture": name})))
        for name in ("hopper", unfitted)
    )
    assert float(other.high_s[0] / other.low_s[0]) > float(fitted.high_s[0] / fitted.low_s[0])


@pytest.mark.parametrize("framework", ["nanotron", "megatron", "deepspeed"])
@drawn
@given(job=jobs(), layout=layouts(tp=8))
def test_tensor_parallelism_waits_for_further_nodes_only_where_the_stack_does(
    framework: str, job: Job, layout: Layout
) -> None:
    job = replace(job, framework=framework)
    waits = float(one(job, layout).parts[WAITS][0])
    assert (waits > 0.0) == (job.framework == "nanotron" and job.node.scale_up_domain < layout.tp)


def test_a_group_over_more_nodes_waits_longer(job: Job) -> None:
    job = replace(job, framework="nanotron")
    few, many = (one(job, Layout(tp=tp, dp=4, global_batch=4)).parts[WAITS] for tp in (16, 32))
    assert float(few[0]) > 0.0
    assert 3 * few == pytest.approx(many)  # for one further node, and for three


@pytest.mark.parametrize(("vocab", "virtual"), [(128, 1), (128, 5), (128256, 1), (128256, 5)])
def test_stages_without_the_output_head_fill_and_drain_a_pipeline_sooner(job: Job, vocab: int, virtual: int) -> None:
    layout = BASE.model_copy(update={"vpp": virtual})
    found = one(replace(job, model=job.model.model_copy(update={"vocab": vocab})), layout)
    slot = sum(float(part[0]) for name, part in found.parts.items() if name not in ONCE) / layout.micro_batches
    head = float(found.parts["output head and loss"][0]) / layout.micro_batches
    bubble = float(found.parts["pipeline bubble"][0])
    assert (vocab > 128) == (bubble < 0.98 * (layout.pp - 1) * slot / virtual)
    assert bubble >= (layout.pp - 1) * (slot - head) / virtual * (1 - 1e-9)


@pytest.mark.parametrize("count", [9, 10, 14])
def test_a_last_stage_has_a_layer_beside_its_head_however_few_there_are(job: Job, count: int) -> None:
    def exposed(layers: int) -> float:
        """Time of the head that no layer which the last stage lacks makes up for, over 8 stages of at most two [s]."""
        block = job.model.blocks[0].model_copy(update={"count": layers})
        model = job.model.model_copy(update={"blocks": (block,), "vocab": 512_000})
        found = one(replace(job, model=model), Layout(tp=8, pp=8, global_batch=8))
        return float(found.parts["output head and loss"][0])

    assert 0.0 < exposed(15) < exposed(16)
    assert exposed(15) == pytest.approx(exposed(count))


@pytest.mark.parametrize(
    ("framework", "hides"), [("nanotron", False), ("deepspeed", False), ("torchtitan", True), ("fsdp", True)]
)
def test_states_that_are_sharded_alone_are_gathered_in_the_open_but_where_layers_are_wrapped(
    job: Job, framework: str, *, hides: bool
) -> None:
    part = "data-parallel communication"
    layout = Layout(tp=8, dp=8, global_batch=512)
    zero, own = (
        float(one(replace(job, framework=framework), layout.model_copy(update={"sharding": sharding})).parts[part][0])
        for sharding in ("zero1", "distopt")
    )
    assert hides == (zero < 1.5 * own)


@pytest.mark.parametrize("framework", ["megatron", "megatron-lm", "deepspeed"])
def test_each_tensor_parallel_rank_sends_its_part_to_the_next_stage(job: Job, framework: str) -> None:
    slow = job.node.model_copy(update={"nic_bits_per_s": 10e9})

    def sent(tp: int) -> float:
        layout = Layout(tp=tp, pp=8, dp=1, global_batch=8)
        return float(one(replace(job, node=slow, framework=framework), layout).parts["pipeline communication"][0])

    assert sent(8) < 0.6 * sent(4) < 0.36 * sent(2)


@pytest.mark.parametrize(("domain", "since"), [(8, 2025.25), (72, 2025.8)])
def test_a_token_goes_once_to_each_domain_since_its_stack_can(job: Job, domain: int, since: float) -> None:
    job = replace(job, node=job.node.model_copy(update={"scale_up_domain": domain}))
    stack = shipped().stack_of("megatron", 2026.0)
    years = [replace(job, year=year) for year in (since - 0.01, since, 2027.0)]
    assert [False, True, True] == [dispatches_once(one, stack) for one in years]
    assert not any(dispatches_once(one, shipped().stack_of("deepspeed", 2026.0)) for one in years)


def test_what_only_some_jobs_have_stands_in_the_tree_with_its_law(job: Job) -> None:
    layout = PIPELINE.model_copy(update={"micro_batch": 4})
    saving = Saving(offload_optimizer=1.0, offload_activations=True)
    options: dict[str, Any] = {"sequence_length": 8192, "framework": "nanotron", "saving": saving}
    tree = terms(job.model, job.accelerator, job.node, layout, **options)
    step = tree.find("step time")
    assert step is not None
    assert sum(part.value for part in step.parts) == pytest.approx(step.value)
    laws = {part.name: part.source for part in step.parts}
    assert "work.optimizer_bytes" in laws["optimizer on the host"]
    assert "the link" in laws["activations to the host"]
    assert "blocking_messages" in laws[STALLED]


@drawn
@given(jobs(), layouts())
def test_frozen_weights_leave_nothing_to_fill_a_bubble_with(job: Job, layout: Layout) -> None:
    job = replace(job, method="lora")
    plain, zero = (one(job, layout.model_copy(update={"schedule": name})) for name in ("1f1b", "zero-bubble"))
    assert np.allclose(plain.step_time_s, zero.step_time_s, rtol=1e-12)


def test_a_compiled_step_of_fsdp_is_as_its_stack_says_and_fp8_is_compiled(job: Job) -> None:
    stack = shipped().stack_of("torchtitan", job.year)
    assert stack.compiled_factor is not None
    layout, eager = Layout(dp=8, sharding="fsdp", global_batch=64), replace(job, framework="torchtitan")
    compiled = replace(eager, saving=Saving(compiled=True))
    plain, quick = (float(one(j, layout).parts["matrix products"][0]) for j in (eager, compiled))
    assert quick / plain == pytest.approx(stack.compiled_factor / (stack.factor * stack.aged(stack.gain, job.year)))
    narrow = [one(replace(j, precision="fp8"), layout).parts["matrix products"][0] for j in (eager, compiled)]
    assert narrow[0] == narrow[1]


def test_a_stack_that_nobody_compiles_is_as_quick_with_a_compiler(job: Job) -> None:
    assert one(job).step_time_s == one(replace(job, saving=Saving(compiled=True))).step_time_s
