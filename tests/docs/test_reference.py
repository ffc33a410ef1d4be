"""Whatever people can call has its place in the reference."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import clusterwright
from clusterwright.cli import VERBS
from clusterwright.emitters import targets
from clusterwright.emitters.keys import KEYS
from tests.docs.conftest import headings_of, text_of

LAWS = Path(clusterwright.__file__).parent / "laws"


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_page_of_its_name(built: Path, verb: str) -> None:
    assert f"clusterwright {verb}" in headings_of(built / "reference" / f"{verb}.html")


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_on_its_page(built: Path, verb: str) -> None:
    command = [sys.executable, "-m", "clusterwright.cli", verb, "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    words = {word.strip(".,;:()[]`'\"") for word in shown.split()}
    page = text_of(built / "reference" / f"{verb}.html")
    assert set() == {w for w in words if w.startswith("--") and len(w) > len("--") and w != "--help" and w not in page}


def test_a_page_of_a_verb_speaks_of_one_that_is_there(built: Path) -> None:
    pages = [p for p in (built / "reference").glob("*.html") if headings_of(p)[0].startswith("clusterwright ")]
    assert set(VERBS) == {p.stem for p in pages}


def test_every_target_has_its_heading_and_every_key_its_line(built: Path) -> None:
    page = built / "reference" / "targets.html"
    assert [] == [target.name for target in targets() if target.name not in headings_of(page)]
    assert [] == [key for key in KEYS if key not in text_of(page)]


def test_every_law_is_in_the_reference(built: Path) -> None:
    modules = [p for p in LAWS.glob("*.py") if p.stem != "__init__"]
    functions = [
        f"{path.stem}.{node.name}"
        for path in modules
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    page = built / "reference" / "laws.html"
    assert {p.stem for p in modules} <= set(headings_of(page))
    assert [] == [name for name in functions if f'id="clusterwright.laws.{name}"' not in page.read_text("utf-8")]


def test_every_public_function_is_in_the_reference(built: Path) -> None:
    page = (built / "reference" / "python.html").read_text("utf-8")
    assert [] == [name for name in clusterwright.__all__ if f'id="clusterwright.api.{name}"' not in page]


def test_the_readme_leads_to_every_verb() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert [] == [verb for verb in VERBS if verb != "targets" and f"[`{verb}`](docs/reference/{verb}.md)" not in readme]
