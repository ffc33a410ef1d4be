from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterwright.emitters import emit, targets
from clusterwright.hardware import FabricKind
from clusterwright.layout import Layout
from tests.emitters import schemas
from tests.emitters.plans import DEEPSEEK, LLAMA_8B, LLAMA_70B, LLAMA_405B, MIXTRAL, fitting, make_plan, node
from tests.emitters.readers import CORE, all_faults

if TYPE_CHECKING:
    from clusterwright.plan import Plan

NAMES = [target.name for target in targets()]
SHARDINGS = ("none", "zero1", "zero2", "zero3", "fsdp", "hsdp", "distopt")


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any layout of a few models on any fabric, feasible or not to the framework."""
    dp, micro = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.sampled_from([1, 2]))
    model = draw(st.sampled_from([LLAMA_8B, LLAMA_70B, LLAMA_405B, DEEPSEEK, MIXTRAL]))
    layout = Layout(
        tp=draw(st.sampled_from([1, 2, 4, 8])),
        cp=draw(st.sampled_from([1, 2])),
        pp=draw(st.sampled_from([1, 2, 4, 8])),
        vpp=draw(st.sampled_from([1, 2, 5])),
        ep=draw(st.sampled_from([1, 4])),
        dp=dp,
        micro_batch=micro,
        global_batch=dp * micro * draw(st.integers(1, 16)),
        sharding=draw(st.sampled_from(SHARDINGS)),
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        precision=draw(st.sampled_from(["bf16", "fp16", "fp8", "mxfp8", "nvfp4"])),
    )
    training = {
        "framework": draw(st.sampled_from(["megatron", "torchtitan", "fsdp", "deepspeed", "any"])),
        "method": draw(st.sampled_from(["full", "lora", "qlora"])),
        "tokens": draw(st.sampled_from(["1B", "15T"])),
    }
    fabric = draw(st.sampled_from(list(FabricKind)))
    return make_plan(
        layout,
        model=model,
        hardware=node(fabric, domain=draw(st.sampled_from([8, 72]))),
        training=training,
        provider=draw(st.sampled_from(["own", "lambda"])),
        spares=draw(st.integers(0, 2)),
        serving=draw(st.integers(0, 9)) == 0,
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans())
def test_every_target_writes_valid_files_or_says_what_it_cannot(name: str, plan: Plan) -> None:
    bundle = emit(plan, name, fitting(name)[1])
    assert bundle.files or bundle.unsupported
    assert [] == all_faults(bundle.files)
    assert [] == [name for name in bundle.files if not re.fullmatch(r"[A-Za-z0-9_./-]+", name)]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans())
def test_every_custom_resource_of_any_plan_holds_before_its_schema(name: str, plan: Plan) -> None:
    schemas.folder()
    files = emit(plan, name, fitting(name)[1]).files
    documents = [d for n, text in files.items() if n.endswith(".yaml") for d in schemas.load_all(text)]
    custom = [
        d for d in documents if isinstance(d, dict) and "/" in d.get("apiVersion", "") and d["apiVersion"] not in CORE
    ]
    assert [] == [fault for document in custom for fault in schemas.faults(document)]
