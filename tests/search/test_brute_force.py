"""The search against trying everything, with the rules written a second time and one layout after the other."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clusterwright.estimators.training import USABLE_MEMORY, Layouts, run
from clusterwright.layout import Layout
from clusterwright.search.candidate import make
from clusterwright.search.design import design, offered_by, setting_of, trainable
from clusterwright.search.evaluate import COLUMNS, TIE
from tests.search.conftest import SMALL, wish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusterwright.plan import Candidate
    from clusterwright.search.design import Known, Wish
    from clusterwright.search.offers import Kind

BATCH, MOST = 16, 16


def layouts(kind: Kind, *, wasteful: bool = True) -> Iterator[Layout]:
    """Every layout that Megatron accepts for the small model, by its rules in plain words.

    Without ``wasteful`` those are left out that the search does not try since a shorter pipeline, or fewer pieces, has
    no more layers on its fullest stage.
    """
    degrees = itertools.product(range(1, 9), (1, 2), range(1, 9), range(1, 9), range(1, 17), (1, 2, 4, 8, 16))
    for tp, cp, pp, vpp, dp, micro_batch in degrees:
        world = tp * cp * pp * dp
        if world > MOST or world % kind.node.accelerators or (kind.max_nodes == 1 and world > kind.node.accelerators):
            continue
        if 32 % tp or tp > kind.node.scale_up_domain or (8 % tp and tp % 8) or BATCH % (dp * micro_batch):
            continue
        if pp * vpp > 8 or (vpp > 1 and (pp == 1 or (BATCH // (dp * micro_batch)) % pp)):
            continue
        fullest = math.ceil(8 / pp)
        longer = pp > 1 and fullest == math.ceil(8 / (pp - 1)) and 8 % pp and 10 % pp
        uneven = vpp * math.ceil(8 / (pp * vpp)) > fullest and 10 % (pp * vpp)
        if not wasteful and (longer or uneven):
            continue
        for sharding, recompute in itertools.product(("none", "distopt", "fsdp"), ("none", "selective", "full")):
            if (sharding != "none" and dp * cp == 1) or (sharding == "fsdp" and pp > 1):
                continue
            yield Layout(
                tp=tp, cp=cp, pp=pp, vpp=vpp, dp=dp, micro_batch=micro_batch, global_batch=BATCH, sharding=sharding,
                recompute=recompute,
            )  # fmt: skip


def everything(asked: Wish, known: Known) -> list[Candidate]:
    """Every layout that fits, at every price."""
    setting = setting_of(asked, trainable(asked.workload), known)
    found: list[Candidate] = []
    for kind in offered_by(asked, setting, known).kinds:
        legal = list(layouts(kind))
        numbers = run(setting.job(kind), Layouts.of(*legal)) if legal else None
        nodes = sorted({one.accelerators // kind.node.accelerators for one in legal})
        useful = [setting.useful(np.array(nodes, dtype=int), kind.node.accelerators, quote) for quote in kind.quotes]
        for place, layout in enumerate(legal):
            assert numbers is not None
            if numbers.memory_bytes[place] <= USABLE_MEMORY * kind.accelerator.memory_bytes:
                row = {name: float(getattr(numbers, name)[place]) for name in COLUMNS}
                found.extend(
                    make(setting, kind, quote, layout, row, left)
                    for quote, left in zip(kind.quotes, useful, strict=True)
                )
    return found


LIMITS = [
    {}, {"deadline": "30 days"}, {"budget": "20000 USD"}, {"providers": ["lambda"]},
    {"own": True, "terms": ["reserved"], "horizon": "3 years", "utilisation": 0.6},
]  # fmt: skip


@pytest.mark.parametrize("objective", ["cost", "time"])
@pytest.mark.parametrize("limits", LIMITS)
def test_the_search_finds_what_trying_everything_finds(known: Known, objective: str, limits: dict[str, object]) -> None:
    asked = wish(constraints=limits, prefer={"objective": objective})
    constraints = asked.workload.constraints
    allowed = [
        one for one in everything(asked, known)
        if (constraints.deadline is None or one.estimate.train_time_s <= constraints.deadline)
        and (constraints.budget is None or one.estimate.cost_usd <= constraints.budget)
    ]  # fmt: skip
    assert allowed or limits
    plan = design(asked, known)
    if not allowed:
        assert plan.chosen is None
        return
    key = "train_time_s" if objective == "time" else "cost_usd"
    best = min(getattr(one.estimate, key) for one in allowed)
    assert plan.chosen is not None
    # Layouts may tie on their cluster, and clusters with one another.
    assert best <= getattr(plan.chosen.estimate, key) <= best * (1 + TIE) ** 2
    alike = [one for one in allowed if (one.node, one.nodes) == (plan.chosen.node, plan.chosen.nodes)]
    quickest = min(one.estimate.step_time_s for one in alike)
    equal = [one for one in alike if one.estimate.step_time_s <= quickest * (1 + TIE)]
    assert plan.chosen.layout in {one.layout for one in equal}
    assert plainness(plan.chosen.layout) == min(plainness(one.layout) for one in equal)


def plainness(layout: Layout) -> float:
    """How many things a person must understand, written a second time."""
    degrees = layout.tp * layout.cp * layout.pp * layout.vpp * layout.ep
    words = ("none", "selective", "full").index(layout.recompute)
    uneven = 8 % (layout.pp * layout.vpp) != 0
    return round(
        math.log2(degrees) + uneven + words / 2 + (layout.sharding != "none") / 4 + (layout.sharding == "fsdp") / 4, 9
    )


def test_the_search_counts_the_layouts_that_the_rules_leave(known: Known) -> None:
    asked = wish()
    plan = design(asked, known)
    setting = setting_of(asked, trainable(asked.workload), known)
    kinds = {kind.alike: kind for kind in offered_by(asked, setting, known).kinds}.values()
    memory = next(r for r in plan.rejected if r.binding_constraint == "memory")
    words = memory.why.split()
    assert f"{sum(1 for kind in kinds for _ in layouts(kind, wasteful=False)):,}" == words[words.index("of") + 1]


def test_no_point_that_trying_everything_finds_beats_the_front(known: Known) -> None:
    asked = wish()
    plan = design(asked, known)
    for one in everything(asked, known):
        assert not any(
            one.estimate.train_time_s < p.estimate.train_time_s * (1 - 2 * TIE)
            and one.estimate.cost_usd < p.estimate.cost_usd * (1 - 2 * TIE)
            for p in plan.front
        )
    assert SMALL.layers == 8
