"""The house's law, in the parts that import-linter does not see."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import clusterwright
from clusterwright import api

SRC = Path(clusterwright.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
FORBIDDEN_NAMES = {"util", "utils", "common", "helper", "helpers", "misc"}
DOORS = {  # who may touch the disk, the machine or the network
    "files.py",
    "api.py",
    "report.py",
    "catalog",
    "checks",
    "cli",
    "measurers",
    "probes",
    "web",
}
NETWORK = {"socket", "ssl", "http", "urllib", "requests", "httpx", "asyncio"}


def imported(path: Path) -> set[str]:
    """The top-level names of what a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def test_no_module_is_a_drawer_for_everything() -> None:
    assert [] == [str(p) for p in FILES if p.stem in FORBIDDEN_NAMES]


def test_every_module_says_what_it_is() -> None:
    assert [] == [str(p) for p in FILES if not ast.get_docstring(ast.parse(p.read_text("utf-8")))]


@pytest.mark.parametrize("path", [p for p in FILES if "laws" in p.parts], ids=lambda p: p.stem)
def test_a_law_knows_no_noun(path: Path) -> None:
    allowed = {"clusterwright.units", "clusterwright.laws"}
    ours = {name for name in imported(path) if name.split(".")[0] == "clusterwright"}
    assert set() == {name for name in ours if name not in allowed and not name.startswith("clusterwright.laws.")}


@pytest.mark.parametrize(
    "path", [p for p in FILES if {"emitters", "checks"} & set(p.relative_to(SRC).parts)], ids=lambda p: p.stem
)
def test_emitters_and_checks_need_nothing_but_the_plan(path: Path) -> None:
    assert set() == {
        name for name in imported(path) if name.startswith(("clusterwright.estimators", "clusterwright.catalog"))
    }


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_only_a_door_opens_the_network(path: Path) -> None:
    room = path.relative_to(SRC).parts[0]
    reached = {name.split(".")[0] for name in imported(path)} & NETWORK
    assert set() == (set() if room in DOORS else reached)


def test_the_package_offers_what_the_api_does() -> None:
    assert api.__all__ == clusterwright.__all__
    assert [] == [name for name in api.__all__ if getattr(clusterwright, name) is not getattr(api, name)]
    assert [*api.__all__, "__version__"] == clusterwright.__dir__()
    with pytest.raises(AttributeError, match="no attribute 'designs'"):
        clusterwright.designs  # noqa: B018 - reading it is the test


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, clusterwright; print([m for m in ('numpy', 'pydantic', 'rich', 'typer') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "[]\n" == printed


def test_asking_for_help_imports_no_arithmetic() -> None:
    code = (
        "import sys\n"
        "from clusterwright.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as done: assert done.code == 0\n"
        "print([m for m in ('numpy', 'scipy', 'pydantic') if m in sys.modules], file=sys.stderr)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stderr
    assert "[]\n" == said
