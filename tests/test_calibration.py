"""Calibration: one's own runs move the named factors, few runs move them little."""

from __future__ import annotations

import tomllib

import pytest

from clusterwright.calibration import PRIORS, calibrate, to_toml
from clusterwright.catalog import load
from clusterwright.errors import InfeasibleError
from clusterwright.estimators.calibrated import FACTORS
from clusterwright.estimators.observed import score
from clusterwright.measurement import Calibration, Factor, TrainingRun, read_run
from tests.validation.runs import ROW as PLAIN

ROW = PLAIN | {"framework": "Megatron-Core", "source_date": "2026-01", "seq_len": "8192", "n_gpus": "32", "dp": "32"}
TRUTH = Calibration(compute=Factor(value=1.2), communication=Factor(value=1.3), overhead=Factor(value=2.0), runs=1)


def observed() -> list[TrainingRun]:
    """Runs of a cluster whose true factors are known."""
    found = []
    for i, (mbs, gbs) in enumerate([(1, 32), (1, 64), (2, 64), (2, 128), (1, 128), (2, 256), (1, 256), (2, 512)]):
        run = read_run({**ROW, "id": f"run-{i}", "mbs": str(mbs), "gbs": str(gbs)})
        assert isinstance(run, TrainingRun)
        (estimate,), _ = score([run], load(), TRUTH)
        found.append(TrainingRun(run.texts, {**run.numbers, "step_time_s": estimate.step_s}))
    return found


def test_runs_of_known_factors_are_foretold() -> None:
    fit = calibrate(observed(), load())
    assert 1.0 < fit.calibration.compute.value < 1.3
    assert fit.after < 0.02 < fit.before
    assert fit.left_out is not None
    assert fit.left_out < 0.02


def test_an_odd_run_does_not_turn_the_estimate_over() -> None:
    runs = observed()
    odd = TrainingRun(runs[0].texts, {**runs[0].numbers, "step_time_s": 3 * runs[0].numbers["step_time_s"]})
    assert calibrate([odd, *runs[1:]], load()).after < 0.02


def test_runs_like_those_fitted_are_foretold_better_than_others() -> None:
    runs = observed()
    fit = calibrate(runs[:4], load()).calibration
    far = TrainingRun(runs[0].texts, {**runs[0].numbers, "n_gpus": 4096.0, "dp": 512.0, "tp": 8.0, "gbs": 4096.0})
    (near, other), _ = score([runs[0], far], load(), fit)
    assert near.high_s / near.low_s < other.high_s / other.low_s


def test_a_factor_that_no_run_tells_of_stays_as_shipped() -> None:
    communication = calibrate(observed(), load()).calibration.communication
    assert communication.value == pytest.approx(1.0, abs=1e-3)
    assert communication.spread == pytest.approx(PRIORS["communication"], rel=0.01)


def test_every_factor_of_a_calibration_is_fitted_and_multiplies_a_part() -> None:
    factors = [name for name, field in Calibration.model_fields.items() if field.annotation is Factor]
    assert factors == list(PRIORS) == list(FACTORS)


def test_one_run_moves_the_factors_less_than_many() -> None:
    runs = observed()
    one, many = calibrate(runs[:1], load()), calibrate(runs, load())
    assert one.calibration.compute.spread > many.calibration.compute.spread
    assert one.left_out is None


def test_a_calibration_narrows_the_interval() -> None:
    runs = observed()
    fit = calibrate(runs, load())
    assert fit.interval_after < fit.interval_before
    (plain,), _ = score(runs[:1], load())
    (fitted,), _ = score(runs[:1], load(), calibrate(runs, load()).calibration)
    assert fitted.high_s / fitted.low_s < plain.high_s / plain.low_s


def test_the_file_holds_what_was_fitted() -> None:
    fit = calibrate(observed()[:3], load())
    document = tomllib.loads(to_toml(fit))
    assert Calibration.model_validate(document).compute.value == pytest.approx(fit.calibration.compute.value, abs=1e-4)
    assert document["runs"] == 3


def test_nothing_is_made_from_no_runs() -> None:
    with pytest.raises(InfeasibleError, match="nothing to calibrate from"):
        calibrate([], load())
