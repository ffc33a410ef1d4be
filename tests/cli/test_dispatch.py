"""The command line as a whole: what is wrong is one line and an exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import click
import pytest
import typer

from clusterwright import cli
from clusterwright.errors import InfeasibleError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Put a command in the place of the first verb."""

    def put(command: object) -> None:
        module = ModuleType("clusterwright.cli.plan")
        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "clusterwright.cli.plan", module)

    return put


def test_help_lists_every_verb_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    printed = capsys.readouterr().out
    assert [] == [name for name, line in cli.VERBS.items() if name not in printed or line.split()[0] not in printed]


def test_an_unknown_verb_is_told_with_the_nearest_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("plam") == 2
    assert capsys.readouterr().err.startswith("error: unknown command 'plam'; did you mean plan")


def test_no_verb_at_all_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    assert "Commands" in capsys.readouterr().err


def test_an_unknown_option_of_the_tool_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--hepl") == 2
    assert 1 == capsys.readouterr().err.count("\n")


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--x", "q"], 2), (["--hepl"], 2), (["surplus"], 2), (["--help"], 0), (["--x", "4"], 0)]
)
def test_a_verb_refuses_in_words(
    verb: Callable[[object], None], capsys: pytest.CaptureFixture[str], arguments: list[str], code: int
) -> None:
    def double(x: Annotated[int, typer.Option()] = 1) -> None:
        typer.echo(2 * x)

    verb(double)
    assert code == run("plan", *arguments)
    said = capsys.readouterr()
    assert (("error: " in said.err), said.err.count("\n")) == ((True, 1) if code else (False, 0))


def test_a_verb_may_be_written_in_click(
    verb: Callable[[object], None], capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    verb(click.Command("plan", callback=lambda: click.echo("planned")))
    assert run("plan") == 0
    assert capsys.readouterr().out == "planned\n"


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (InputError("w.toml: [model] name is missing"), 2, "error: w.toml: [model] name is missing\n"),
        (InfeasibleError("needs 71 days; deadline 60"), 1, "error: needs 71 days; deadline 60\n"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, "interrupted\n"),
        (typer.Exit(1), 1, ""),
        (OSError(28, "No space left on device"), 2, "error: the output cannot be written (No space left on device)\n"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_goes_wrong_has_its_exit_code(
    verb: Callable[[object], None],
    capfd: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    said: str,
) -> None:
    def fail() -> None:
        raise raised

    verb(fail)
    assert code == run("plan")
    assert said in capfd.readouterr().err


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    command = f"{sys.executable} -m clusterwright.cli --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    assert done.stdout in ("0\n", "1\n")
