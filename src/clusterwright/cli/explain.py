"""``clusterwright explain``: the tree of terms behind a plan."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click


@click.command("explain")
@click.argument("plan", type=click.Path(path_type=Path))
@click.argument("term", required=False)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(plan: Path, term: str | None, style: str) -> int:
    """Show every number behind the choice of PLAN, or TERM and its parts, each with its law and its sources."""
    from clusterwright import api, report
    from clusterwright.plan import read_plan

    document = read_plan(plan)
    tree = api.explain(document, term, where=str(plan))
    if style == "json":
        whole = {**tree.model_dump(mode="json"), "sources": list(document.sources)}
        print(json.dumps(whole, indent=2, allow_nan=False))
    else:
        report.show_term(tree, document.sources, sys.stdout)
        if term is None:
            report.show_robustness(document, sys.stdout)
    return 0
