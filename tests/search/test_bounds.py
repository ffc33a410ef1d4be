"""What is refused unseen would not have fitted, and what is spared would not have won."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clusterwright.estimators.training import RECOMPUTES, USABLE_MEMORY, Job, Layouts, run
from clusterwright.search.bounds import memory_bounds
from clusterwright.search.propose import Limits, legal_layouts
from tests.search.conftest import SMALL
from tests.search.test_propose import MIXTURE, training

if TYPE_CHECKING:
    from clusterwright.model import Model
    from clusterwright.search.design import Known

CASES = [
    (SMALL, "megatron", "full", "h100-sxm"),
    (SMALL, "torchtitan", "full", "h100-sxm"),
    (SMALL, "deepspeed", "full", "h100-sxm"),
    (SMALL, "fsdp", "lora", "h100-sxm"),
    (SMALL, "megatron", "qlora", "rtx-4090"),
    (MIXTURE, "megatron", "full", "h100-sxm"),
    (MIXTURE, "torchtitan", "full", "mi300x"),
]


def job_of(known: Known, model: Model, framework: str, method: str, accelerator: str) -> Job:
    """A job on a node of eight; with a fifth of the memory so that much does not fit."""
    part = known.catalogue.accelerator(accelerator)
    part = part.model_copy(update={"memory_bytes": part.memory_bytes / 5})
    node = known.catalogue.node("dgx-h100")
    return Job(model, part, node, sequence_length=8192, framework=framework, method=method)


@pytest.mark.parametrize(("model", "framework", "method", "accelerator"), CASES)
def test_nothing_that_fits_is_refused_unseen(
    known: Known, model: Model, framework: str, method: str, accelerator: str
) -> None:
    asked = training(framework=framework, method=method)
    job = job_of(known, model, framework, method, accelerator)
    bounds, limits = memory_bounds(job, 64), Limits(8, 8, 64)
    every, kept = legal_layouts(model, asked, limits), legal_layouts(model, asked, limits, bounds)
    names = [f.name for f in fields(Layouts)]
    left = set(zip(*(getattr(kept.layouts, n).tolist() for n in names), strict=True))
    rows = list(zip(*(getattr(every.layouts, n).tolist() for n in names), strict=True))
    refused = np.array([i for i, row in enumerate(rows) if row not in left], dtype=int)
    assert left <= set(rows)
    assert len(rows) - len(left) == len(refused)
    part = Layouts(*(getattr(every.layouts, n)[refused] for n in names))
    for recompute in range(len(RECOMPUTES)):
        found = run(job, replace(part, recompute=np.full_like(part.tp, recompute)))
        assert (found.memory_bytes > USABLE_MEMORY * job.accelerator.memory_bytes).all()


def test_the_bounds_refuse_much_of_what_does_not_fit(known: Known) -> None:
    job = job_of(known, MIXTURE, "megatron", "full", "h100-sxm")
    every = legal_layouts(MIXTURE, training(), Limits(8, 8, 64)).layouts
    kept = legal_layouts(MIXTURE, training(), Limits(8, 8, 64), memory_bounds(job, 64)).layouts
    full = run(job, replace(every, recompute=np.full_like(every.tp, 2)))
    misfits = int((full.memory_bytes > USABLE_MEMORY * job.accelerator.memory_bytes).sum())
    assert len(every.tp) - len(kept.tp) > 0.5 * misfits


@pytest.mark.parametrize(("model", "framework", "method", "accelerator"), CASES)
def test_recomputing_more_is_never_quicker(
    known: Known, model: Model, framework: str, method: str, accelerator: str
) -> None:
    job = job_of(known, model, framework, method, accelerator)
    every = legal_layouts(model, training(framework=framework, method=method), Limits(8, 8, 64)).layouts
    times = [run(job, replace(every, recompute=np.full_like(every.tp, r))).step_time_s for r in range(len(RECOMPUTES))]
    assert (times[0] <= times[1] * (1 + 1e-12)).all()
    assert (times[1] <= times[2] * (1 + 1e-12)).all()
