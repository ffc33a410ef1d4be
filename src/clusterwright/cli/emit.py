"""``clusterwright emit``: write the files that run a plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clusterwright.emitters import Bundle


@click.command("emit")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--target", required=True, help="What to write for; `clusterwright targets` lists them.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write into; made when absent.")
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="A site key, over the workload's [site]; repeatable."
)
@click.option("--allow-unset", is_flag=True, help="Write although needed keys are missing; their lines say UNSET.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(plan: Path, target: str, out: Path, overrides: tuple[str, ...], allow_unset: bool, style: str) -> int:
    """Write the files that run PLAN for one target: all of them, or none."""
    from clusterwright import api
    from clusterwright.emitters.door import MissingKeysError

    try:
        bundle = api.emit(plan, target, out, site=_pairs(overrides), allow_unset=allow_unset)
    except MissingKeysError as error:
        if style == "json":
            gaps = [{"what": f"site.{key}", "why": "needed, and not given"} for key in error.keys]
            print(
                json.dumps({"target": target, "files": [], "unsupported": gaps, "missing": list(error.keys)}, indent=2)
            )
        raise
    _show(target, out, bundle, style)
    return 0


def _pairs(texts: tuple[str, ...]) -> dict[str, object]:
    from clusterwright.errors import InputError

    found: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip() or not value.strip():
            msg = f"--set {text}: write key=value, for instance queue=training"
            raise InputError(msg)
        found[key.strip().removeprefix("site.")] = value.strip()
    return found


def _show(target: str, out: Path, bundle: Bundle, style: str) -> None:
    left = [{"what": u.what, "why": u.why} for u in bundle.unsupported]
    files = sorted(bundle.files)
    if style == "json":
        print(json.dumps({"target": target, "files": files, "unsupported": left}, indent=2))
        return
    for name in files:
        print(out / name)
    if not files:
        click.echo(f"{target} does not apply to this plan; nothing was written", err=True)
    for gap in left:
        click.echo(f"not in these files: {gap['what']}: {gap['why']}", err=True)
