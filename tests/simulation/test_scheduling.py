"""Gang against piecemeal allocation."""

from __future__ import annotations

import random

import pytest

from clusterwright.errors import InputError
from clusterwright.simulation.scheduling import TWO_OF_48, Job, Policy, play, read_jobs


def traffic(seed: int, count: int = 200) -> list[Job]:
    chance, jobs, now = random.Random(seed), [], 0.0
    for number in range(count):
        now += chance.expovariate(1 / 600)
        nodes = chance.choice([1, 2, 4, 8, 16, 32, 48, 64])
        jobs.append(Job(f"job{number:04d}", nodes, 60 + chance.expovariate(1 / 3000), now))
    return jobs


def test_two_jobs_of_48_nodes_on_64_wait_for_each_other_for_ever_when_nodes_come_piecemeal() -> None:
    schedule = play(TWO_OF_48, 64, Policy.PIECEMEAL)
    assert schedule.deadlocked
    assert ("a", "b") == schedule.stuck
    assert 64 == schedule.held_idle
    assert () == schedule.ran


@pytest.mark.parametrize("policy", [Policy.GANG, Policy.BACKFILL, Policy.TOPOLOGY])
def test_all_or_nothing_runs_them_one_after_the_other(policy: Policy) -> None:
    schedule = play(TWO_OF_48, 64, policy)
    assert not schedule.deadlocked
    assert [0.0, 3600.0] == [ran.start_s for ran in schedule.ran]
    assert 7200.0 == schedule.end_s


def test_piecemeal_is_no_trouble_where_all_jobs_fit_together() -> None:
    assert [0.0, 0.0] == [ran.start_s for ran in play(TWO_OF_48, 96, Policy.PIECEMEAL).ran]


@pytest.mark.parametrize("policy", [Policy.GANG, Policy.BACKFILL, Policy.TOPOLOGY])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_node_is_ever_given_twice(policy: Policy, seed: int) -> None:
    schedule = play(traffic(seed), 128, policy)
    assert 200 == len(schedule.ran)
    for ran in schedule.ran:
        running = [r.job.nodes for r in schedule.ran if r.start_s <= ran.start_s < r.start_s + r.job.run_s]
        assert sum(running) <= 128


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_backfill_waits_less_than_order_and_topology_spreads_less(seed: int) -> None:
    gang, backfill, topology = (play(traffic(seed), 128, p) for p in (Policy.GANG, Policy.BACKFILL, Policy.TOPOLOGY))
    assert backfill.mean_wait_s < gang.mean_wait_s
    assert topology.mean_spread < backfill.mean_spread


def test_a_backfilled_job_does_not_delay_the_head_of_the_queue() -> None:
    jobs = [
        Job("runs", 48, 1000.0),
        Job("head", 64, 1000.0, submitted_s=1.0),
        Job("short", 16, 500.0, submitted_s=2.0),
        Job("long", 16, 5000.0, submitted_s=3.0),
    ]
    started = {ran.job.name: ran.start_s for ran in play(jobs, 64, Policy.BACKFILL).ran}
    assert {"runs": 0.0, "short": 2.0, "head": 1000.0, "long": 2000.0} == started


def test_a_job_larger_than_the_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="asks for 65 of 64 nodes"):
        play([Job("a", 65, 1.0)], 64, Policy.GANG)


def test_jobs_hold_nodes_idle_only_when_nodes_come_one_by_one() -> None:
    jobs = [Job("runs", 40, 1000.0), Job("waits", 48, 100.0, submitted_s=1.0)]
    piecemeal, gang = play(jobs, 64, Policy.PIECEMEAL), play(jobs, 64, Policy.GANG)
    assert 24 * 999.0 == piecemeal.held_node_s
    assert 0.0 == gang.held_node_s


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column name, nodes, run_s is missing"),
        ("name,nodes\na,1", "column run_s is missing"),
        ("name,nodes,run_s", "no jobs"),
        ("name,nodes,run_s\na,1.5,60", "line 2: nodes '1.5' is not a whole number"),
        ("name,nodes,run_s\na,0,60", "line 2: nodes '0' is not a number of at least 1"),
        ("name,nodes,run_s\na,1,nan", "line 2: run_s 'nan'"),
        ("name,nodes,run_s\n,1,60", "line 2: name is missing"),
        ("name,nodes,run_s\na,1,60\na,2,60", "line 3: name 'a' is there already"),
        ("name,nodes,run_s,submitted_s\na,1,60,-5", "line 2: submitted_s '-5'"),
    ],
)
def test_a_wrong_job_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"jobs\.csv") as told:
        read_jobs(text, "jobs.csv")
    assert said in str(told.value)
