"""Laws and simulation of the same system agree; where the law's assumption fails, they do not."""

from __future__ import annotations

import pytest

from clusterwright.laws import reliability
from clusterwright.simulation import failures

# interval, stall, restart, lag, MTBF [s]: a large run, a slow storage, a lag of most of the interval, hard times.
SYSTEMS = [
    (240.0, 2.6, 670.0, 0.0, 11_135.0),
    (1800.0, 120.0, 900.0, 0.0, 28_440.0),
    (600.0, 1.0, 300.0, 550.0, 20_000.0),
    (900.0, 300.0, 600.0, 0.0, 1800.0),
    (75.0, 0.02, 670.0, 15.8, 178_161.0),
]


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_law_lies_within_the_error_of_the_simulation(
    system: tuple[float, float, float, float, float], seed: int
) -> None:
    simulated = failures.simulate_goodput(*system, seed=seed)
    expected = float(reliability.goodput(*system))
    assert simulated.standard_error < 0.005
    assert abs(expected - simulated.mean) < 4 * simulated.standard_error


def test_a_wrong_law_is_outside_the_error() -> None:
    interval, stall, restart, lag, mtbf = SYSTEMS[0]
    simulated = failures.simulate_goodput(interval, stall, restart, lag, mtbf)
    assert not simulated.agrees(float(reliability.goodput(interval, stall, restart * 0.9, lag, mtbf)))


def test_the_optimum_of_the_law_is_best_in_the_simulation_too() -> None:
    stall, mtbf = 300.0, 10_800.0
    best = float(reliability.checkpoint_interval_exact(stall, mtbf))
    found = [failures.simulate_goodput(best * f, stall, 600.0, 0.0, mtbf).mean for f in (0.4, 1.0, 2.5)]
    assert 1 == found.index(max(found))


def test_failures_that_cluster_leave_more_useful_time_than_the_law_says() -> None:
    system = (900.0, 60.0, 300.0, 0.0, 7200.0)
    clustered = failures.simulate_goodput(*system, shape=0.7)
    assert clustered.interval[0] > float(reliability.goodput(*system))


def test_the_same_seed_gives_the_same_history() -> None:
    one, two = (failures.simulate_goodput(*SYSTEMS[0], replicas=20, failures=50, seed=9) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("exponential", [False, True])
def test_spares_of_the_law_are_short_about_as_often_as_it_says(exponential: bool) -> None:  # noqa: FBT001
    rate, repair = 6.0 / 86_400.0, 86_400.0
    spares = int(reliability.spares_needed(rate * repair, 0.99))
    # A failure that finds `spares` down is the one too many: by PASTA it sees P(X >= spares).
    short = failures.simulate_shortage(spares + 1, rate, repair, exponential=exponential, replicas=100, failures=2000)
    assert short.mean < 0.01
    fewer = failures.simulate_shortage(spares - 1, rate, repair, exponential=exponential, replicas=100, failures=2000)
    assert fewer.mean > 0.01


def test_too_short_a_history_is_refused() -> None:
    with pytest.raises(ValueError, match="ask for more failures"):
        failures.simulate_shortage(1, 1.0, 1e6, replicas=3, failures=10)
