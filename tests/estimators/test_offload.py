"""What the host holds takes time there: an optimizer that steps, activations that go and come back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.estimators import offload
from clusterwright.estimators.grid import Layouts
from clusterwright.estimators.job import Device, Job
from clusterwright.estimators.keeping import Saving
from clusterwright.estimators.residency import kept_bytes
from clusterwright.estimators.training import Estimates, run
from clusterwright.layout import Layout
from tests.estimators.drawn import jobs, layouts

OPTIMIZER, ACTIVATIONS = "optimizer on the host", "activations to the host"
LAYOUT = Layout(tp=8, dp=8, sharding="distopt", global_batch=128)
GRACE = pytest.mark.parametrize("name", ["gh200", "gb200", "gb300"])
drawn = settings(max_examples=30, deadline=None)


def one(job: Job, layout: Layout = LAYOUT, **saving: Any) -> Estimates:  # noqa: ANN401 - the fields of Saving
    return run(replace(job, saving=Saving(**saving)), Layouts.of(layout))


def step(found: Estimates) -> float:
    return float(found.step_time_s[0])


def beside_a_grace(job: Job, name: str = "gb200") -> Job:
    """The same job on an accelerator that differs in its link to the host alone."""
    return replace(job, accelerator=job.accelerator.model_copy(update={"name": name}))


def with_architecture(job: Job, name: str) -> Job:
    return replace(job, accelerator=job.accelerator.model_copy(update={"architecture": name}))


def device(busy: float) -> Device:
    """A device whose layers are busy for so long [s], and of whose times nothing else counts."""
    zero = np.zeros(1)
    times = dict.fromkeys(Device.__dataclass_fields__, zero) | {"busy": np.array([busy]), "layers": np.ones(1)}
    return Device(**times)


@drawn
@given(jobs(), layouts())
def test_nothing_of_a_job_that_offloads_nothing_is_on_the_host(job: Job, layout: Layout) -> None:
    assert {OPTIMIZER, ACTIVATIONS}.isdisjoint(one(job, layout).parts)
    assert OPTIMIZER not in one(job, layout, offload_activations=True).parts
    assert ACTIVATIONS not in one(job, layout, offload_optimizer=1.0).parts


@drawn
@given(jobs(), layouts())
def test_an_optimizer_on_the_host_steps_there_alone(job: Job, layout: Layout) -> None:
    here, there = one(job, layout), one(job, layout, offload_optimizer=1.0)
    assert float(here.parts["optimizer step"][0]) > 0.0
    assert 0.0 == float(there.parts["optimizer step"][0])
    assert float(there.parts[OPTIMIZER][0]) > float(here.parts["optimizer step"][0])


@drawn
@given(jobs(), layouts(), st.floats(0.05, 0.95))
def test_a_share_of_an_optimizer_on_the_host_lies_between_none_and_all_of_it(
    job: Job, layout: Layout, share: float
) -> None:
    none, some, whole = (one(job, layout, offload_optimizer=part) for part in (0.0, share, 1.0))
    assert step(one(job, layout)) == step(none)
    assert step(none) < step(some) < step(whole)
    assert share * whole.parts[OPTIMIZER] == pytest.approx(some.parts[OPTIMIZER])
    assert (1 - share) * none.parts["optimizer step"] == pytest.approx(some.parts["optimizer step"])


@GRACE
@drawn
@given(job=jobs(), layout=layouts())
def test_an_optimizer_takes_longer_over_pcie_than_beside_a_grace(name: str, job: Job, layout: Layout) -> None:
    pcie = one(job, layout, offload_optimizer=1.0)
    grace = one(beside_a_grace(job, name), layout, offload_optimizer=1.0)
    assert 0.0 < float(grace.parts[OPTIMIZER][0]) < float(pcie.parts[OPTIMIZER][0])


@drawn
@given(jobs())
def test_an_optimizer_takes_longer_over_an_older_link(job: Job) -> None:
    job = replace(job, saving=Saving(offload_optimizer=1.0))
    old, middle, new = (
        float(offload.optimizer(with_architecture(job, name), 3e12, np.array([1e9]))[OPTIMIZER][0])
        for name in ("volta", "ampere", "hopper")
    )
    assert new < middle < old


@drawn
@given(jobs())
def test_an_optimizer_takes_longer_where_more_accelerators_share_the_host(job: Job) -> None:
    job = replace(job, saving=Saving(offload_optimizer=1.0))
    few, many = (
        float(
            offload.optimizer(
                replace(job, node=job.node.model_copy(update={"accelerators": count})), 3e12, np.array([1e9])
            )[OPTIMIZER][0]
        )
        for count in (4, 8)
    )
    assert few < many


@drawn
@given(jobs(), st.floats(1.0, 8.0))
def test_an_optimizer_of_more_parameters_takes_longer_on_the_host(job: Job, factor: float) -> None:
    job = replace(job, saving=Saving(offload_optimizer=1.0))
    few, many = (offload.optimizer(job, 3e12, np.array([owned]))[OPTIMIZER] for owned in (1e9, factor * 1e9))
    assert factor * few == pytest.approx(many)


@drawn
@given(jobs(), layouts(), st.floats(0.0, 10.0))
def test_activations_take_the_time_that_neither_pass_hides(job: Job, layout: Layout, busy: float) -> None:
    lay = Layouts.of(layout)
    copy = float(kept_bytes(job, lay)[0]) / min(offload.links(job))
    forward, backward = busy / 3, 2 * busy / 3
    expected = max(copy - forward, 0.0) + max(copy - backward, 0.0)
    assert expected == pytest.approx(float(offload.activations(job, lay, device(busy))[0]), abs=1e-12)


@drawn
@given(jobs(), layouts(), st.integers(1, 80))
def test_activations_go_while_the_host_launches(job: Job, layout: Layout, count: int) -> None:
    lay, seconds = Layouts.of(layout), np.array([0.5])
    launched = replace(device(0.0), launch=count * seconds, layers=np.array([float(count)]))
    assert offload.activations(job, lay, device(0.5)) == pytest.approx(offload.activations(job, lay, launched))


@drawn
@given(jobs(), layouts(), st.floats(1.0, 8.0))
def test_activations_cost_nothing_where_they_are_gone_before_the_forward_pass_is(
    job: Job, layout: Layout, longer: float
) -> None:
    lay = Layouts.of(layout)
    copy = float(kept_bytes(job, lay)[0]) / min(offload.links(job))
    assert 0.0 == float(offload.activations(job, lay, device(3 * longer * copy * (1 + 1e-12)))[0])


@drawn
@given(jobs(), layouts(), st.floats(0, 1), st.floats(0, 1))
def test_activations_of_more_layers_never_take_less(job: Job, layout: Layout, share: float, other: float) -> None:
    few, many = (
        one(job, layout, offload_activations=True, offload_share=part).parts[ACTIVATIONS]
        for part in sorted((share, other))
    )
    none = one(job, layout, offload_activations=True, offload_share=0.0)
    assert 0.0 == float(none.parts[ACTIVATIONS][0]) <= float(few[0]) <= float(many[0])


def test_a_link_to_a_grace_hides_activations_that_pcie_does_not(job: Job) -> None:
    pcie, grace = one(job, offload_activations=True), one(beside_a_grace(job), offload_activations=True)
    assert float(pcie.parts[ACTIVATIONS][0]) > 0.0
    assert 0.0 == float(grace.parts[ACTIVATIONS][0])


@drawn
@given(jobs(), layouts())
def test_offload_is_never_faster_and_a_faster_link_never_slower(job: Job, layout: Layout) -> None:
    plain, away = one(job, layout), one(job, layout, offload_activations=True)
    assert step(plain) <= step(away) * (1 + 1e-9)
    assert step(one(beside_a_grace(job), layout, offload_activations=True)) <= step(away) * (1 + 1e-9)


@drawn
@given(jobs(), layouts(pp=1, vpp=1), st.integers(1, 4))
def test_activations_go_every_micro_batch_and_an_optimizer_steps_once(job: Job, layout: Layout, more: int) -> None:
    longer = layout.model_copy(update={"global_batch": more * layout.global_batch})
    both = {"offload_activations": True, "offload_optimizer": 1.0}
    short, long = one(job, layout, **both), one(job, longer, **both)
    assert more * short.parts[ACTIVATIONS] == pytest.approx(long.parts[ACTIVATIONS])
    assert short.parts[OPTIMIZER] == pytest.approx(long.parts[OPTIMIZER])
