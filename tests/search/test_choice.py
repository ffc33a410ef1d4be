"""The tie rule, on published runs: it must not choose layouts that ran slower."""

from __future__ import annotations

from collections import defaultdict
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clusterwright.estimators.grid import RECOMPUTES, SHARDINGS, Layouts
from clusterwright.estimators.observed import job_of
from clusterwright.search.evaluate import TIE, complexity, pick
from clusterwright.search.propose import Limits, legal_layouts
from clusterwright.validation import validate
from clusterwright.workload import Training

if TYPE_CHECKING:
    from clusterwright.estimators.observed import Scored
    from clusterwright.measurement import TrainingRun
    from clusterwright.search.design import Known

JOB = ("source_group", "model", "gpu", "precision", "n_gpus", "gbs", "seq_len")
STALLED = 0.5
"""A regret from which on the pick hit a run with a bad node, which no estimate of a layout can know of."""
LEAST = 1e-3
"""A regret that is no difference: one job of a hundred whose pick is a tenth slower."""
AXES = ("tp", "cp", "pp", "vpp", "ep", "dp", "mbs")


def layout_of(run: TrainingRun) -> tuple[int, ...]:
    sharding, recompute = run.text("sharding"), run.text("recompute")
    return (
        *(run.whole(axis, 1) for axis in AXES),
        run.whole("gbs", 1),
        SHARDINGS.index(sharding) if sharding in SHARDINGS else 0,
        RECOMPUTES.index(recompute) if recompute in RECOMPUTES else 0,
    )


@pytest.fixture(scope="module")
def jobs(known: Known) -> list[dict[tuple[int, ...], list[Scored]]]:
    """The published jobs that several layouts ran."""
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        board = validate([table], known.catalogue)
    found: dict[tuple[object, ...], dict[tuple[int, ...], list[Scored]]] = defaultdict(lambda: defaultdict(list))
    for one in board.scored:
        key = tuple(one.run.text(c) or one.run.number(c) for c in JOB)
        found[key][layout_of(one.run)].append(one)
    return [layouts for layouts in found.values() if len(layouts) > 3]


def figures(job: dict[tuple[int, ...], list[Scored]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimated and measured step time, and complexity, of the layouts of a job."""
    estimated = [float(np.median([one.step_s for one in same])) for same in job.values()]
    measured = [float(np.median([one.run.number("step_time_s") or np.nan for one in same])) for same in job.values()]
    layers = next(iter(job.values()))[0].run.whole("layers", 1)
    return np.array(estimated), np.array(measured), complexity(Layouts(*np.array(list(job)).T), layers)


def test_many_published_jobs_ran_in_several_layouts(jobs: list[dict[tuple[int, ...], list[Scored]]]) -> None:
    assert len(jobs) > 50


def test_ties_do_not_worsen_the_measured_regret_of_the_first_pick(
    jobs: list[dict[tuple[int, ...], list[Scored]]],
) -> None:
    by_estimate, by_rule = [], []
    for job in jobs:
        estimated, measured, plain = figures(job)
        one = pick(estimated, plain, np.zeros(len(job), dtype=np.int64))[0]
        by_rule.append(measured[one] / measured.min() - 1)
        by_estimate.append(measured[np.argmin(estimated)] / measured.min() - 1)
    assert np.mean(by_rule) <= np.mean(by_estimate) + LEAST


def tried(job: dict[tuple[int, ...], list[Scored]], known: Known) -> np.ndarray:
    """Which of the measured layouts the search would look at, whatever they shard."""
    run = next(iter(job.values()))[0].run
    shape = job_of(run, known.catalogue)
    assert not isinstance(shape, str)
    asked = Training(
        tokens=1e12, sequence_length=shape.sequence_length, global_batch=run.whole("gbs"), framework="megatron"
    )
    world = run.whole("n_gpus")
    limits = Limits(1, shape.node.scale_up_domain, world, pins={"accelerators": world})
    lay = legal_layouts(shape.model, asked, limits).layouts
    names = ("tp", "cp", "pp", "vpp", "ep", "dp", "micro_batch")
    space = set(zip(*(getattr(lay, name).tolist() for name in names), strict=True))
    return np.array([layout[: len(names)] in space for layout in job])


def test_what_the_search_does_not_try_does_not_worsen_the_measured_regret(
    known: Known, jobs: list[dict[tuple[int, ...], list[Scored]]]
) -> None:
    by_search, by_estimate, looked = [], [], 0
    for job in jobs:
        estimated, measured, plain = figures(job)
        if not next(iter(job.values()))[0].run.whole("gbs"):
            continue
        kept = tried(job, known)
        if not kept.any():
            continue
        looked += 1
        one = pick(np.where(kept, estimated, np.inf), plain, np.zeros(len(job), dtype=np.int64))[0]
        by_search.append(min(measured[one] / measured.min() - 1, STALLED))
        by_estimate.append(min(measured[np.argmin(estimated)] / measured.min() - 1, STALLED))
    assert looked > 0.8 * len(jobs)
    assert np.mean(by_search) <= np.mean(by_estimate) + LEAST


def test_the_estimate_cannot_tell_layouts_apart_within_a_tie_and_can_beyond(
    jobs: list[dict[tuple[int, ...], list[Scored]]],
) -> None:
    right: dict[bool, list[bool]] = {True: [], False: []}
    for job in jobs:
        estimated, measured, _ = figures(job)
        one, other = np.triu_indices(len(job), 1)
        gap = np.log(estimated[one] / estimated[other])
        agree = gap * np.log(measured[one] / measured[other]) > 0
        for tied in (True, False):
            right[tied].extend(agree[(np.abs(gap) < np.log1p(TIE)) == tied])
    assert np.mean(right[True]) < 0.6 < np.mean(right[False])
