"""The glossary owns the names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import clusterwright

ROOT = Path(__file__).parents[2]
LAWS = Path(clusterwright.__file__).parent / "laws"
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def names_in_the_glossary() -> list[str]:
    return ROW.findall((ROOT / "docs" / "glossary.md").read_text("utf-8"))


def parameters_of_laws() -> dict[str, str]:
    """Each parameter of a public law, and one law that takes it."""
    found: dict[str, str] = {}
    for path in LAWS.glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                found |= {argument.arg: f"laws/{path.stem}.{node.name}" for argument in arguments}
    return found


def test_every_parameter_of_a_law_is_in_the_glossary() -> None:
    known = set(names_in_the_glossary())
    assert {} == {name: law for name, law in parameters_of_laws().items() if name not in known}


def test_the_glossary_says_each_name_once_and_in_order() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    quantities = ROW.findall(text.split("## Quantities")[1])
    assert sorted(set(quantities)) == quantities


def test_no_law_names_a_rate_flops() -> None:
    assert [] == [name for name in parameters_of_laws() if re.search(r"(^|_)flops(_|$)", name)]
