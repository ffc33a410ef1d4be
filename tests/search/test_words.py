"""What a plan says of its reasons is so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusterwright.estimators.training import USABLE_MEMORY, Layouts, run
from clusterwright.layout import Layout
from clusterwright.search.design import design, offered_by, setting_of, trainable
from clusterwright.search.neighbours import layout_reasons
from tests.search.conftest import wish
from tests.search.test_brute_force import layouts

if TYPE_CHECKING:
    from clusterwright.plan import Candidate, Plan
    from clusterwright.search.design import Known

LIMITS = {"accelerators": ["h100-sxm", "h200-sxm", "b200-sxm"], "terms": ["on-demand"], "deadline": "1 day"}


def chosen(plan: Plan) -> Candidate:
    assert plan.chosen is not None
    return plan.chosen


@pytest.mark.parametrize("objective", ["cost", "time"])
def test_the_best_of_another_accelerator_is_as_far_away_as_is_said(known: Known, objective: str) -> None:
    prefer = {"objective": objective}
    plan = design(wish(constraints=LIMITS, prefer=prefer), known)
    ours = chosen(plan)
    told = [r for r in plan.reasons if r.startswith(("cheaper than", "faster than", "within 1%"))]
    names = {"h100-sxm", "h200-sxm", "b200-sxm"} - {ours.accelerator}
    assert names <= {word for r in told for word in r.split()}
    for name in names:
        rival = chosen(design(wish(constraints={**LIMITS, "accelerators": [name]}, prefer=prefer), known))
        sentence = next(r for r in told if f" {rival.accelerators} {name} ({rival.offer.provider}" in r)
        assert "because" in sentence or "as cheap as" in sentence


@pytest.mark.parametrize(("axis", "name"), [("tp", "tensor parallelism"), ("pp", "a pipeline")])
def test_what_a_layout_would_do_without_a_part_is_what_trying_everything_finds(
    known: Known, axis: str, name: str
) -> None:
    asked = wish()
    setting = setting_of(asked, trainable(asked.workload), known)
    kind = next(k for k in offered_by(asked, setting, known).kinds if k.node.name == "coreweave-hgx-h100")
    given = Layout(tp=2, pp=2, dp=4, micro_batch=1, global_batch=16, sharding="distopt")
    others = [one for one in layouts(kind) if one.accelerators == 16 and getattr(one, axis) == 1]
    found = run(setting.job(kind), Layouts.of(given, *others))
    fits = found.memory_bytes[1:] <= USABLE_MEMORY * kind.accelerator.memory_bytes
    gap = found.step_time_s[1:][fits].min() / found.step_time_s[0] - 1
    assert f"without {name} {gap:+.1%}" in layout_reasons(setting, kind, given, {})[0]


def test_every_exclusion_is_counted_and_none_twice(known: Known) -> None:
    plan = design(wish(), known)
    layouts = {why: n for why, n in plan.exclusions.items() if not why.startswith("offers")}
    assert 0 < sum(layouts.values()) < plan.candidates


def test_an_objective_of_balance_is_told_against_both_ends_and_the_rivals_that_are_as_fast(known: Known) -> None:
    plan = design(wish(constraints={"max_accelerators": 64}, prefer={"objective": "balanced"}), known)
    text = " ".join(plan.reasons)
    assert "cheaper than the fastest" in text
    assert "sooner than the cheapest" in text
