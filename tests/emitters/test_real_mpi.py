"""Host file and launcher of the collectives under a real OpenMPI: the hosts are this machine, the programs others."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from clusterwright.emitters import emit
from clusterwright.emitters.targets.mpi import PROGRAMS
from clusterwright.layout import Layout
from tests.emitters.plans import make_plan
from tests.emitters.test_launchers import HOSTS, collective

if TYPE_CHECKING:
    from pathlib import Path

AGENT = """\
#!/usr/bin/env bash
export TMPDIR="{folder}/$1" # daemons of one machine would share their files
mkdir -p "$TMPDIR"
shift
exec bash -c "$*"
"""
"""In place of ssh: every host is this one."""
PAYLOAD = """\
#!/usr/bin/env bash
where="$OMPI_COMM_WORLD_RANK|$OMPI_COMM_WORLD_LOCAL_RANK|$OMPI_COMM_WORLD_SIZE"
echo "said|$where|$NCCL_SOCKET_IFNAME|${NCCL_TESTS_SPLIT:-}|${0##*/}"
"""


def program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    why = "" if shutil.which("mpirun") else "mpirun is not on PATH (Debian: openmpi-bin)"
    if why and os.environ.get("CLUSTERWRIGHT_CI") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)
    plan = make_plan(Layout(tp=8, dp=8, global_batch=64), site={**make_plan().site, "hosts": HOSTS})
    plan = plan.model_copy(update={"collectives": (collective("tp", 8), collective("dp", 8, "reduce_scatter"))})
    for name, text in emit(plan, "mpi").files.items():
        program(tmp_path / name, text)
    (tmp_path / "bin").mkdir()
    for name in PROGRAMS.values():
        program(tmp_path / "bin" / name, PAYLOAD)
    program(tmp_path / "agent", AGENT.format(folder=tmp_path))
    return tmp_path


@pytest.mark.reader("OpenMPI: mpirun, with programs in place of nccl-tests", "mpi")
def test_openmpi_starts_every_rank_where_the_host_file_says_in_the_groups_of_the_plan(folder: Path) -> None:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    place = {"OMPI_MCA_plm_rsh_agent": str(folder / "agent"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [folder / "collectives.sh"], env={**os.environ, **root, **place}, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    said = [line.split("|")[1:] for line in done.stdout.splitlines() if line.startswith("said|")]
    assert {("64", "=eth0")} == {(world, interface) for _, _, world, interface, _, _ in said}
    runs: dict[tuple[str, str], dict[int, int]] = {}
    for rank, local, _, _, split, name in said:
        runs.setdefault((split, name), {})[int(rank)] = int(local)
    parts = [("", "all_reduce_perf"), ("DIV 8", "all_reduce_perf"), ("MOD 8", "reduce_scatter_perf")]
    assert {part: {rank: rank % 8 for rank in range(64)} for part in parts} == runs
    assert [] == [host for host in HOSTS if not (folder / host).is_dir()]
