"""``clusterwright targets``: what `emit` can write, and the keys that each target reads."""

from __future__ import annotations

import json

import click


@click.command("targets")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(style: str) -> None:
    """List what `emit` can write, what each target covers, and the [site] keys it needs."""
    from clusterwright import api
    from clusterwright.emitters.keys import KEYS

    listed = api.targets()
    if style == "json":
        rows = [{"name": t.name, "covers": t.covers, "needs": list(t.needs), "takes": list(t.takes)} for t in listed]
        print(json.dumps({"targets": rows}, indent=2))
        return
    for target in listed:
        print(f"{target.name}\n  {target.covers}")
        print(f"  needs  {', '.join(target.needs) or 'nothing'}")
        if target.takes:
            print(f"  takes  {', '.join(target.takes)}")
    print("\nkeys, in [site] of the workload or as --set key=value")
    used = [k for k in KEYS if any(k in (*t.needs, *t.takes) for t in listed)]
    for key in used:
        print(f"  {key:<20} {KEYS[key].about}, for instance {KEYS[key].example}")
