"""Score other open tools on the shipped runs that all of them can express, and write docs/peers.md.

    python calibration/peers.py --calculon DIR --llm-analysis DIR

The folders are checkouts of https://github.com/calculon-ai/calculon and https://github.com/cli99/llm-analysis, outside
this repository (llm-analysis needs the package `fire`). The page says how a run is mapped; this script is the mapping.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clusterwright.catalog import load
from clusterwright.estimators.efficiency import shipped
from clusterwright.estimators.observed import job_of
from clusterwright.files import write_text_atomically
from clusterwright.validation import validate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from clusterwright.estimators.job import Job
    from clusterwright.estimators.observed import Scored

PAGE = Path(__file__).parent.parent / "docs" / "peers.md"
SHARDED = {"none": 0, "distopt": 1, "zero1": 1}
SERIAL = "no_overlap"
RECOMPUTES = ("none", "selective", "full")
EFFICIENCIES = [round(0.30 + 0.05 * i, 2) for i in range(13)]
ENOUGH = 40
"""Runs of a source that choose the share of peak."""


@dataclass(frozen=True)
class Row:
    """One run that every tool can express."""

    item: Scored
    job: Job
    flash: bool
    sequence_parallel: bool

    def whole(self, column: str) -> int:
        """A whole number of the run, 1 when absent."""
        return self.item.run.whole(column, 1)

    @property
    def dp(self) -> int:
        """Data-parallel ranks."""
        return self.whole("n_gpus") // (self.whole("tp") * self.whole("pp"))

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a step, of one rank."""
        return self.whole("gbs") // (self.dp * self.whole("mbs"))

    @property
    def measured(self) -> float:
        """Measured step time [s]."""
        return self.item.run.numbers["step_time_s"]


def rows_of(scored: Iterable[Scored]) -> list[Row]:
    """Dense runs in 16 bits with a whole layout, at most ZeRO-1, tensor parallel within the node, recompute known."""
    known, found = load(), []
    for item in scored:
        run = item.run
        given = all(run.number(c) for c in ("step_time_s", "tp", "pp", "mbs", "gbs", "n_gpus", "vocab"))
        plain = all(run.whole(c, 1) == 1 for c in ("cp", "ep")) and run.whole("moe_experts") <= 1
        sixteen = run.text("precision") in ("bf16", "fp16") and not run.whole("lora")
        if not (given and plain and sixteen and run.text("recompute") in RECOMPUTES):
            continue
        if (run.text("sharding") or "none") not in SHARDED:
            continue
        job = job_of(run, known)
        if isinstance(job, str):
            continue
        stack = shipped().stack_of(job.framework, job.year)
        row = Row(item, job, stack.flash, stack.sequence_parallel)
        if row.whole("tp") <= job.node.accelerators and row.dp >= 1 and row.micro_batches >= 1:
            found.append(row)
    return found


