"""``clusterwright calibrate``: fit the named factors to your own runs."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("calibrate")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File to write, for --calibration.")
@click.option("--catalog", type=click.Path(path_type=Path), help="Folder of your own parts and prices.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(runs: tuple[Path, ...], out: Path, catalog: Path | None, style: str) -> None:
    """Fit a factor for each kind of part of a step to RUNS (CSV): even three runs help."""
    from clusterwright import api
    from clusterwright.calibration import PRIORS, to_toml
    from clusterwright.files import write_text_atomically

    fit = api.calibrate(*runs, catalog=catalog)
    write_text_atomically(out, to_toml(fit))
    factors = {name: getattr(fit.calibration, name).model_dump() for name in PRIORS}
    if style == "json":
        document = {
            "runs": fit.calibration.runs,
            "factors": factors,
            "median_abs_error_before": fit.before,
            "median_abs_error_after": fit.after,
            "median_abs_error_left_out": fit.left_out,
            "interval_half_width_before": fit.interval_before,
            "interval_half_width_after": fit.interval_after,
            "interval_half_width_left_out": fit.interval_left_out,
            "file": str(out),
        }
        print(json.dumps(document, allow_nan=False))
        return
    print(f"{fit.calibration.runs} runs")
    for name, factor in factors.items():
        told = "" if factor["spread"] < 0.9 * PRIORS[name] else " (the runs tell little of it)"
        print(f"  {name:<14} x {factor['value']:.3f}, spread {factor['spread']:.1%}{told}")
    print(f"median |e| before {fit.before:.1%}, after {fit.after:.1%}")
    print(f"80% interval before +-{fit.interval_before:.1%}, after +-{fit.interval_after:.1%}")
    if fit.left_out is not None and fit.interval_left_out is not None:
        print(f"of each run left out of the fit: median |e| {fit.left_out:.1%}, interval +-{fit.interval_left_out:.1%}")
    print(f"written to {out}; use it with --calibration {out}")
