"""The public verbs as functions."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from typing import TYPE_CHECKING

import pytest

import clusterwright as cw
from clusterwright import api
from clusterwright.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from clusterwright.plan import Candidate, Plan

TODAY = date(2026, 11, 30)
WORKLOAD = """
[model]
name = "llama-3.1-8b"

[training]
tokens = "10B"
sequence_length = 8192
global_batch = 64
framework = "megatron"

[constraints]
accelerators = ["h100-sxm"]
max_accelerators = 32

[site]
queue = "training"
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "workload.toml"
    path.write_text(WORKLOAD, encoding="utf-8")
    return path


@pytest.fixture
def plan(workload: Path) -> Plan:
    return cw.design(cw.load_workload(workload), today=TODAY)


def chosen_of(plan: Plan) -> Candidate:
    assert plan.chosen is not None
    return plan.chosen


def test_logs_are_read_and_the_cause_is_named(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    line = "kernel: [1234.5] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
    log.write_text(line, encoding="utf-8")
    assert cw.diagnose([str(log)]).verdict == "fault"


def test_three_lines_give_a_plan(workload: Path) -> None:
    plan = cw.design(cw.load_workload(workload))
    assert chosen_of(plan).estimate.step_time_s > 0
    assert plan.site == {"queue": "training"}


def test_every_public_name_is_there_and_nothing_else() -> None:
    for name in api.__all__:
        assert getattr(cw, name) is getattr(api, name)
    with pytest.raises(AttributeError, match="no_such_verb"):
        cw.no_such_verb  # noqa: B018 - asked for on purpose


def test_importing_costs_no_numpy() -> None:
    code = "import sys, clusterwright.api; print('numpy' in sys.modules or 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_override_replaces_a_line(workload: Path) -> None:
    assert cw.load_workload(workload, overrides=["site.queue=other"]).workload.site.queue == "other"


def test_the_estimate_of_the_chosen_layout_is_the_plans(workload: Path, plan: Plan) -> None:
    chosen = chosen_of(plan)
    lay = chosen.layout
    answer = cw.estimate(
        cw.load_workload(workload), accelerator=chosen.accelerator, accelerators=chosen.accelerators, tp=lay.tp,
        cp=lay.cp, pp=lay.pp, vpp=lay.vpp, ep=lay.ep, micro_batch=lay.micro_batch, recompute=lay.recompute,
        sharding=lay.sharding, node=None if " " in chosen.node or ":" in chosen.node else chosen.node, today=TODAY,
    )  # fmt: skip
    assert answer.fits
    assert answer.candidate.layout == lay
    assert answer.candidate.estimate.memory_bytes == pytest.approx(chosen.estimate.memory_bytes)
    if answer.candidate.node == chosen.node:
        assert answer.candidate.estimate.step_time_s == pytest.approx(chosen.estimate.step_time_s)


def test_every_fault_of_a_layout_is_told_at_once(workload: Path) -> None:
    with pytest.raises(InputError) as caught:
        cw.estimate(
            cw.load_workload(workload), accelerator="a100-80gb-sxm", accelerators=16, tp=3, vpp=2, precision="fp8",
            schedule="zero-bubble",
        )  # fmt: skip
    for word in ("tp = 3", "heads", "vpp = 2", "--accelerators 16", "zero-bubble needs pp > 1", "no products in fp8"):
        assert word in str(caught.value)


def test_explain_gives_the_tree_or_a_part_of_it(plan: Plan) -> None:
    assert cw.explain(plan).name == "plan"
    assert cw.explain(plan, "step time").value == chosen_of(plan).estimate.step_time_s
    with pytest.raises(InputError, match="step time"):
        cw.explain(plan, "step tmie")


def test_a_plan_is_emitted_from_its_file_all_at_once(plan: Plan, tmp_path: Path) -> None:
    kept, out = tmp_path / "plan.json", tmp_path / "out"
    kept.write_text(plan.to_json(), encoding="utf-8")
    bundle = cw.emit(kept, "megatron", out, allow_unset=True)
    assert sorted(bundle.files) == sorted(str(f.relative_to(out)) for f in out.rglob("*") if f.is_file())


def test_the_network_and_the_goodput_are_one_call_each() -> None:
    assert cw.fabric(nodes=16, nics=8, nic_gbps=400, radix=64).leaf == 8
    few, many = (float(cw.goodput(n, checkpoint_bytes=1e12, write_bytes_per_s=1e10).goodput) for n in (1_024, 16_384))
    assert 0 < many < few < 1


def test_a_calibration_changes_the_step_time_and_is_read_from_its_file(workload: Path, tmp_path: Path) -> None:
    path = tmp_path / "calibration.toml"
    path.write_text("runs = 3\n[compute]\nvalue = 2.0\nspread = 0.05\n", encoding="utf-8")
    work = cw.load_workload(workload)
    slow = chosen_of(cw.design(work, calibration=path, today=TODAY)).estimate.step_time_s
    assert slow > chosen_of(cw.design(work, today=TODAY)).estimate.step_time_s


@pytest.mark.parametrize("content", [b"\x00\xff\x00", b"compute = 3", b"[compute]\nvalue = 'fast'", b"= ="])
def test_a_file_that_is_no_calibration_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "calibration.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"calibration\.toml"):
        cw.read_calibration(path)


def test_a_config_json_beside_the_workload_gives_the_model(tmp_path: Path) -> None:
    config = {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "vocab_size": 32000,
        "num_hidden_layers": 16, "intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 4,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = tmp_path / "workload.toml"
    path.write_text(WORKLOAD.replace('name = "llama-3.1-8b"', 'config = "config.json"'), encoding="utf-8")
    assert cw.design(cw.load_workload(path), today=TODAY).model.layers == 16
