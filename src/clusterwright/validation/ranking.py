"""Which layout of a job the estimate would choose, and how much slower that one ran than the best."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from clusterwright.estimators.observed import Scored
    from clusterwright.measurement import TrainingRun

JOB = ("source_group", "model", "gpu", "n_gpus", "gbs", "seq_len", "precision")
"""Columns that say what was trained on what: runs alike in them differ by layout."""
LAYOUT = ("tp", "cp", "pp", "vpp", "ep", "dp", "sharding", "mbs", "recompute")
LEAST = 4
"""Layouts that a job must have to be ranked."""


@dataclass(frozen=True)
class Ranked:
    """One job whose layouts were measured and estimated."""

    job: str
    split: str
    multi_node: bool
    n: int
    """Different layouts."""
    kendall_tau: float | None
    """Agreement of the two orders, from -1 to 1; none where all estimates or all measurements are the same."""
    pick_regret: float
    """How much longer the layout that is estimated fastest took than the fastest."""
    picked: str
    """The layout that is estimated fastest (the first of them)."""
    best: str
    """The layout that was fastest."""


def rank(scored: Iterable[Scored]) -> list[Ranked]:
    """Every job with enough layouts, those of many layouts first; runs of one layout count once, by their median."""
    jobs: dict[tuple[object, ...], dict[tuple[object, ...], list[Scored]]] = defaultdict(lambda: defaultdict(list))
    for item in scored:
        if item.run.number("step_time_s"):
            jobs[_values(item.run, JOB)][_values(item.run, LAYOUT)].append(item)
    found = [_ranked(list(layouts.values())) for layouts in jobs.values() if len(layouts) >= LEAST]
    return sorted(found, key=lambda one: -one.n)


def _values(run: TrainingRun, columns: Iterable[str]) -> tuple[object, ...]:
    return tuple(map(run.given, columns))


def _ranked(layouts: Sequence[Sequence[Scored]]) -> Ranked:
    run = layouts[0][0].run
    estimated = np.array([np.median([item.step_s for item in same]) for same in layouts])
    measured = np.array([np.median([item.run.number("step_time_s") for item in same]) for same in layouts])
    name = (
        f"{run.text('source_group')} {run.text('model')} {run.text('precision')}, {run.whole('n_gpus')} x "
        f"{run.text('gpu')}, {run.whole('gbs')} sequences of {run.whole('seq_len')}"
    )
    multi = run.whole("n_gpus") > run.whole("gpus_per_node", 8)
    picked, best = (_layout(layouts[int(times.argmin())][0].run) for times in (estimated, measured))
    tau, regret = kendall_tau(estimated, measured), pick_regret(estimated, measured)
    return Ranked(name, run.text("split"), multi, len(layouts), tau, regret, picked, best)


def _layout(run: TrainingRun) -> str:
    said = ((column, run.given(column)) for column in LAYOUT)
    return " ".join(
        f"{column} {value:g}" if isinstance(value, float) else f"{column} {value}" for column, value in said if value
    )


def kendall_tau(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    r"""Kendall's rank correlation with ties, :math:`\tau_b`.

    .. math:: \tau_b = \frac{n_+ - n_-}{\sqrt{(n_0 - t_1)(n_0 - t_2)}}

    Args:
        one: A figure of each thing. [any unit], shape (n,)
        other: Another. [any unit], shape (n,)

    Returns:
        The correlation [1]; none where one of the two is the same for all.

    Sources:
        Kendall, "The treatment of ties in ranking problems", Biometrika 33 (1945), 239-251.

    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0]))
    0.3333333333333333
    """
    pairs = np.triu_indices(len(one), 1)
    first, second = (np.sign(v[pairs[0]] - v[pairs[1]]) for v in (one, other))
    scale = np.sqrt(np.count_nonzero(first) * np.count_nonzero(second))
    return float(first @ second / scale) if scale else None


def pick_regret(estimated: NDArray[np.float64], measured: NDArray[np.float64]) -> float:
    """How much longer the one with the least estimate took than the best; the mean of them where several are least.

    Args:
        estimated: Step time of each layout. [s], shape (n,)
        measured: Step time of each layout. [s], shape (n,)

    Returns:
        Time of the pick over the least, minus one [1].

    >>> pick_regret(np.array([1.0, 1.1, 2.0]), np.array([1.5, 1.2, 1.9]))
    0.25
    """
    return float(measured[estimated == estimated.min()].mean() / measured.min() - 1)


def summarise(jobs: Iterable[Ranked]) -> list[dict[str, Any]]:
    """Means over the jobs of each split, within a node and across nodes."""
    groups: dict[tuple[str, bool], list[Ranked]] = defaultdict(list)
    for job in jobs:
        groups[job.split or "-", job.multi_node].append(job)
    return [_summary(split, same, multi=multi) for (split, multi), same in sorted(groups.items())]


def _summary(split: str, jobs: Sequence[Ranked], *, multi: bool) -> dict[str, Any]:
    taus = [job.kendall_tau for job in jobs if job.kendall_tau is not None]
    worst = max(jobs, key=lambda job: job.pick_regret)
    return {
        "split": split,
        "nodes": "multi-node" if multi else "single-node",
        "jobs": len(jobs),
        "layouts": sum(job.n for job in jobs),
        "mean_kendall_tau": float(np.mean(taus)) if taus else None,
        "mean_pick_regret": float(np.mean([job.pick_regret for job in jobs])),
        "worst_pick_regret": worst.pick_regret,
        "worst_job": worst.job,
    }


def documents(jobs: Iterable[Ranked]) -> list[dict[str, Any]]:
    """The jobs as JSON."""
    return [asdict(job) for job in jobs]
