"""One layer's time: forward, both gradients, and what makes them longer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.estimators.efficiency import shipped
from clusterwright.estimators.layer import EPILOGUE, LayerTime, Machine, layer, linear, product
from clusterwright.model import Attention, Block, Experts, FeedForward
from tests.estimators.drawn import jobs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.estimators.job import Job
    from clusterwright.hardware import Accelerator

WIDTH = st.sampled_from([1024, 4096, 8192])
DENSE = Block(count=1, mixer=Attention(heads=32, kv_heads=8, head_size=128), feed=FeedForward(ffn=14336))


def machine(job: Job) -> Machine:
    efficiency = shipped()
    stack = efficiency.stack_of(job.framework, job.year)
    return Machine(
        job.accelerator, efficiency.curve(job.accelerator.architecture), stack, efficiency.law, job.precision
    )


def at(*values: float) -> NDArray[Any]:
    return np.array(values, dtype=float)


def time(
    by: Machine, block: Block = DENSE, *, tp: float = 1, cp: float = 1, ep: float = 1, batch: float = 1
) -> LayerTime:
    return layer(by, block, 4096, 4096, (at(tp), at(ep), at(batch * 4096 / cp)))


@given(jobs(), WIDTH, WIDTH, st.sampled_from([2048, 4096, 16384]))
def test_the_gradient_of_a_weight_is_a_part_of_the_backward_pass(job: Job, n: int, k: int, tokens: int) -> None:
    ahead, back, weight = linear(machine(job), at(tokens), n, k)
    assert (0 < weight).all()
    assert (weight < back).all()
    assert (ahead < back).all()


@given(jobs(), WIDTH, WIDTH)
def test_a_frozen_weight_has_no_gradient_and_saves_its_time(job: Job, n: int, k: int) -> None:
    trained, frozen = (linear(replace(machine(job), frozen=f), at(4096), n, k) for f in (False, True))
    assert np.array_equal(np.zeros(1), frozen[2])
    assert np.allclose(frozen[1] + trained[2], trained[1])


@given(jobs(), WIDTH, WIDTH)
def test_the_sum_that_a_gradient_is_added_to_is_not_hidden_by_its_product(job: Job, n: int, k: int) -> None:
    by = replace(machine(job), precision="bf16")
    moved = 2.0 * by.stack.gradient
    hidden = product(by, n, k, at(4096), result_bytes=moved)
    assert np.allclose(hidden + EPILOGUE * moved * n * k / by.bandwidth, linear(by, at(4096), n, k)[2])


@given(jobs(), WIDTH, WIDTH, st.sampled_from([("bf16", 0), ("fp8", 4), ("mxfp8", 0), ("nvfp4", 0)]))
def test_grouped_products_with_one_scale_a_tensor_cast_in_passes_of_their_own(
    job: Job, n: int, k: int, more: tuple[str, int]
) -> None:
    precision, values = more
    plain = replace(machine(job), precision=precision)
    plain = replace(plain, law=plain.law.model_copy(update={"group_share": 1.0, "group_start": 0.0}))
    alone, grouped = linear(plain, at(4096), n, k), linear(plain, at(4096), n, k, groups=at(1))
    assert np.allclose(alone[0] + values * 4096 * k / plain.bandwidth, grouped[0])
    assert np.allclose(alone[1] + values * 4096 * n / plain.bandwidth, grouped[1])


@given(jobs())
def test_a_layer_of_a_network_takes_the_time_of_its_parts(job: Job) -> None:
    by = machine(job)
    whole, mixer, feed = (time(by, DENSE.model_copy(update=left)) for left in ({}, {"feed": None}, {"mixer": None}))
    for name in ("products", "backward", "weight", "attention"):
        assert np.allclose(getattr(whole, name), getattr(mixer, name) + getattr(feed, name))
    assert np.allclose(whole.forward, whole.products + whole.attention + whole.elementwise)


@given(jobs(), st.sampled_from([(4, 1), (1, 4), (2, 2)]))
def test_a_layer_that_is_shared_never_takes_longer(job: Job, ranks: tuple[int, int]) -> None:
    by = machine(job)
    alone, shared = time(by), time(by, tp=ranks[0], cp=ranks[1])
    for name in ("products", "backward", "attention", "elementwise"):
        assert (getattr(shared, name) <= getattr(alone, name)).all()


@given(jobs())
def test_two_sequences_never_take_longer_than_twice_one(job: Job) -> None:
    by = machine(job)
    one, two = time(by), time(by, batch=2)
    assert (one.forward <= two.forward).all()
    assert (two.forward <= 2 * one.forward * (1 + 1e-9)).all()


def test_unfused_attention_takes_longer_than_a_flash_kernel(job: Job) -> None:
    flash = machine(job)
    plain = replace(flash, stack=flash.stack.model_copy(update={"flash": False}))
    assert float(time(plain).attention[0]) > 2 * float(time(flash).attention[0])


def test_a_lower_power_limit_slows_products_and_leaves_memory_alone(job: Job, h100: Accelerator) -> None:
    full = machine(job)
    low = replace(full, accelerator=h100.model_copy(update={"power_w": 350}))
    assert (time(low).products > time(full).products).all()
    assert np.array_equal(time(low).elementwise, time(full).elementwise)


def test_few_tokens_an_expert_are_slower_a_token(job: Job) -> None:
    few, many = (Block(count=1, feed=Experts(experts=experts, top_k=2, ffn=4096), mixer=None) for experts in (128, 8))
    assert (time(machine(job), few).products > time(machine(job), many).products).all()


@given(jobs())
def test_a_volta_never_has_flash_attention(job: Job) -> None:
    for stack in shipped().stack:
        for architecture in ("volta", "ampere", "hopper"):
            by = replace(
                machine(job),
                stack=stack,
                accelerator=job.accelerator.model_copy(update={"architecture": architecture}),
            )
            assert by.has_flash == (stack.flash and architecture != "volta")


def test_attention_on_a_volta_pays_for_its_scores(job: Job) -> None:
    new, old = (
        replace(machine(job), accelerator=job.accelerator.model_copy(update={"architecture": name}))
        for name in ("hopper", "volta")
    )
    assert float(time(old).attention[0]) > 2 * float(time(new).attention[0])
    assert 2.0 == old.attention_backward


MIXTURE = Block(count=1, feed=Experts(experts=8, top_k=2, ffn=4096), mixer=None)


@given(jobs())
def test_copies_made_where_their_experts_are_move_less(job: Job) -> None:
    once, twice = (replace(machine(job), once=sent) for sent in (True, False))
    assert float(time(once, MIXTURE, ep=8).elementwise[0]) < float(time(twice, MIXTURE, ep=8).elementwise[0])
    assert np.array_equal(time(once, MIXTURE).elementwise, time(twice, MIXTURE).elementwise)
    assert np.array_equal(time(once).elementwise, time(twice).elementwise)


@given(jobs())
def test_a_graph_makes_experts_faster_and_nothing_else(job: Job) -> None:
    plain, graphed = (replace(machine(job), graphed=so) for so in (False, True))
    for name in ("products", "backward", "elementwise"):
        assert (getattr(time(graphed, MIXTURE), name) < getattr(time(plain, MIXTURE), name)).all()
        assert np.array_equal(getattr(time(graphed), name), getattr(time(plain), name))


@given(jobs(), st.sampled_from(["mxfp8", "nvfp4"]), st.floats(2022, 2026))
def test_number_formats_with_a_scale_a_block_were_slower_when_they_were_new(
    job: Job, precision: str, year: float
) -> None:
    stack = shipped().stack_of("megatron-bridge", 2026.0)
    old, new, other = (
        replace(machine(job), stack=stack, precision=form, year=when)
        for form, when in ((precision, year), (precision, 2026.5), ("bf16", year))
    )
    assert old.novelty > 1.0 == new.novelty == other.novelty
    assert (time(old).products > time(new).products).all()
