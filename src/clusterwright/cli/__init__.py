"""The command line: one file a verb, each imported only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = {
    "plan": "choose the cluster and the layout for a workload",
    "estimate": "predict one layout on one cluster",
    "explain": "show the tree of terms behind a plan",
    "compare": "rent, reserve or own one cluster, over how much it is used",
    "validate": "score the estimate against published runs",
    "calibrate": "fit the estimate to your own runs",
    "emit": "write the files that run a plan",
    "targets": "list what emit can write",
    "fabric": "design the scale-out network of a cluster",
    "goodput": "failures, checkpoints and useful time",
    "schedule": "jobs in gangs or piecemeal: deadlock, waiting, locality",
    "diagnose": "read logs and name the cause, or say unknown",
    "catalog": "the facts: accelerators, nodes, models, offers",
}
"""Verb and its one line; the module is ``clusterwright.cli.<verb>``, the command in it ``command``."""


class TyperVerb(click.Command):
    """A verb written with typer, whatever copy of click that typer is built on: its arguments are handed on whole."""

    def __init__(self, name: str, command: Any) -> None:  # noqa: ANN401 - typer's app or function
        super().__init__(name, add_help_option=False)
        self.command = command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Nothing is parsed here."""
        ctx.args = args
        return args

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - what the verb returns
        """Run the verb; its usage errors become ours."""
        import typer.main

        app = self.command
        if not isinstance(app, typer.Typer):
            app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
            app.command()(self.command)
        try:
            return typer.main.get_command(app).main(ctx.args, prog_name=ctx.command_path, standalone_mode=False)
        except typer.Abort:
            raise click.exceptions.Abort from None
        except Exception as error:
            if hasattr(error, "format_message"):
                raise click.ClickException(error.format_message()) from None
            raise


class Verbs(click.Group):
    """A group that imports a verb's module when that verb is called, so that ``--help`` is instant."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every verb, in the order of the work."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a verb, imported now."""
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"clusterwright.cli.{cmd_name}").command
        return command if isinstance(command, click.Command) else TyperVerb(cmd_name, command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """The list of verbs, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an unknown one is told with the nearest right ones."""
        from clusterwright.errors import unknown

        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise unknown("command", args[0], VERBS)
        return super().resolve_command(ctx, args)


@click.group(cls=Verbs, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="clusterwright")
def app() -> None:
    """Which GPU cluster, and how do I run on it?"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; every error is one message and an exit code, never a traceback."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _leave_quietly()
    except OSError as error:
        _say(f"error: the output cannot be written ({error.strerror})")
        code = _leave_quietly()
        code = 2
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    from clusterwright.errors import ClusterwrightError

    try:
        result = app.main(
            args=list(arguments) if arguments is not None else None, prog_name="clusterwright", standalone_mode=False
        )
    except ClusterwrightError as error:
        _say(f"error: {error}")
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        _say(f"error: {error.format_message()}")
        return 2
    except (KeyboardInterrupt, click.exceptions.Abort):
        _say("interrupted")
        return 130
    return result if isinstance(result, int) else 0


def _say(text: str) -> None:
    try:
        sys.stderr.write(
            text.encode(sys.stderr.encoding or "utf-8", "replace").decode(sys.stderr.encoding or "utf-8") + "\n"
        )
    except OSError:
        return


def _leave_quietly() -> int:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    return 1
