"""``clusterwright estimate``: predict one layout on one cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

MOST = 2**21
"""Accelerators that are still believed."""
DEGREE = click.IntRange(min=1, max=2**24)


@click.command("estimate")
@click.argument("workload", type=click.Path(path_type=Path))
@click.option("--accelerator", required=True, help="Catalogue name, such as h100-sxm.")
@click.option("--accelerators", type=click.IntRange(min=1, max=MOST), required=True, help="That the job runs on.")
@click.option("--tp", type=DEGREE, default=1, show_default=True, help="Tensor parallelism.")
@click.option("--cp", type=DEGREE, default=1, show_default=True, help="Context parallelism.")
@click.option("--pp", type=DEGREE, default=1, show_default=True, help="Pipeline stages.")
@click.option("--vpp", type=DEGREE, default=1, show_default=True, help="Virtual stages a pipeline rank.")
@click.option("--schedule", type=click.Choice(["1f1b", "zero-bubble"]), default="1f1b", show_default=True,
              help="Of the pipeline.")  # fmt: skip
@click.option("--ep", type=DEGREE, default=1, show_default=True, help="Expert parallelism.")
@click.option("--micro-batch", type=DEGREE, default=1, show_default=True, help="Sequences of a micro-batch.")
@click.option("--recompute", type=click.Choice(["none", "selective", "full"]), default="none", show_default=True)
@click.option("--sharding", type=click.Choice(["none", "zero1", "zero2", "zero3", "fsdp", "hsdp", "distopt"]),
              help="Of the states over data parallelism [default: as the framework usually does].")  # fmt: skip
@click.option("--framework", type=click.Choice(["megatron", "torchtitan", "fsdp", "deepspeed"]),
              help="That trains [default: the workload's; where that is open, the one a plan would take].")  # fmt: skip
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp8", "mxfp8", "nvfp4"]),
              help="Of matrix products [default: the workload's].")  # fmt: skip
@click.option("--node", help="Catalogue name of the node [default: the cluster's, or the cheapest].")
@click.option("--catalog", type=click.Path(path_type=Path), help="Folder with your own parts and prices.")
@click.option("--calibration", type=click.Path(path_type=Path), help="Factors fitted to your own runs.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    workload: Path,
    catalog: Path | None,
    calibration: Path | None,
    style: str,
    **layout: Any,  # noqa: ANN401 - the options of a layout are the fields of Asked
) -> int:
    """Predict what one layout would do for WORKLOAD: step time, memory, time and cost."""
    from clusterwright import api, report

    work = api.load_workload(workload)
    answer = api.estimate(work, catalog=catalog, calibration=calibration, **layout)
    if style == "json":
        document = {
            **answer.candidate.model_dump(mode="json"),
            "fits": answer.fits,
            "why": answer.why,
            "framework": answer.framework,
            "priced": answer.priced,
            "terms": answer.terms.model_dump(mode="json"),
        }
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        verdict = "fits" if answer.fits else "DOES NOT FIT"
        report.show_candidate(answer.candidate, sys.stdout, title=f"{verdict}; {answer.why}")
        report.show_lines("Taken", (f"framework {answer.framework}", f"price: {answer.priced}"), sys.stdout)
        report.show_term(answer.terms, (), sys.stdout)
    if not answer.fits:
        click.echo(f"does not fit; {answer.why}", err=True)
    return 0 if answer.fits else 1
