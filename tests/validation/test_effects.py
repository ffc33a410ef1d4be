"""Effects: what one change did, in pairs of runs alike but for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright.validation.effects import Effect, effects
from tests.validation.runs import scored

if TYPE_CHECKING:
    from clusterwright.estimators.observed import Scored


def only(*runs: Scored) -> Effect:
    (found,) = effects(runs)
    return found


def test_recompute_is_held_against_none() -> None:
    found = only(scored(1.0, 1.0), scored(1.3, 1.2, recompute="full"))
    assert ("recompute off to on", 1, 1.0) == (found.change, found.pairs, found.right_sign)
    assert found.measured == pytest.approx(0.3)
    assert found.estimated == pytest.approx(0.2)
    assert found.median_abs_error == pytest.approx(1 - 1.2 / 1.3)


def test_runs_that_differ_in_something_else_are_no_pair() -> None:
    assert [] == effects([scored(1.0, 1.0), scored(1.3, 1.2, recompute="full", mbs=4)])
    assert [] == effects([scored(1.0, 1.0), scored(1.3, 1.2, recompute="full", source_group="t")])


def test_an_effect_foreseen_the_wrong_way_has_the_wrong_sign() -> None:
    assert 0.0 == only(scored(1.0, 1.0, tp=4, dp=2), scored(1.3, 0.9, tp=8, dp=1)).right_sign


def test_the_sign_of_an_effect_within_noise_is_not_asked_for() -> None:
    found = only(scored(1.0, 1.0), scored(0.7, 0.6, precision="fp8"))
    assert (1, 1.0) == (found.clear, found.right_sign)
    found = only(scored(1.0, 1.0), scored(1.01, 0.6, precision="fp8"))
    assert (0, None) == (found.clear, found.right_sign)


def test_a_doubled_batch_is_judged_by_the_time_of_a_sequence() -> None:
    found = only(scored(1.0, 1.0), scored(1.8, 1.9, gbs=128))
    assert "global batch doubled" == found.change
    assert found.measured == pytest.approx(-0.1)
    assert found.estimated == pytest.approx(-0.05)


def test_more_accelerators_are_judged_by_the_accelerator_time_of_a_sequence() -> None:
    small, large = scored(1.0, 1.0), scored(1.1, 1.05, n_gpus=256, dp=256, gbs=64 * 32)
    found = {effect.change: effect for effect in effects([small, large])}
    assert {"8 to 256 accelerators", "8 times the accelerators or more, as many sequences each"} == set(found)
    assert found["8 to 256 accelerators"].measured == pytest.approx(0.1)


def test_a_run_without_a_measured_step_is_no_half_of_a_pair() -> None:
    assert [] == effects([scored(1.0, 1.0), scored(0.0, 0.6, precision="fp8")])
