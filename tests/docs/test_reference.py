"""Whatever people can call has its place in the reference."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main

import clusterwright
from clusterwright.cli import VERBS

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
LAWS = Path(clusterwright.__file__).parent / "laws"


def command_of(verb: str) -> Any:  # noqa: ANN401 - click's or typer's own copy of it
    """The verb as its parser sees it."""
    command = importlib.import_module(f"clusterwright.cli.{verb}").command
    if isinstance(command, click.Command):
        return command
    if not isinstance(command, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command()(command)
        command = app
    return typer.main.get_command(command)


def options_of(command: Any) -> set[str]:  # noqa: ANN401 - click's or typer's own copy of it
    """The long options of a command and of the commands under it."""
    ours = {opt for param in command.params for opt in param.opts if opt.startswith("--") and opt != "--help"}
    return ours.union(*(options_of(sub) for sub in getattr(command, "commands", {}).values()))


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_a_page_of_its_name(verb: str) -> None:
    assert (REFERENCE / f"{verb}.md").read_text("utf-8").startswith(f"# clusterwright {verb}\n")


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_of_a_verb_is_on_its_page(verb: str) -> None:
    written = set(re.findall(r"--[a-z][a-z-]*", (REFERENCE / f"{verb}.md").read_text("utf-8")))
    assert set() == options_of(command_of(verb)) - written


@pytest.mark.parametrize("page", sorted(REFERENCE.glob("*.md")), ids=lambda p: p.stem)
def test_a_page_of_the_reference_speaks_of_something_that_is_there(page: Path) -> None:
    title = page.read_text("utf-8").split("\n", 1)[0]
    assert not title.startswith("# clusterwright ") or title.removeprefix("# clusterwright ") in VERBS


def test_every_law_is_in_the_reference() -> None:
    laws = {p.stem for p in LAWS.glob("*.py") if p.stem != "__init__"}
    assert laws == set(re.findall(r"^## (\w+)$", (REFERENCE / "laws.md").read_text("utf-8"), flags=re.MULTILINE))
