"""The training estimate: its parts add up, its limits hold, and it meets published figures."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clusterwright.estimators.expectation import collectives, terms
from clusterwright.estimators.grid import Layouts, distinct
from clusterwright.estimators.job import Job
from clusterwright.estimators.training import Estimates, estimate, model_flop_per_token, run
from clusterwright.layout import Layout
from clusterwright.measurement import Calibration, Factor
from clusterwright.model import Attention, Model
from tests.estimators.drawn import jobs, layouts

BASE = Layout(tp=4, cp=2, pp=4, vpp=5, dp=2, sharding="distopt", micro_batch=1, global_batch=128)


def one(job: Job, layout: Layout = BASE) -> Estimates:
    return run(job, Layouts.of(layout))


def test_parts_of_the_step_add_up_to_it(job: Job) -> None:
    found = one(job)
    assert np.isclose(sum(float(v[0]) for v in found.parts.values()), float(found.step_time_s[0]))
    assert np.isclose(sum(float(v[0]) for v in found.memory_parts.values()), float(found.memory_bytes[0]))


def test_a_published_run_of_70b_on_64_h100_is_met_within_a_tenth(job: Job) -> None:
    # NVIDIA DGX Cloud benchmarking 25.02, NeMo, Llama 3.1 70B, bf16, 64 H100, TP 4 CP 2 PP 4 VP 5: 14.61 s
    assert abs(float(one(replace(job, framework="nemo")).step_time_s[0]) / 14.61 - 1) < 0.1


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
    job = replace(job, framework="deepspeed")
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


# ---- Whatever the model, the machine and the layout ----

LAYOUTS = st.lists(layouts(), min_size=1, max_size=6)
FACTOR = st.floats(1.0, 8.0)
drawn = settings(max_examples=30, deadline=None)


def of(job: Job, some: list[Layout], **changes: Any) -> Estimates:  # noqa: ANN401 - the fields of Layout
    """Estimates of some layouts with fields changed; a callable makes the value from the layout."""
    made = [{k: v(lay) if callable(v) else v for k, v in changes.items()} for lay in some]
    return run(job, Layouts.of(*(lay.model_copy(update=new) for lay, new in zip(some, made, strict=True))))


def no_more(less: NDArray[Any], more: NDArray[Any]) -> bool:
    """Whether nothing on the left exceeds its fellow on the right by more than rounding."""
    return bool((less <= more * (1 + 1e-9)).all())


@drawn
@given(jobs(), LAYOUTS, FACTOR)
def test_more_bandwidth_between_nodes_is_never_slower(job: Job, some: list[Layout], factor: float) -> None:
    node = job.node.model_copy(update={"nic_bits_per_s": job.node.nic_bits_per_s * factor})
    assert no_more(of(replace(job, node=node), some).step_time_s, of(job, some).step_time_s)


@drawn
@given(jobs(), LAYOUTS, FACTOR)
def test_more_bandwidth_inside_a_node_is_never_slower(job: Job, some: list[Layout], factor: float) -> None:
    names = ("scale_up_bytes_per_s", "scale_up_peer_bytes_per_s")
    faster = job.accelerator.model_copy(update={name: factor * getattr(job.accelerator, name) for name in names})
    assert no_more(of(replace(job, accelerator=faster), some).step_time_s, of(job, some).step_time_s)


@drawn
@given(jobs(), LAYOUTS, FACTOR)
def test_a_higher_peak_is_never_slower(job: Job, some: list[Layout], factor: float) -> None:
    peaks = {name: factor * peak for name, peak in job.accelerator.peak_flop_per_s.items()}
    faster = job.accelerator.model_copy(update={"peak_flop_per_s": peaks})
    # Where the host sets the pace of a micro-batch, shorter gradients of weights fill less of a zero bubble.
    some = [lay.model_copy(update={"schedule": "1f1b"}) for lay in some]
    assert no_more(of(replace(job, accelerator=faster), some).step_time_s, of(job, some).step_time_s)


@drawn
@given(jobs(), LAYOUTS, FACTOR)
def test_faster_memory_is_never_slower(job: Job, some: list[Layout], factor: float) -> None:
    faster = job.accelerator.model_copy(update={"memory_bytes_per_s": factor * job.accelerator.memory_bytes_per_s})
    some = [lay.model_copy(update={"schedule": "1f1b"}) for lay in some]
    assert no_more(of(replace(job, accelerator=faster), some).step_time_s, of(job, some).step_time_s)


@pytest.mark.parametrize(
    ("alone", "parts"),
    [
        ({"tp": 1}, ["tensor-parallel communication"]),
        ({"cp": 1}, ["context-parallel communication"]),
        ({"ep": 1}, ["expert-parallel communication"]),
        ({"pp": 1}, ["pipeline communication", "pipeline bubble"]),
        ({"dp": 1, "cp": 1}, ["data-parallel communication"]),
    ],
)
@drawn
@given(jobs(), st.data())
def test_who_is_alone_tells_nobody(alone: dict[str, int], parts: list[str], job: Job, data: st.DataObject) -> None:
    found = run(job, Layouts.of(data.draw(layouts(**alone))))
    assert [0.0] * len(parts) == [float(found.parts[name][0]) for name in parts]


@drawn
@given(jobs(), LAYOUTS)
def test_memory_never_rises_with_stages(job: Job, some: list[Layout]) -> None:
    # With one micro-batch: of more, each keeps its input on every stage. And a pipeline keeps fully sharded weights
    # gathered, so that the first step from one stage to two may cost memory.
    some = [lay for lay in some if lay.pp > 1 or lay.sharding not in ("zero3", "fsdp", "hsdp")]
    some = [lay.model_copy(update={"vpp": 1, "global_batch": lay.dp * lay.micro_batch}) for lay in some]
    if some:
        assert no_more(of(job, some, pp=lambda lay: 2 * lay.pp).memory_bytes, of(job, some).memory_bytes)


@drawn
@given(jobs(), LAYOUTS)
def test_memory_never_rises_with_tensor_parallelism(job: Job, some: list[Layout]) -> None:
    some = [lay for lay in some if lay.sharding != "hsdp"]  # it shares within a node, and then with fewer ranks
    if some:
        assert no_more(of(job, some, tp=lambda lay: 2 * lay.tp).memory_bytes, of(job, some).memory_bytes)


@drawn
@given(jobs(), st.lists(layouts(dp=8), min_size=1, max_size=6))
def test_sharding_never_takes_more_memory(job: Job, some: list[Layout]) -> None:
    none, one, two, own = (of(job, some, sharding=s).memory_bytes for s in ("none", "zero1", "zero2", "distopt"))
    assert no_more(two, one)
    assert no_more(one, none)
    assert no_more(own, none)
    none, three, full, node = (
        of(job, some, sharding=s, pp=1, vpp=1).memory_bytes for s in ("none", "zero3", "fsdp", "hsdp")
    )
    assert no_more(three, none)
    assert no_more(full, none)
    assert no_more(full, node)


@drawn
@given(jobs(), st.lists(layouts(dp=2), min_size=1, max_size=6))
def test_more_ranks_that_share_never_take_more_memory(job: Job, some: list[Layout]) -> None:
    more = of(job, some, dp=lambda lay: 2 * lay.dp, global_batch=lambda lay: 2 * lay.global_batch)
    assert no_more(more.memory_bytes, of(job, some).memory_bytes)


@drawn
@given(jobs(), LAYOUTS)
def test_more_recompute_is_never_faster_and_never_needs_more_memory(job: Job, some: list[Layout]) -> None:
    none, selective, full = (of(job, some, recompute=r) for r in ("none", "selective", "full"))
    assert no_more(none.step_time_s, selective.step_time_s)
    assert no_more(selective.step_time_s, full.step_time_s)
    assert no_more(full.memory_bytes, selective.memory_bytes)
    assert no_more(selective.memory_bytes, none.memory_bytes)


@drawn
@given(jobs(), LAYOUTS, st.integers(1, 9))
def test_beyond_the_warm_up_a_step_is_linear_in_micro_batches(job: Job, some: list[Layout], rounds: int) -> None:
    def time(count: int) -> NDArray[Any]:
        return of(job, some, global_batch=lambda lay: lay.dp * lay.micro_batch * lay.pp * count).step_time_s

    first, second, third = (time(i * rounds) for i in (1, 2, 3))
    assert np.allclose(third - second, second - first, rtol=1e-6)


@drawn
@given(jobs(), LAYOUTS)
def test_parts_are_never_negative_and_add_up_within_the_interval(job: Job, some: list[Layout]) -> None:
    found = of(job, some)
    assert np.allclose(sum(found.parts.values()), found.step_time_s)
    assert np.allclose(sum(found.memory_parts.values()), found.memory_bytes)
    assert all((part >= 0).all() for part in (found.parts | found.memory_parts).values())
    assert ((found.low_s < found.step_time_s) & (found.step_time_s < found.high_s)).all()
    assert ((found.mfu > 0) & (found.mfu < 1)).all()


@drawn
@given(jobs(mixtures=False), st.lists(layouts(tp=1, cp=1, micro_batch=4), min_size=1, max_size=6))
def test_fp8_is_never_slower_in_large_dense_layers(job: Job, some: list[Layout]) -> None:
    if job.model.hidden >= 4096:
        narrow, wide = (of(replace(job, precision=p), some) for p in ("fp8", "bf16"))
        assert no_more(narrow.step_time_s, wide.step_time_s)


@drawn
@given(jobs(), LAYOUTS, st.randoms(use_true_random=False))
def test_a_layout_is_estimated_alike_wherever_it_stands(job: Job, some: list[Layout], random: Any) -> None:  # noqa: ANN401 - hypothesis names no type
    order = random.sample(range(len(some)), len(some))
    found, other = of(job, some), of(job, [some[i] for i in order])
    first = Layouts.of(some[0])
    alone = run(job, Layouts(**{f.name: np.array(getattr(first, f.name)[0]) for f in fields(first)}))
    for name in ("step_time_s", "low_s", "high_s", "memory_bytes", "mfu", "exposed_communication_s"):
        assert np.array_equal(getattr(found, name)[order], getattr(other, name))
        assert getattr(alone, name).shape == ()
        assert float(getattr(alone, name)) == float(getattr(found, name)[0])


@drawn
@given(jobs(), LAYOUTS)
def test_a_zero_bubble_schedule_is_never_slower_and_never_needs_less_memory(job: Job, some: list[Layout]) -> None:
    plain, zero = (of(job, some, schedule=s) for s in ("1f1b", "zero-bubble"))
    assert no_more(zero.step_time_s, plain.step_time_s)
    assert no_more(plain.memory_bytes, zero.memory_bytes)


@drawn
@given(jobs(), LAYOUTS)
def test_tokens_that_fall_as_they_will_are_never_quicker(job: Job, some: list[Layout]) -> None:
    assert no_more(of(job, some).step_time_s, of(replace(job, routing="natural"), some).step_time_s)


# ---- Samples that are packed ----


def sees_all(job: Job) -> bool:
    """Whether no layer has a window, which is as wide in a sample as in a sequence and starts more often."""
    return not any(isinstance(block.mixer, Attention) and block.mixer.window for block in job.model.blocks)


@drawn
@given(jobs().filter(sees_all), LAYOUTS, st.integers(1, 8192), st.integers(0, 8192))
def test_packed_samples_are_never_slower_than_longer_ones_or_one_a_sequence(
    job: Job, some: list[Layout], length: int, more: int
) -> None:
    short, longer = (replace(job, sample_length=length + extra) for extra in (0, more))
    if length >= 64:  # of shorter ones a kernel's start-up may outweigh what they need not see
        assert no_more(of(short, some).step_time_s, of(longer, some).step_time_s)
    assert no_more(of(short, some).step_time_s, of(job, some).step_time_s)


@drawn
@given(jobs(), LAYOUTS, st.integers(0, 8192))
def test_a_sample_as_long_as_the_sequence_or_longer_changes_nothing(job: Job, some: list[Layout], more: int) -> None:
    found, plain = of(replace(job, sample_length=job.sequence_length + more), some), of(job, some)
    assert np.array_equal(plain.step_time_s, found.step_time_s)
    assert np.array_equal(plain.mfu, found.mfu)
    assert np.array_equal(plain.memory_bytes, found.memory_bytes)


def test_packing_saves_attention_and_nothing_else(job: Job) -> None:
    layout = Layout(tp=8, dp=8, sharding="distopt", global_batch=128)
    packed, plain = one(replace(job, sample_length=250), layout), one(job, layout)
    assert float(packed.parts["attention"][0]) < float(plain.parts["attention"][0]) / 3
    for name in ("matrix products", "memory-bound kernels", "output head and loss", "tensor-parallel communication"):
        assert plain.parts[name] == packed.parts[name]
