from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from clusterwright.emitters import emit
from clusterwright.layout import Layout
from clusterwright.plan import Collective, Plan
from tests.emitters.plans import make_plan, node
from tests.emitters.readers import all_faults, sbatch_options
from tests.emitters.schemas import load_all

HOSTS = [f"gpu{i}" for i in range(8)]


def document(target: str, name: str, plan: Plan) -> dict[str, Any]:
    return load_all(emit(plan, target).files[name])[0]


def read_by(variable: str, program: str, value: object) -> str:
    """What another interpreter's library says of a document."""
    done = subprocess.run(
        [os.environ[variable], "-c", program], input=json.dumps(value), capture_output=True, text=True, check=False
    )
    return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr[-500:]


def test_a_skypilot_task_asks_for_the_nodes_and_chips_of_the_plan_where_the_offer_is() -> None:
    task = document("skypilot", "task.yaml", make_plan())
    assert 8 == task["num_nodes"]
    assert "H100:8" == task["resources"]["accelerators"]
    assert "lambda" == task["resources"]["infra"]
    assert "use_spot" not in task["resources"]


@pytest.mark.interpreter("CLUSTERWRIGHT_SKYPILOT")
@pytest.mark.reader("SkyPilot 0.14: sky.Task", "skypilot")
def test_skypilot_itself_reads_the_task() -> None:
    program = "import sys, json, sky; t = sky.Task.from_yaml_config(json.load(sys.stdin)); print(t.num_nodes)"
    assert "8" == read_by("CLUSTERWRIGHT_SKYPILOT", program, document("skypilot", "task.yaml", make_plan()))


@pytest.mark.interpreter("CLUSTERWRIGHT_DSTACK")
@pytest.mark.reader("dstack 0.22: its own configuration parser", "dstack")
@pytest.mark.parametrize("name", ["fleet.dstack.yml", "task.dstack.yml"])
def test_dstack_itself_reads_fleet_and_task(name: str) -> None:
    module = "dstack._internal.core.models.configurations"
    program = (
        f"import sys, json\nfrom {module} import parse_apply_configuration as p\nprint(p(json.load(sys.stdin)).type)"
    )
    assert name.split(".", maxsplit=1)[0] == read_by(
        "CLUSTERWRIGHT_DSTACK", program, document("dstack", name, make_plan())
    )


def test_a_dstack_fleet_is_placed_together_and_its_task_takes_every_node() -> None:
    plan = make_plan()
    fleet, task = document("dstack", "fleet.dstack.yml", plan), document("dstack", "task.dstack.yml", plan)
    assert (8, "cluster", 8) == (fleet["nodes"], fleet["placement"], task["nodes"])
    assert {"name": "H100", "count": 8} == fleet["resources"]["gpu"] == task["resources"]["gpu"]
    written = emit(plan, "dstack").files
    assert [] == [line for line in task["files"] if line.split(":")[0] not in written]


def collective(axis: str, ranks: int, operation: str = "all_reduce") -> Collective:
    values = {"axis": axis, "operation": operation, "ranks": ranks, "message_bytes": 134217728, "per_step": 1}
    return Collective.model_validate(
        {**values, "crosses_nodes": False, "expected_s": 1e-3, "expected_bus_bytes_per_s": 3.6e11}
    )


def test_collectives_are_measured_in_the_groups_of_the_plan() -> None:
    plan = make_plan(Layout(tp=8, dp=8, global_batch=64), site={**make_plan().site, "hosts": HOSTS})
    plan = plan.model_copy(update={"collectives": (collective("tp", 8), collective("dp", 8, "reduce_scatter"))})
    files = emit(plan, "mpi").files
    assert [] == all_faults(files)
    assert "NCCL_TESTS_SPLIT='DIV 8' " in files["collectives.sh"]
    assert "NCCL_TESTS_SPLIT='MOD 8' " in files["collectives.sh"]
    assert "reduce_scatter_perf -b 134217728 " in files["collectives.sh"]
    assert [f"{h} slots=8" for h in HOSTS] == files["hostfile"].splitlines()[1:]


def test_groups_that_cannot_be_measured_are_named() -> None:
    plan = make_plan().model_copy(update={"collectives": (collective("dp", 2),)})
    assert "dp all_reduce" in [u.what for u in emit(plan, "mpi").unsupported]


def test_nccl_is_told_the_traffic_class_of_the_switches_only_where_they_are_known() -> None:
    from clusterwright.hardware import FabricKind

    roce = node(FabricKind.ROCE)
    rented, own = make_plan(hardware=roce), make_plan(hardware=roce, provider="own")
    assert "NCCL_IB_TC" in [u.what for u in emit(rented, "nccl").unsupported]
    assert "export NCCL_IB_TC=104 " in emit(own, "nccl").files["nccl.sh"]
    assert "export NCCL_IB_TC=96 " in emit(rented, "nccl", {"dscp": "24"}).files["nccl.sh"]


def test_an_accelerator_is_parted_only_for_a_job_smaller_than_it() -> None:
    assert {} == emit(make_plan(), "mig").files
    plan = make_plan(Layout(global_batch=8))
    assert plan.chosen is not None
    small = plan.chosen.estimate.model_copy(update={"memory_bytes": 17e9})
    plan = plan.model_copy(update={"chosen": plan.chosen.model_copy(update={"estimate": small})})
    (config,) = load_all(emit(plan, "mig").files["mig-parted.yaml"])
    assert {"1g.20gb": 4} == config["mig-configs"]["all-1g.20gb"][0]["mig-devices"]


@pytest.mark.parametrize(("version", "segment"), [("", ""), ("23.11", ""), ("24.05", "9"), ("25.05", "9")])
def test_slurm_keeps_scale_up_domains_whole_only_where_its_version_is_known_to(version: str, segment: str) -> None:
    plan = make_plan(Layout(tp=8, dp=18, global_batch=144), hardware=node(domain=72))
    bundle = emit(plan, "slurm", {"slurm_version": version} if version else {})
    assert segment == sbatch_options(bundle.files["job.sbatch"]).get("--segment", "")
    assert (not segment) == ("scale-up domains over several nodes" in [u.what for u in bundle.unsupported])


def test_a_copy_of_hsdp_stays_inside_a_node() -> None:
    plan = make_plan(Layout(dp=64, sharding="hsdp", global_batch=64))
    text = emit(plan, "fsdp").files["plan_fsdp.py"]
    assert "REPLICATE = 8  #" in text
    assert "SHARD = 8  #" in text
    assert {} == emit(make_plan(), "fsdp").files
