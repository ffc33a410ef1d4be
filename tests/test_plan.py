"""The plan document: kept, read again, and refused in words."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from clusterwright.errors import InputError
from clusterwright.hardware import Fabric, Storage
from clusterwright.layout import Layout
from clusterwright.model import Attention, Block, FeedForward, Model
from clusterwright.plan import VERSION, Candidate, Estimate, Plan, Rent, read_plan, require_chosen

if TYPE_CHECKING:
    from pathlib import Path

MODEL = Model(
    name="tiny",
    hidden=64,
    vocab=256,
    blocks=(Block(count=2, mixer=Attention(heads=4, kv_heads=2, head_size=16), feed=FeedForward(ffn=128)),),
)
CANDIDATE = Candidate(
    accelerator="h100-sxm",
    node="dgx-h100",
    nodes=2,
    accelerators=16,
    offer=Rent(provider="example", term="on-demand", usd_per_accelerator_hour=2.5, seen=date(2026, 9, 1)),
    layout=Layout(tp=8, dp=2, global_batch=64),
    estimate=Estimate(
        step_time_s=1.0, interval=(0.9, 1.1), mfu=0.4, tokens_per_s=1e5, memory_bytes=6e10, train_time_s=1e6,
        goodput=0.97, cost_usd=1e5, power_w=2e4,
    ),
    fabric=Fabric(topology="single-switch", tiers=1, leaf=1, spine=0, core=0, nic_bits_per_s=4e11, cables=16),
    storage=Storage(write_bytes_per_s=1e9, checkpoint_bytes=1e9, checkpoint_interval_s=3600.0),
)  # fmt: skip
PLAN = Plan(workload={"model": {"name": "tiny"}}, model=MODEL, chosen=CANDIDATE, catalogue_date=date(2026, 9, 1))


def refusal(tmp_path: Path, text: str) -> str:
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as told:
        read_plan(tmp_path / "plan.json")
    return str(told.value).replace(f"{tmp_path}/", "")


def test_a_plan_is_read_as_it_was_kept(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(PLAN.to_json(), encoding="utf-8")
    assert read_plan(tmp_path / "plan.json") == PLAN


def test_reading_and_keeping_again_changes_nothing() -> None:
    assert PLAN.to_json() == Plan.model_validate_json(PLAN.to_json()).to_json()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": VERSION + 1}, f"plan version {VERSION + 1} is newer than {VERSION}"),
        ({"chosen": 3}, "plan.json: chosen"),
        ({"surprise": 1}, "plan.json: surprise"),
        ({"catalogue_date": "yesterday"}, "plan.json: catalogue_date"),
    ],
)
def test_a_changed_document_is_refused_with_its_place(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert said in refusal(tmp_path, json.dumps(json.loads(PLAN.to_json()) | change))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "plan.json: not a plan document (JSON:"),
        ("[]", "plan.json: not a plan document"),
        ('{"a": NaN}', "plan.json: NaN is not JSON"),
        ("{}", "more)"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_a_layout_that_does_not_fill_the_cluster_is_no_candidate() -> None:
    with pytest.raises(ValidationError, match="layout tp x cp x pp x dp = 16 is not accelerators = 24"):
        Candidate.model_validate(CANDIDATE.model_dump() | {"accelerators": 24})


def test_a_plan_that_found_nothing_has_no_chosen_one() -> None:
    nothing = PLAN.model_copy(update={"chosen": None})
    with pytest.raises(InputError, match="chosen is null: this plan found nothing feasible"):
        require_chosen(nothing, "plan.json")
    assert require_chosen(PLAN, "plan.json") == CANDIDATE
