"""``clusterwright schedule``: how jobs fare when nodes are handed out one by one, in gangs, or by topology."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterwright.cli.fabric import POSITIVE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.simulation.scheduling import Schedule

POLICIES = ("piecemeal", "gang", "backfill", "topology")
SHOWN = 12
"""Jobs of which each start is printed; the JSON document holds all."""


@click.command("schedule")
@click.argument("jobs", required=False, type=click.Path(path_type=Path))
@click.option(
    "--nodes", type=click.IntRange(min=1, max=1_000_000), default=64, show_default=True, help="Of the cluster."
)
@click.option("--leaf-nodes", type=click.IntRange(min=1), default=32, show_default=True, help="Nodes on one leaf.")
@click.option("--policy", "policies", multiple=True, type=click.Choice(POLICIES),
              help="How nodes are handed out; repeatable [default: all, to compare].")  # fmt: skip
@click.option("--usd-per-node-hour", type=POSITIVE, help="Also say what nodes that wait idle cost.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    jobs: Path | None,
    nodes: int,
    leaf_nodes: int,
    policies: tuple[str, ...],
    usd_per_node_hour: float | None,
    style: str,
) -> int:
    """Play the JOBS of a CSV file (name,nodes,run_s,submitted_s) on a cluster; without one, two of 48 nodes."""
    from clusterwright import api

    found = api.schedule(jobs, nodes=nodes, leaf_nodes=leaf_nodes, policies=policies or POLICIES)
    document = {
        "nodes": nodes,
        "leaf_nodes": leaf_nodes,
        "jobs": len(found[0].ran) + len(found[0].stuck),
        "policies": [_row(schedule, nodes, usd_per_node_hour) for schedule in found],
    }
    print(json.dumps(document, allow_nan=False) if style == "json" else _text(document))
    return 1 if all(schedule.deadlocked for schedule in found) else 0


def _row(schedule: Schedule, nodes: int, usd_per_node_hour: float | None) -> dict[str, object]:
    """One policy."""
    ran = schedule.ran
    used = sum(r.job.nodes * r.job.run_s for r in ran)
    held_usd = None if usd_per_node_hour is None else schedule.held_node_s / 3600.0 * usd_per_node_hour
    return {
        "policy": schedule.policy.value,
        "deadlock": schedule.deadlocked,
        "stuck": list(schedule.stuck),
        "held_idle_nodes": schedule.held_idle,
        "held_node_s": schedule.held_node_s,
        "held_usd": held_usd,
        "mean_wait_s": schedule.mean_wait_s if ran else None,
        "longest_wait_s": max((r.wait_s for r in ran), default=None),
        "end_s": schedule.end_s,
        "utilisation": used / (nodes * schedule.end_s) if schedule.end_s else 0.0,
        "leaves_over_fewest": schedule.mean_spread if ran else None,
        "ran": [
            {"name": r.job.name, "nodes": r.job.nodes, "start_s": r.start_s, "wait_s": r.wait_s, "leaves": r.leaves,
             "fewest_leaves": r.least_leaves}
            for r in ran
        ],
    }  # fmt: skip


def _text(document: dict[str, object]) -> str:
    """A table of the policies, and the start of each job where there are few."""
    from clusterwright.units import show_duration

    rows = document["policies"]
    assert isinstance(rows, list)  # noqa: S101 - built above
    head = ("policy", "deadlock", "stuck", "mean wait", "longest wait", "last end", "in use", "leaves/fewest")
    table = [head]
    for row in rows:
        times = ("mean_wait_s", "longest_wait_s", "end_s")
        waits = [show_duration(row[key]) if row["ran"] else "-" for key in times]
        spread = f"{row['leaves_over_fewest']:.2f}" if row["ran"] else "-"
        dead = "yes" if row["deadlock"] else "no"
        use = f"{row['utilisation']:.0%}"
        table.append((row["policy"], dead, str(len(row["stuck"])), *waits, use, spread))
    widths = [max(len(line[column]) for line in table) for column in range(len(head))]
    lines = [f"{document['jobs']:,} jobs on {document['nodes']:,} nodes, {document['leaf_nodes']} to a leaf", ""]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    for row in rows:
        lines += list(_story(row, int(str(document["jobs"]))))
    return "\n".join(lines)


def _story(row: dict[str, object], jobs: int) -> Iterable[str]:
    """What came of the jobs under one policy, where few are there or some are stuck."""
    from clusterwright.report import wrapped
    from clusterwright.units import show_duration

    ran, stuck = row["ran"], row["stuck"]
    assert isinstance(ran, list)  # noqa: S101 - built above
    assert isinstance(stuck, list)  # noqa: S101 - built above
    if jobs > SHOWN and not stuck:
        return
    yield ""
    yield f"{row['policy']}"
    if jobs <= SHOWN:
        for job in ran:
            leaves = f"{job['leaves']} lea{'f' if job['leaves'] == 1 else 'ves'}"
            wait = f"after {show_duration(job['wait_s'])}" if job["wait_s"] else "at once"
            yield f"  {job['name']}: {job['nodes']} nodes on {leaves}, starts {wait}"
    held, usd = float(str(row["held_node_s"])), row["held_usd"]
    if held:
        cost = "" if usd is None else f", ${float(str(usd)):,.0f}"
        yield f"  held idle by jobs that waited for more: {held / 3600:,.0f} node-hours{cost}"
    if stuck:
        names = ", ".join(stuck[:SHOWN]) + (" ..." if len(stuck) > SHOWN else "")
        idle = row["held_idle_nodes"]
        yield wrapped("  ", f"{names}: for ever, each holds nodes that the others wait for ({idle:,} nodes idle)", 4)
