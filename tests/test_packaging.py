"""What is installed is what is here: the facts travel with the code."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import clusterwright

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"


def test_every_file_of_the_package_is_in_the_wheel(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("clusterwright/")}
    here = {str(p.relative_to(SRC)) for p in (SRC / "clusterwright").rglob("*") if p.is_file()}
    assert {name for name in here if "__pycache__" not in name} == packed
    assert [name for name in packed if name.endswith(".toml")]


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), flags=re.MULTILINE)
    assert (project, project) == (clusterwright.__version__, cited and cited[1])
    assert f"## {project} " in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_everything_that_the_tests_need_is_pinned() -> None:
    def name(requirement: str) -> str:
        return re.sub(r"[-_.]+", "-", re.split(r"[\s\[<>=!~;@]", requirement, maxsplit=1)[0]).lower()

    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {name(line) for line in lines if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["docs"], *extras["test"], *extras["dev"]]
    assert {name(r) for r in wanted} - {"clusterwright"} <= pinned
