"""What the pages take from the code, so that it is written once: options of verbs, targets and their keys, laws."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import typer
import typer.main

import clusterwright
from clusterwright.cli import VERBS
from clusterwright.emitters import targets
from clusterwright.emitters.keys import KEYS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = "<!-- filled: {} -->"


def command_of(verb: str) -> Any:  # noqa: ANN401 - click's command, or that of typer's own copy of click
    """A verb as its parser sees it."""
    command = importlib.import_module(f"clusterwright.cli.{verb}").command
    if isinstance(command, click.Command):
        return command
    if not isinstance(command, typer.Typer):
        app = typer.Typer(add_completion=False)
        app.command()(command)
        command = app
    return typer.main.get_command(command)


def options(verb: str) -> str:
    """The arguments and options of a verb, and of the commands under it, as definition lists."""
    return _options(command_of(verb), f"clusterwright {verb}")


def _options(command: Any, path: str) -> str:  # noqa: ANN401 - as above
    lines = [line for param in command.params if "--help" not in param.opts for line in _option(param)]
    below = [
        f"## {path} {name}\n\n{_sentence(sub.help or sub.short_help)}\n\n{_options(sub, f'{path} {name}')}"
        for name, sub in getattr(command, "commands", {}).items()
    ]
    return "\n".join([*lines, *below])


def _option(param: Any) -> list[str]:  # noqa: ANN401 - as above
    is_option = param.param_type_name == "option"
    word = (param.metavar or param.name or "").upper()
    choices = "|".join(map(str, getattr(getattr(param, "type", None), "choices", ())))
    flag = getattr(param, "is_flag", False)
    names = ", ".join([*param.opts, *param.secondary_opts]) + ("" if flag else f" {choices or word}")
    many = getattr(param, "multiple", False) or param.nargs == -1
    notes = ["may be given several times"] if many else []
    plain = isinstance(param.default, (int, float, str)) and not isinstance(param.default, bool)
    notes += [f"default `{param.default}`"] if plain and param.default != "" else []
    about = _sentence(getattr(param, "help", None)) + (f" ({'; '.join(notes)})" if notes else "")
    return [f"`{names if is_option else word}`", f": {about.strip() or 'As in the examples above.'}", ""]


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())


def target_list() -> str:
    """A heading for each target, with what it covers, needs and takes."""
    parts = []
    for target in targets():
        needs, takes = (", ".join(f"`{key}`" for key in keys) or "nothing" for keys in (target.needs, target.takes))
        parts.append(f"## {target.name}\n\n{target.covers}.\n\n- needs {needs}\n- takes {takes}\n")
    return "\n".join(parts)


def key_table() -> str:
    """Each key of ``[site]`` with its meaning and an example."""
    rows = [f"| `{name}` | {key.about} | {f'`{key.example}`' if key.example else ''} |" for name, key in KEYS.items()]
    return "\n".join(["| key | what it is | for instance |", "|---|---|---|", *rows])


def law_list() -> str:
    """Every module of equations, with every equation in it."""
    names = sorted(p.stem for p in (Path(clusterwright.__file__).parent / "laws").glob("*.py") if p.stem != "__init__")
    block = "## {0}\n\n```{{eval-rst}}\n.. automodule:: clusterwright.laws.{0}\n   :members:\n```\n"
    return "\n".join(block.format(name) for name in names)


def fill(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the marks of a page."""
    makers = {"targets": target_list, "keys": key_table, "laws": law_list}
    for name, make in makers.items():
        if MARK.format(name) in source[0]:
            source[0] = source[0].replace(MARK.format(name), make())
    verb = docname.rpartition("/")[2]
    if verb in VERBS and MARK.format("options") in source[0]:
        source[0] = source[0].replace(MARK.format("options"), options(verb))
