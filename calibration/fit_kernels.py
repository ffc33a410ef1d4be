"""Fit the kernel curves to measured tables: matrix products, flash attention, groups of products, collectives.

    python calibration/fit_kernels.py TABLES COLLECTIVES.csv

``TABLES`` is the folder ``systems/data`` of aiconfigurator-core 0.12.0 (PyPI, Apache-2.0; read with pyarrow),
``COLLECTIVES.csv`` a table of published kernel and collective measurements (columns gpu, op, mnk, tflops). The best
backend counts where several measured one size. Each curve is fitted by the median absolute log error, which is kept
beside it as ``error``. Writes src/clusterwright/estimators/efficiency.toml in place, comments kept. What is fitted
here is not fitted to training runs again (calibration/fit_efficiency.py).
"""

from __future__ import annotations

import argparse
import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tomlkit
from pyarrow import parquet
from scipy.optimize import minimize

from clusterwright.catalog import load
from clusterwright.laws import collectives, roofline, work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clusterwright.hardware import Accelerator

FILE = Path(__file__).parent.parent / "src" / "clusterwright" / "estimators" / "efficiency.toml"
MACHINES = {
    "ampere": {"a100_sxm": "a100-80gb-sxm"},
    "hopper": {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm"},
    "blackwell": {"b200_sxm": "b200-sxm", "gb200": "gb200", "b300_sxm": "b300", "gb300": "gb300"},
    "ada": {"l40s": "l40s"},
}
"""Folders of the tables by architecture, and the accelerators they were measured on."""
SMALLEST = 1e10
"""Products of fewer operations are not of training. [FLOP]"""
LOW, HIGH = np.log(1e-8), np.log(1e8)


def fit(law: Callable[[Any], Any], measured: Any, starts: Sequence[Sequence[float]]) -> tuple[list[float], float]:  # noqa: ANN401 - arrays
    """Parameters that minimise the mean absolute log error, each error capped, and the median error."""

    def loss(logs: Any) -> float:  # noqa: ANN401 - array
        errors = np.abs(np.log(law(np.exp(np.clip(logs, LOW, HIGH))) / measured))
        return float(np.mean(np.minimum(errors, 0.7)))

    options = {"maxiter": 3000, "xatol": 1e-4, "fatol": 1e-6}
    found = min((minimize(loss, np.log(s), method="Nelder-Mead", options=options) for s in starts), key=lambda r: r.fun)
    values = np.exp(np.clip(found.x, LOW, HIGH))
    return [float(v) for v in values], float(np.median(np.abs(np.log(law(values) / measured))))


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """All rows of the tables of one kind."""
    return [row for file in sorted(folder.rglob(name)) for row in parquet.read_table(file).to_pylist()]


def best(found: list[tuple[tuple[Any, ...], float]]) -> Any:  # noqa: ANN401 - array
    """The shortest time of each size, as an array with the time last."""
    shortest: dict[tuple[Any, ...], float] = {}
    for key, time in found:
        shortest[key] = min(time, shortest.get(key, np.inf))
    return np.array([(*key, time) for key, time in shortest.items()], dtype=float)


def products(folders: dict[Path, Accelerator], names: tuple[str, ...], kind: str) -> list[tuple[Any, Accelerator]]:
    """Measured products of one format: (m, n, k, time) of each accelerator."""
    tables = []
    for folder, accelerator in folders.items():
        found = [
            ((row["m"], row["n"], row["k"]), row["latency"] * 1e-3)
            for row in rows(folder, "gemm_perf.parquet")
            if row["gemm_dtype"] in names and 2.0 * row["m"] * row["n"] * row["k"] > SMALLEST and row["latency"] > 0
        ]
        if found and kind in accelerator.peak_flop_per_s:
            tables.append((best(found), accelerator))
    return tables


def fit_products(tables: list[tuple[Any, Accelerator]], kind: str, memory: float) -> tuple[list[float], float]:
    """Share, half depth, waves and start of one format."""
    size = {"bf16": 2.0, "fp8": 1.0, "fp4": 0.5}[kind]

    def law(x: Any) -> Any:  # noqa: ANN401 - array
        share, half_depth, waves, start = x
        return np.concatenate(
            [
                roofline.matrix_product_time(
                    *table.T[:3],
                    peak=a.peak_flop_per_s[kind],
                    share=share,
                    half_depth=half_depth,
                    waves=waves,
                    multiprocessors=a.multiprocessors,
                    bandwidth=a.memory_bytes_per_s * memory,
                    element_bytes=size,
                    start=start,
                )
                for table, a in tables
            ]
        )

    return fit(law, np.concatenate([t[:, 3] for t, _ in tables]), [(0.7, 150, 0.2, 4e-6), (0.6, 300, 0.6, 8e-6)])


def fit_attention(folders: dict[Path, Accelerator]) -> tuple[list[float], float]:
    """Share, half length, half head and start of causal bf16 attention, forward."""
    tables = []
    for folder, accelerator in folders.items():
        found = [
            (
                (row["batch_size"], row["isl"], row["num_heads"], row["head_dim"]),
                row["latency"] * 1e-3,
            )
            for row in rows(folder, "context_attention_perf.parquet")
            if row["attn_dtype"] == "bfloat16"
            and not row["step"]
            and row.get("window_size", 0) in (0, -1)
            and row["head_dim"] in (64, 128, 256)
            and 2.0 * row["batch_size"] * row["num_heads"] * row["head_dim"] * row["isl"] ** 2 > SMALLEST
        ]
        tables.append((best(found), accelerator))

    def law(x: Any) -> Any:  # noqa: ANN401 - array
        share, half_length, half_head, start = x
        return np.concatenate(
            [
                roofline.attention_time(
                    work.attention_flop(t[:, 0] * t[:, 1], work.attended_tokens(t[:, 1], 0), t[:, 2], t[:, 3], t[:, 3]),
                    peak=a.peak_flop_per_s["bf16"],
                    share=share,
                    length=t[:, 1],
                    half_length=half_length,
                    head_size=t[:, 3],
                    half_head=half_head,
                    start=start,
                )
                for t, a in tables
            ]
        )

    return fit(law, np.concatenate([t[:, 4] for t, _ in tables]), [(0.6, 600, 40, 3e-5), (0.5, 200, 20, 1e-5)])


def published(file: Path, operation: str, gpu: str) -> list[dict[str, str]]:
    """Rows of one operation on one accelerator of the table of published measurements."""
    with file.open(encoding="utf-8") as stream:
        return [r for r in csv.DictReader(stream) if r["op"] == operation and r["gpu"] == gpu and r["tflops"]]


def backward(file: Path, gpu: str) -> float:
    """Median speed of the backward flash kernel over that of the forward one, on the same shapes."""
    ahead = {r["mnk"]: float(r["tflops"]) for r in published(file, "attention_fwd", gpu)}
    back = {r["mnk"]: float(r["tflops"]) for r in published(file, "attention_bwd", gpu)}
    return float(np.median([back[shape] / ahead[shape] for shape in ahead if shape in back]))


def fit_groups(file: Path, accelerator: Accelerator, curve: Any) -> tuple[list[float], float]:  # noqa: ANN401 - a TOML table
    """Speed of a group of products over one, and the time that each adds."""
    shapes = []
    for row in published(file, "grouped_gemm", "B200"):
        sizes = {k.lower(): float(v) for k, v in re.findall(r"(ng|M|N|K)=(\d+)", row["mnk"])}
        groups, m, n, k = (sizes[name] for name in ("ng", "m", "n", "k"))
        shapes.append((groups, m, n, k, 2 * groups * m * n * k / (float(row["tflops"]) * 1e12)))
    table = np.array(shapes)
    g, m, n, k, time = table.T

    def law(x: Any) -> Any:  # noqa: ANN401 - array
        return roofline.matrix_product_time(
            m,
            n,
            k,
            peak=accelerator.peak_flop_per_s["bf16"],
            share=float(curve["bf16"]["share"]) * x[0],
            half_depth=float(curve["bf16"]["half_depth"]),
            waves=float(curve["bf16"]["waves"]),
            multiprocessors=accelerator.multiprocessors,
            bandwidth=accelerator.memory_bytes_per_s * float(curve["memory"]),
            element_bytes=2.0,
            start=float(curve["start"]) + g * x[1],
            groups=g,
        )

    return fit(law, time, [(0.75, 4e-6), (0.9, 1e-6)])


def fit_links(folders: dict[str, dict[Path, Accelerator]]) -> dict[str, list[float]]:
    """Scale-up share of gathers and of all-reduces by architecture, and latency and fill of all."""
    tables: list[tuple[str, bool, float, Any]] = []
    for architecture, machines in folders.items():
        for folder, a in machines.items():
            if not a.switched or architecture == "ada":
                continue
            for operation in ("all_gather", "reduce_scatter", "all_reduce"):
                found = [
                    ((row["num_gpus"], row["message_size"]), row["latency"] * 1e-3)
                    for row in rows(folder, "nccl_perf.parquet")
                    if row["op_name"] == operation and row["message_size"] >= 1e5
                ]
                most = max((key[0] for key, _ in found), default=0)
                whole = [item for item in found if item[0][0] == most]
                if whole:
                    tables.append((architecture, operation == "all_reduce", a.scale_up_bytes_per_s, best(whole)))
    names = sorted({t[0] for t in tables})

    def law(x: Any) -> Any:  # noqa: ANN401 - array
        parts = []
        for architecture, reduce, up, t in tables:
            share = x[2 + 2 * names.index(architecture) + reduce]
            begin = (
                collectives.start_up(t[:, 1], latency=x[0], fill=x[1] * (1 + reduce))
                * (1 + np.minimum(t[:, 0], 8) / 8)
                / 2
            )
            once = collectives.all_gather_ring(t[:, 1], t[:, 0], t[:, 0], up=up * share, out=1.0, start=0.0)
            parts.append(begin + (2 if reduce else 1) * once)
        return np.concatenate(parts)

    values, error = fit(law, np.concatenate([t[3][:, 2] for t in tables]), [(1.5e-5, 4e-5) + (0.75,) * 2 * len(names)])
    print(f"links: latency {values[0]:.2e} fill {values[1]:.2e} error {error:.3f}")
    shares = {name: values[2 + 2 * i : 4 + 2 * i] for i, name in enumerate(names)}
    return {"scale-up": values[:2], **shares}


def rounded(value: float) -> float:
    """Four digits."""
    return float(f"{value:.4g}")


def main() -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(description="Fit the kernel curves to measured tables.")
    parser.add_argument("tables", type=Path)
    parser.add_argument("collectives", type=Path)
    arguments = parser.parse_args()
    document: Any = tomlkit.parse(FILE.read_text(encoding="utf-8"))
    accelerators = load().accelerators
    folders = {
        architecture: {arguments.tables / folder: accelerators[name] for folder, name in machines.items()}
        for architecture, machines in MACHINES.items()
    }
    links = fit_links(folders)
    document["fabric"]["scale-up"]["latency"], document["fabric"]["scale-up"]["fill"] = map(rounded, links["scale-up"])
    for architecture, machines in folders.items():
        curve = document["architecture"][architecture]
        for kind, names in (("bf16", ("bfloat16",)), ("fp8", ("fp8", "fp8_block")), ("fp4", ("nvfp4",))):
            tables = products(machines, names, kind)
            if not tables:
                continue
            (share, half_depth, waves, start), error = fit_products(tables, kind, float(curve["memory"]))
            print(f"{architecture} {kind}: {share:.3f} {half_depth:.0f} {waves:.2f} {start:.1e} error {error:.3f}")
            figures = {"share": share, "half_depth": half_depth, "waves": waves, "error": error}
            curve[kind].update({name: rounded(value) for name, value in figures.items()})
            if kind == "bf16":
                curve["start"] = rounded(start)
        (share, half_length, half_head, start), error = fit_attention(machines)
        print(f"{architecture} attention: {share:.3f} {half_length:.0f} {half_head:.0f} {start:.1e} error {error:.3f}")
        figures = {"share": share, "half_length": half_length, "half_head": half_head, "error": error}
        curve["attention"].update({name: rounded(value) for name, value in figures.items()})
        if architecture in links:
            curve["up"], curve["reduce_up"] = map(rounded, links[architecture])
    for architecture, gpu in (("ampere", "A100-PCIe-80GB"), ("blackwell", "B200")):
        document["architecture"][architecture]["attention"]["backward"] = rounded(backward(arguments.collectives, gpu))
    (share, start), error = fit_groups(
        arguments.collectives, accelerators["b200-sxm"], document["architecture"]["blackwell"]
    )
    print(f"groups: {share:.3f} {start:.1e} error {error:.3f}")
    document["law"]["group_share"], document["law"]["group_start"] = rounded(share), rounded(start)
    FILE.write_text(tomlkit.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main()