class Calculon:
    """Calculon, with its own efficiency curves on the nameplate of our catalogue."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.llm = importlib.import_module("calculon.llm").Llm
        self.system = importlib.import_module("calculon").System
        self.systems = {
            name: json.loads((folder / "systems" / file).read_text("utf-8"))
            for name, file in (("ampere", "a100_80g.json"), ("", "h100_80g_nvl8.json"))
        }

    def _system(self, job: Job, mode: str) -> dict[str, Any]:
        accelerator, node = job.accelerator, job.node
        base = json.loads(json.dumps(self.systems["ampere" if accelerator.architecture == "ampere" else ""]))
        base["processing_mode"] = mode
        base["matrix"]["float16"]["tflops"] = accelerator.peak_flop_per_s["bf16"] / 1e12
        base["mem1"]["GBps"] = accelerator.memory_bytes_per_s / 1e9
        base["mem1"]["GiB"] = base["mem2"]["GiB"] = 1e6  # the run was made: it fitted
        inside, outside = base["networks"]
        inside |= {"bandwidth": accelerator.scale_up_bytes_per_s / 1e9, "size": node.accelerators}
        inside["must_be_filled"] = False
        outside["bandwidth"] = node.nic_bits_per_s * node.nics / node.accelerators / 8e9
        return dict(base)

    def step(self, row: Row, mode: str) -> float:
        """Step time of a run [s]; computing and memory traffic of a kernel one after the other, or at once."""
        run, model = row.item.run, row.job.model
        hidden, heads, tp = model.hidden, row.whole("heads"), row.whole("tp")
        kv, ffn = run.whole("kv_heads", heads), run.whole("ffn")
        # one kind of attention and an MLP of two matrices: as many parameters a layer as the run's
        parameters = (3 if run.whole("gated_mlp", 1) else 2) * hidden * ffn + 2 * hidden * hidden * (1 + kv / heads)
        feedforward = round((parameters - 4 * hidden * hidden) / (2 * hidden) / tp) * tp
        application = {
            "hidden": hidden, "feedforward": feedforward, "seq_size": row.whole("seq_len"), "attn_heads": heads,
            "attn_size": hidden // heads, "num_blocks": row.whole("layers"),
        }  # fmt: skip
        world, node = row.whole("n_gpus"), row.job.node.accelerators
        execution = {
            "num_procs": world, "tensor_par": tp, "pipeline_par": row.whole("pp"), "data_par": row.dp,
            "tensor_par_net": 0, "pipeline_par_net": int(world > node), "data_par_net": int(tp * row.dp > node),
            "batch_size": row.whole("gbs"), "microbatch_size": row.whole("mbs"), "datatype": "float16",
            "fused_activation": True, "attention_type": "multihead",
            "activation_recompute": {"selective": "attn_only"}.get(run.text("recompute"), run.text("recompute")),
            "pipeline_interleaving": row.whole("vpp") if row.whole("pp") > 1 else 1,
            "optimizer_sharding": bool(SHARDED[run.text("sharding") or "none"]) and row.dp > 1,
            "tensor_par_comm_type": "rs_ag" if row.sequence_parallel and tp > 1 else "ar", "tensor_par_overlap": "none",
            "seq_par_ag_redo": False, "data_par_overlap": row.dp > 1, "weight_offload": False,
            "activations_offload": False, "optimizer_offload": False, "training": True,
        }  # fmt: skip
        system = self.system(self._system(row.job, mode))
        estimate = self.llm(self.llm.Application(application), logging.getLogger("calculon"))
        estimate.compile(system, self.llm.Execution.from_json(execution))
        estimate.run(system)
        return float(estimate.get_total_time())


class LlmAnalysis:
    """llm-analysis; it has no pipeline bubble, that of 1F1B is added, and its user types the share of peak in."""

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(folder))
        self.module = importlib.import_module("llm_analysis.analysis")
        self.config = importlib.import_module("llm_analysis.config")
        vars(self.module)["within_range"] = lambda *_: True  # its check of itself, see the page
        logging.disable(logging.CRITICAL)

    def step(self, row: Row, efficiency: float) -> float:
        """Step time of a run [s] at a share of the peak."""
        run, accelerator, node = row.item.run, row.job.accelerator, row.job.node
        model = self.config.ModelConfig(
            name="run", num_layers=row.whole("layers"), n_head=row.whole("heads"), hidden_dim=row.job.model.hidden,
            vocab_size=row.whole("vocab"), max_seq_len=row.whole("seq_len"),
            num_key_value_heads=run.whole("kv_heads", row.whole("heads")), ffn_embed_dim=row.whole("ffn"),
            mlp_gated_linear_units=bool(run.whole("gated_mlp", 1)),
        )  # fmt: skip
        gpu = self.config.GPUConfig(
            name="run", mem_per_GPU_in_GB=accelerator.memory_bytes / 2**30,
            hbm_bandwidth_in_GB_per_sec=accelerator.memory_bytes_per_s / 1e9,
            intra_node_bandwidth_in_GB_per_sec=accelerator.scale_up_bytes_per_s / 1e9,
            intra_node_min_message_latency=8e-6, peak_fp16_TFLOPS=accelerator.peak_flop_per_s["bf16"] / 1e12,
            inter_node_bandwidth_in_GB_per_sec=node.nic_bits_per_s * node.nics / 8e9,
        )  # fmt: skip
        layout = self.config.ParallelismConfig(
            tp_size=row.whole("tp"), pp_size=row.whole("pp"), dp_size=row.dp,
            sp_size=row.whole("tp") if row.sequence_parallel else 1,
        )  # fmt: skip
        analysis = self.module.LLMAnalysis(model, gpu, self.config.DtypeConfig(), layout, flops_efficiency=efficiency)
        recompute = {"none": 0, "selective": 1, "full": 4}[run.text("recompute")]
        found = analysis.training(
            batch_size_per_gpu=row.whole("mbs"), global_batch_size=row.whole("gbs"), seq_len=row.whole("seq_len"),
            activation_recomputation=self.module.ActivationRecomputation(recompute),
            ds_zero=self.module.DSZeRO(SHARDED[run.text("sharding") or "none"]), flash_attn=row.flash,
        )  # fmt: skip
        bubble = (row.whole("pp") - 1) / row.whole("vpp") / row.micro_batches
        return float(found["latency_per_iter"]) * (1 + bubble)


def source_weighted(errors: dict[str, list[float]]) -> float:
    """Median over the sources of each source's median absolute error."""
    return statistics.median(statistics.median(map(abs, e)) for e in errors.values())


