"""The emitted batch script and fragments on a real Slurm of 64 virtual nodes; only the payload is another one."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from clusterwright.emitters import emit
from clusterwright.layout import Layout
from tests.emitters import slurm_cluster
from tests.emitters.plans import candidate, make_plan, node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clusterwright.plan import Plan

pytestmark = pytest.mark.reader("Slurm: slurmctld, 64 slurmd, sbatch", "slurm")
LAYOUT = Layout(tp=8, pp=4, dp=2, sharding="distopt", global_batch=64)
PAYLOAD = """\
#!/usr/bin/env bash
printf '%s %s %s %s %s\\n' "$RANK" "$SLURMD_NODENAME" "$LOCAL_RANK" "$MASTER_ADDR" "$CUDA_VISIBLE_DEVICES" >"$OUT.$RANK"
for _ in $(seq "${STAY:-0}"); do [ -e "$OUT.go" ] && break; sleep 0.1; done
"""


def whole_cluster() -> Plan:
    """A plan of 64 nodes under 64 leaves, 8 a rail."""
    layout = Layout(tp=8, pp=8, dp=8, sharding="distopt", global_batch=64)
    plan = make_plan(layout)
    fabric = candidate(layout, node()).fabric.model_copy(update={"leaf": 64})
    assert plan.chosen is not None
    return plan.model_copy(update={"chosen": plan.chosen.model_copy(update={"fabric": fabric})})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[slurm_cluster.Cluster]:
    """64 nodes of 8 accelerators, as the plan's fragments describe them."""
    why = slurm_cluster.missing()
    if why and os.environ.get("CLUSTERWRIGHT_CI") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    files = emit(whole_cluster(), "slurm").files
    running = slurm_cluster.Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        running.start(files["slurm.conf.fragment"], files["topology.conf"], files["gres.conf"], accelerators=8)
        yield running
    finally:
        running.stop()


def write(folder: Path, files: Mapping[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "launch.sh").write_text(PAYLOAD, encoding="utf-8")
    return folder


def job_files(folder: Path, steps_done: Path) -> dict[str, str]:
    """The job of 64 accelerators, whose checkpoint folder says that all steps are done."""
    steps_done.mkdir()
    site = {**make_plan().site, "checkpoint_dir": str(steps_done)}
    plan = make_plan(LAYOUT, site=site, training={"tokens": LAYOUT.global_batch * 8192})
    (steps_done / "latest_checkpointed_iteration.txt").write_text("1\n", encoding="utf-8")
    del folder
    return emit(plan, "slurm").files


def leaf_of(topology: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in topology.splitlines():
        if line.startswith("SwitchName=leaf"):
            name, nodes = line.split()
            found |= dict.fromkeys(nodes.removeprefix("Nodes=").split(","), name)
    return found


def test_slurm_itself_reads_nodes_devices_and_leaves_from_the_fragments(cluster: slurm_cluster.Cluster) -> None:
    plan = whole_cluster()
    nodes = cluster.ask("scontrol", "-o", "show", "node").splitlines()
    assert 64 == len(nodes)
    assert {"Gres=gpu:h100:8"} == {word for line in nodes for word in line.split() if word.startswith("Gres=")}
    shown = cluster.ask("scontrol", "show", "topology")
    leaves = re.findall(r"SwitchName=(leaf\d+) Level=0 .*Nodes=(\S+)", shown)
    expanded = [set(cluster.ask("scontrol", "show", "hostnames", names).split()) for _, names in leaves]
    assert set(leaf_of(emit(plan, "slurm").files["topology.conf"])) == set().union(*expanded)
    assert [8] * 8 == [len(names) for names in expanded]
    assert "SwitchName=spine Level=1" in shown
    partition = cluster.ask("scontrol", "-o", "show", "partition", "gpu")
    assert "OverSubscribe=EXCLUSIVE" in partition
    assert "TotalNodes=64" in partition


def test_ranks_land_where_the_rank_map_says_and_under_the_fewest_leaves(
    cluster: slurm_cluster.Cluster, tmp_path: Path
) -> None:
    files = job_files(tmp_path, tmp_path / "checkpoints")
    folder = write(tmp_path / "job", files)
    job = cluster.submit(folder, f"--export=ALL,OUT={tmp_path}/rank")
    assert "COMPLETED" == cluster.wait(job, "COMPLETED", "FAILED", "CANCELLED")
    said = [(tmp_path / f"rank.{rank}").read_text("utf-8").split() for rank in range(64)]
    nodes = list(dict.fromkeys(line[1] for line in said))
    expected = [row.split("\t")[:3] for row in files["ranks.tsv"].splitlines()[1:]]
    assert expected == [[line[0], str(nodes.index(line[1])), line[2]] for line in said]
    assert {nodes[0]} == {line[3] for line in said}
    assert {"0,1,2,3,4,5,6,7"} == {line[4] for line in said}
    leaves = leaf_of(emit(whole_cluster(), "slurm").files["topology.conf"])
    assert 1 == len({leaves[name] for name in nodes})


def test_a_job_whose_node_dies_is_queued_again_and_finishes(cluster: slurm_cluster.Cluster, tmp_path: Path) -> None:
    folder = write(tmp_path / "job", job_files(tmp_path, tmp_path / "checkpoints"))
    job = cluster.submit(folder, f"--export=ALL,OUT={tmp_path}/rank,STAY=600")
    cluster.wait(job, "RUNNING")
    cluster._until(lambda: len(list(tmp_path.glob("rank.*"))) == 64)
    lost = (tmp_path / "rank.9").read_text("utf-8").split()[1]
    cluster.ask("scontrol", "update", f"nodename={lost}", "state=down", "reason=test")
    cluster._until(lambda: cluster.state(job) == "PENDING")
    for path in tmp_path.glob("rank.*"):
        path.unlink()
    (tmp_path / "rank.go").touch()
    cluster.ask("scontrol", "update", f"jobid={job}", "starttime=now")
    assert "COMPLETED" == cluster.wait(job, "COMPLETED", "FAILED", "CANCELLED")
    again = {path.read_text("utf-8").split()[1] for path in tmp_path.glob("rank.[0-9]*")}
    assert 8 == len(again)
    assert lost not in again
    cluster.ask("scontrol", "update", f"nodename={lost}", "state=resume")


def test_a_job_too_large_waits_whole_while_a_smaller_one_runs(cluster: slurm_cluster.Cluster, tmp_path: Path) -> None:
    files = job_files(tmp_path, tmp_path / "checkpoints")
    holder = write(tmp_path / "holder", files)
    large = write(tmp_path / "large", files)
    small = write(tmp_path / "small", files)
    first = cluster.submit(holder, f"--export=ALL,OUT={tmp_path}/first,STAY=900", "--nodes=16", "--time=1:00:00")
    cluster.wait(first, "RUNNING")
    second = cluster.submit(large, f"--export=ALL,OUT={tmp_path}/second", "--nodes=60")
    third = cluster.submit(small, f"--export=ALL,OUT={tmp_path}/third", "--time=00:01:00")
    assert "COMPLETED" == cluster.wait(third, "COMPLETED", "FAILED", "CANCELLED")
    assert "PENDING" == cluster.state(second)
    assert [] == list(tmp_path.glob("second.*"))
    (tmp_path / "first.go").touch()
    assert "COMPLETED" == cluster.wait(first, "COMPLETED", "FAILED")
    assert "COMPLETED" == cluster.wait(second, "COMPLETED", "FAILED")
    assert 480 == len(list(tmp_path.glob("second.*")))
