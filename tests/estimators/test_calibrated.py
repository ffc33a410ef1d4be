"""Calibrated estimates: a factor multiplies its parts, and what follows from them follows."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.catalog import load
from clusterwright.estimators.calibrated import FACTORS, FADING, calibrated, likeness, place_of, spread_of
from clusterwright.estimators.grid import Layouts
from clusterwright.estimators.observed import score
from clusterwright.layout import Layout
from clusterwright.measurement import Calibration, Factor, Like
from clusterwright.validation import read_tables

if TYPE_CHECKING:
    from clusterwright.estimators.job import Job

PARTS = {name: np.array([1.0, 2.0]) for names in FACTORS.values() for name in names}
AT_TIMES = {"stalled messages", "optimizer on the host", "activations to the host"}
"""Parts that a step has where its stack stalls or its memory is offloaded."""
HERE = {name: np.array([1.0, 1.0]) for name in FADING}
FACTOR = st.floats(0.1, 10)


def by(**values: float) -> Calibration:
    return Calibration(**{name: Factor(value=value) for name, value in values.items()}, runs=1)


def test_every_part_of_a_step_has_its_factor() -> None:
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        _, runs, _ = read_tables([table])
    scored, _ = score(runs[:400:40], load())
    parts = {name for item in scored for name in item.parts}
    assert parts | AT_TIMES == {name for names in FACTORS.values() for name in names}


def test_every_run_has_all_coordinates() -> None:
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        _, runs, _ = read_tables([table])
    scored, _ = score(runs[:400:40], load())
    assert all(set(FADING) == set(item.place) and min(item.place.values()) > 0 for item in scored)


@pytest.mark.parametrize("name", sorted(load().accelerators))
def test_every_accelerator_of_the_catalogue_has_its_place(name: str, job: Job) -> None:
    job = replace(job, accelerator=load().accelerators[name])
    assert all(float(value[0]) > 0 for value in place_of(job, Layouts.of(Layout(dp=8, global_batch=8))).values())


def test_factors_of_one_change_nothing() -> None:
    found = calibrated(PARTS, Calibration())
    assert all(found[name] == pytest.approx(seconds) for name, seconds in PARTS.items())


@given(FACTOR, FACTOR)
def test_slower_kernels_change_neither_a_stall_nor_what_the_host_does(compute: float, overhead: float) -> None:
    once = {name: np.array([3.0, 4.0]) for name in ("stalled messages", "optimizer on the host")}
    found = calibrated(PARTS | once, by(compute=compute, overhead=overhead))
    assert all(np.array_equal(found[name], seconds) for name, seconds in once.items())
    without = calibrated(PARTS | {"optimizer on the host": once["optimizer on the host"]}, by(compute=compute))
    stalled = calibrated(PARTS | once, by(compute=compute))
    assert np.array_equal(stalled["stragglers"], without["stragglers"])


@given(st.floats(-0.5, 0.5))
def test_what_runs_gained_no_bad_node_gains(weight: float) -> None:
    seconds = np.array([3.0, 4.0])
    place = {name: float(value[0]) for name, value in HERE.items()}
    like = (Like(weight=weight, place=place, shares=dict.fromkeys(FACTORS, 0.1)),)
    found = calibrated(PARTS | {"stalled messages": seconds}, Calibration(like=like, runs=1), HERE)
    assert np.array_equal(seconds, found["stalled messages"])
    assert np.allclose(found["matrix products"], np.exp(weight) * PARTS["matrix products"])


def test_a_launch_floor_hides_the_kernels_that_it_launches() -> None:
    """Where the host is what a step waits for, faster kernels do not make it shorter."""
    parts = {"matrix products": np.array([1.0]), "launch floor": np.array([2.0])}
    assert sum(calibrated(parts, by(compute=0.5)).values()) == pytest.approx(3.0)
    assert sum(calibrated(parts, by(compute=5.0)).values()) == pytest.approx(5.0)
    assert sum(calibrated(parts, by(launch=2.0)).values()) == pytest.approx(6.0)


def test_the_bubble_and_the_stragglers_go_with_the_step() -> None:
    parts = {"matrix products": np.array([4.0]), "pipeline bubble": np.array([1.0]), "stragglers": np.array([0.5])}
    found = calibrated(parts, by(compute=2.0))
    assert (8.0, 2.0, 1.0) == tuple(float(seconds[0]) for seconds in found.values())


@given(st.floats(0.1, 3), st.floats(1, 10))
def test_the_bubble_of_a_host_that_is_too_slow_goes_with_the_host(compute: float, launch: float) -> None:
    parts = {name: np.array([value]) for name, value in (("matrix products", 1.0), ("launch floor", 2.0))}
    parts["pipeline bubble"] = np.array([4.0])
    assert 4.0 == pytest.approx(float(calibrated(parts, by(compute=compute))["pipeline bubble"][0]))
    assert 4 * launch == pytest.approx(float(calibrated(parts, by(launch=launch))["pipeline bubble"][0]))


@given(FACTOR, FACTOR)
def test_the_bubble_goes_with_a_stage_that_has_no_output_head(head: float, compute: float) -> None:
    parts = {name: np.array([4.0]) for name in ("matrix products", "output head and loss", "pipeline bubble")}
    assert 4.0 == pytest.approx(float(calibrated(parts, by(head=head))["pipeline bubble"][0]))
    assert 4 * compute == pytest.approx(float(calibrated(parts, by(compute=compute))["pipeline bubble"][0]))


@given(st.sampled_from(list(FACTORS)), FACTOR, FACTOR)
def test_a_larger_factor_is_never_faster(name: str, one: float, other: float) -> None:
    less, more = (sum(calibrated(PARTS, by(**{name: value})).values()) for value in sorted((one, other)))
    assert np.all(less <= more * (1 + 1e-9))


@given(st.floats(0, 0.5), st.floats(0, 0.5))
def test_surer_factors_give_a_narrower_interval(one: float, other: float) -> None:
    sure, unsure = sorted((one, other))
    fits = (Calibration(compute=Factor(value=1.0, spread=s), runs=1) for s in (sure, unsure))
    narrow, wide = (spread_of(PARTS, fit, HERE) for fit in fits)
    assert np.all(narrow <= wide)
    assert np.all(narrow >= Calibration().unexplained)


def test_a_run_gains_what_its_like_gained_and_less_the_less_they_are_alike() -> None:
    fit = Calibration(
        like=(Like(weight=0.1, place=dict.fromkeys(FADING, 1.0), shares=dict.fromkeys(FACTORS, 0.1)),), runs=1
    )
    far = HERE | {"tp": np.array([1.0, 8.0])}
    gained = calibrated(PARTS, fit, far)["attention"] / PARTS["attention"]
    assert gained[0] == pytest.approx(np.exp(0.1))
    assert 1.0 < gained[1] < gained[0]
    assert np.diff(spread_of(PARTS, fit, far))[0] > 0


@given(st.floats(1, 1e5), st.floats(1, 1e5), st.sampled_from(list(FADING)))
def test_likeness_is_mutual_and_that_of_a_run_with_itself_is_one(one: float, other: float, name: str) -> None:
    def place(value: float) -> dict[str, float]:
        return dict.fromkeys(FADING, 1.0) | {name: value}

    def of(x: float, y: float) -> float:
        return float(likeness({k: np.array(v) for k, v in place(x).items()}, place(y)))

    assert of(one, one) == 1.0
    assert 0 <= of(one, other) == pytest.approx(of(other, one))