def by_source(rows: Iterable[Row], step: Callable[[Row], float]) -> dict[str, list[float]]:
    """Errors by source."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        found[row.item.run.text("source_group")].append(step(row) / row.measured - 1)
    return found


def possible(rows: Iterable[Row], *steps: Callable[[Row], float]) -> tuple[list[Row], int]:
    """The rows that every tool takes, and how many one refuses."""
    taken, refused = [], 0
    for row in rows:
        try:
            fine = all(math.isfinite(step(row)) and step(row) > 0 for step in steps)
        except Exception:  # noqa: BLE001 - whatever another program raises is its refusal
            fine = False
        taken += [row] if fine else []
        refused += not fine
    return taken, refused


def grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each source."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.item.run.text("source_group")].append(row)
    return groups


def thinned(rows: Iterable[Row]) -> list[Row]:
    """At most `ENOUGH` rows of each source, evenly taken."""
    return [row for same in grouped(rows).values() for row in same[:: -(-len(same) // ENOUGH)]]


def main() -> None:
    """Score, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calculon", type=Path, required=True)
    parser.add_argument("--llm-analysis", type=Path, required=True)
    arguments = parser.parse_args()
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        rows = rows_of(validate([table], load()).scored)
    calculon, other = Calculon(arguments.calculon), LlmAnalysis(arguments.llm_analysis)
    rows, refused = possible(rows, lambda row: calculon.step(row, SERIAL), lambda row: other.step(row, 0.5))
    fitted = thinned([row for row in rows if row.item.run.text("split") == "fit"])
    share = min(EFFICIENCIES, key=lambda e: source_weighted(by_source(fitted, lambda row: other.step(row, e))))
    best = {
        source: min(EFFICIENCIES, key=lambda e: source_weighted(by_source(same, lambda row: other.step(row, e))))
        for source, same in grouped(rows).items()
    }
    tools: dict[str, Callable[[Row], float]] = {
        "clusterwright": lambda row: row.item.step_s,
        "Calculon": lambda row: calculon.step(row, SERIAL),
        "Calculon, roofline": lambda row: calculon.step(row, "roofline"),
        "llm-analysis": lambda row: other.step(row, share),
        "llm-analysis, hindsight": lambda row: other.step(row, best[row.item.run.text("source_group")]),
    }
    errors = {
        name: {
            split: by_source([r for r in rows if r.item.run.text("split") == split], step) for split in ("check", "fit")
        }
        for name, step in tools.items()
    }
    versions = {"Calculon": arguments.calculon, "llm-analysis": arguments.llm_analysis}
    write_text_atomically(PAGE, page(errors, len(rows), refused, share, {n: _version(f) for n, f in versions.items()}))


def _version(folder: Path) -> str:
    given = folder / "VERSION"
    if given.exists():
        return given.read_text("utf-8").strip()
    done = subprocess.run(
        ["git", "-C", str(folder), "log", "-1", "--format=%h of %cs"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def page(
    errors: dict[str, dict[str, dict[str, list[float]]]],
    rows: int,
    refused: int,
    share: float,
    versions: dict[str, str],
) -> str:
    """The page."""
    text = HEAD.format(
        rows=rows, refused=refused, share=share, calculon=versions["Calculon"], other=versions["llm-analysis"],
        day=datetime.now(UTC).date(),
    )  # fmt: skip
    lines = ["| split | source | runs | " + " | ".join(errors) + " |", "|---|---|--:|" + "--:|" * len(errors)]
    for split in ("check", "fit"):
        for source in sorted(errors["clusterwright"][split]):
            each = [errors[name][split][source] for name in errors]
            cells = [f"{statistics.median(map(abs, e)):.1%} ({statistics.median(e):+.1%})" for e in each]
            lines.append(f"| {split} | {source} | {len(each[0])} | " + " | ".join(cells) + " |")
        total = sum(map(len, errors["clusterwright"][split].values()))
        cells = [f"**{source_weighted(errors[name][split]):.1%}**" for name in errors]
        lines.append(f"| {split} | **median over sources** | {total} | " + " | ".join(cells) + " |")
    return text + "\n".join(lines) + "\n"


HEAD = """# Beside other open tools

The same runs, estimated by clusterwright and by two other open analytic tools. Written by `python calibration/peers.py`
on {day} from checkouts outside this repository, of which nothing is part of clusterwright:

- Calculon, {calculon} (https://github.com/calculon-ai/calculon)
- llm-analysis, {other} (https://github.com/cli99/llm-analysis)

{rows:,} of the shipped runs are ones that all three can express: dense models in bf16 or fp16, the whole layout and the
recompute printed, no context or expert parallelism, tensor parallelism within the node, the optimizer sharded at most
as ZeRO-1 does. {refused} more of that kind were refused by one of the others and are left out for all.

How a run is mapped, in favour of the other tool where there is a choice:

- Nameplates (peak, memory bandwidth, links) are those of our catalogue for all three; no memory limit is applied.
- **Calculon** keeps its own efficiency curves and latencies (`a100_80g.json` on Ampere, `h100_80g_nvl8.json`
  elsewhere). It knows attention with as many keys as heads and an MLP of two matrices: its MLP is made as wide as gives
  a layer the run's number of parameters. Activations are fused, data-parallel communication overlaps, sequence
  parallelism is on where the stack has it. Its files let a kernel compute and move memory one after the other; the
  second column lets it do both at once (`roofline`).
- **llm-analysis** asks its user for the share of the peak that is reached. One share for all runs, {share:.2f}, is the
  one that is best on the *fit* runs; the second column takes for each source the share that turns out best for that
  very source. It has no pipeline bubble: (p - 1) / (v m) of a step is added. Its check of itself, which takes every MLP
  for four times as wide as the model, is off.
- **clusterwright** is as shipped; *fit* runs are among those its efficiencies were fitted to, *check* runs are not.

Median of |estimated / measured - 1| of the step time, and in brackets the median with its sign:

"""


if __name__ == "__main__":
    main()
