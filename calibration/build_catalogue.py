"""Build the catalogue's accelerators, nodes and offers from tables of published facts.

    python calibration/build_catalogue.py FACTS

``FACTS`` holds accelerators.csv, nodes.csv and prices.csv, each row with its source and the date it was read. What a
table leaves empty is filled from the vendor's sheet, named below. Writes src/clusterwright/catalog/.
"""

from __future__ import annotations

import argparse
import csv
import re
from pathlib import Path
from typing import Any

import tomlkit

CATALOG = Path(__file__).parent.parent / "src" / "clusterwright" / "catalog"
SHEETS = {
    "nvidia-volta": (
        "NVIDIA Tesla V100 GPU Architecture white paper and data sheet",
        "https://images.nvidia.com/content/volta-architecture/pdf/volta-architecture-whitepaper.pdf",
    ),
    "nvidia-ampere": (
        "NVIDIA A100 Tensor Core GPU Architecture white paper and data sheet",
        "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf",
    ),
    "nvidia-hopper": (
        "NVIDIA H100 Tensor Core GPU Architecture white paper and data sheet",
        "https://resources.nvidia.com/en-us-tensor-core",
    ),
    "nvidia-blackwell": (
        "NVIDIA Blackwell Architecture technical brief",
        "https://resources.nvidia.com/en-us-blackwell-architecture",
    ),
    "nvidia-ada": (
        "NVIDIA Ada GPU Architecture white paper",
        "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    ),
    "amd-instinct": (
        "AMD Instinct accelerator data sheets",
        "https://www.amd.com/en/products/accelerators/instinct.html",
    ),
    "intel-gaudi": (
        "Intel Gaudi accelerator white papers",
        "https://www.intel.com/content/www/us/en/products/details/processors/ai-accelerators/gaudi.html",
    ),
    "intel-max": (
        "Intel Data Center GPU Max Series overview",
        "https://www.intel.com/content/www/us/en/developer/articles/technical/intel-data-center-gpu-max-series-overview.html",
    ),
}
# canonical name: row of the table, vendor, architecture, multiprocessors, sheet, what the table leaves empty
ACCELERATORS: dict[str, tuple[str, str, str, int, str, dict[str, float]]] = {
    "v100-16gb": ("V100 SXM2 16GB", "nvidia", "volta", 80, "nvidia-volta", {"tdp_w": 300}),
    "v100-32gb": ("V100 SXM2 32GB", "nvidia", "volta", 80, "nvidia-volta", {"tdp_w": 300}),
    "a100-40gb-sxm": ("A100 SXM4 40GB", "nvidia", "ampere", 108, "nvidia-ampere", {}),
    "a100-80gb-sxm": ("A100 SXM4 80GB", "nvidia", "ampere", 108, "nvidia-ampere", {}),
    "a100-40gb-pcie": ("A100 PCIe 40GB", "nvidia", "ampere", 108, "nvidia-ampere", {"tdp_w": 250, "mem_bw_gbs": 1555}),
    "a100-80gb-pcie": ("A100 PCIe 80GB", "nvidia", "ampere", 108, "nvidia-ampere", {}),
    "a800-sxm": ("A800 SXM4 80GB", "nvidia", "ampere", 108, "nvidia-ampere", {}),
    "a10": ("A10", "nvidia", "ampere", 72, "nvidia-ampere", {"tdp_w": 150}),
    "rtx-a6000": ("RTX A6000", "nvidia", "ampere", 84, "nvidia-ampere", {}),
    "h100-sxm": ("H100 SXM5", "nvidia", "hopper", 132, "nvidia-hopper", {}),
    "h100-pcie": ("H100 PCIe", "nvidia", "hopper", 114, "nvidia-hopper", {}),
    "h100-nvl": ("H100 NVL", "nvidia", "hopper", 132, "nvidia-hopper", {
        "bf16_dense_tflops": 835.5, "fp16_dense_tflops": 835.5, "fp8_dense_tflops": 1671, "scaleup_alltoall_unidir_gbs": 300, "scaleup_p2p_unidir_gbs": 300}),
    "h100-96gb-hbm2e-500w": ("H100 96GB HBM2e 500W", "nvidia", "hopper", 132, "nvidia-hopper", {}),
    "h800-sxm": ("H800 SXM5 80GB", "nvidia", "hopper", 132, "nvidia-hopper", {}),
    "h200-sxm": ("H200 SXM", "nvidia", "hopper", 132, "nvidia-hopper", {}),
    "gh200": ("GH200 (96GB HBM3)", "nvidia", "hopper", 132, "nvidia-hopper", {"tdp_w": 900}),
    "b200-sxm": ("B200 SXM (HGX)", "nvidia", "blackwell", 148, "nvidia-blackwell", {}),
    "b200-power-limited": ("B200 power-limited", "nvidia", "blackwell", 148, "nvidia-blackwell", {}),
    "b300": ("B300 SXM (HGX)", "nvidia", "blackwell", 148, "nvidia-blackwell", {}),
    "gb200": ("GB200 (per GPU, NVL72)", "nvidia", "blackwell", 148, "nvidia-blackwell", {}),
    "gb300": ("GB300 (per GPU, NVL72)", "nvidia", "blackwell", 148, "nvidia-blackwell", {}),
    "l4": ("L4", "nvidia", "ada", 58, "nvidia-ada", {}),
    "l40s": ("L40S", "nvidia", "ada", 142, "nvidia-ada", {}),
    "rtx-4090": ("RTX 4090", "nvidia", "ada", 128, "nvidia-ada", {}),
    "rtx-5090": ("RTX 5090", "nvidia", "blackwell-rtx", 170, "nvidia-blackwell", {}),
    "rtx-pro-6000": ("RTX PRO 6000 Blackwell Server", "nvidia", "blackwell-rtx", 188, "nvidia-blackwell", {}),
    "mi250x-gcd": ("MI250X", "amd", "cdna2", 110, "amd-instinct", {}),
    "mi300x": ("MI300X", "amd", "cdna3", 304, "amd-instinct", {}),
    "mi325x": ("MI325X", "amd", "cdna3", 304, "amd-instinct", {}),
    "mi350x": ("MI350X", "amd", "cdna4", 256, "amd-instinct", {}),
    "mi355x": ("MI355X", "amd", "cdna4", 256, "amd-instinct", {}),
    "gaudi2": ("Gaudi 2", "intel", "gaudi2", 24, "intel-gaudi", {}),
    "gaudi3": ("Gaudi 3", "intel", "gaudi3", 64, "intel-gaudi", {}),
    "pvc-max1550-tile": ("Max 1550 tile (Ponte Vecchio)", "intel", "xe", 64, "intel-max", {
        "scaleup_alltoall_unidir_gbs": 132.5, "scaleup_p2p_unidir_gbs": 26.5}),
}  # fmt: skip
HALVED = {"mi250x-gcd"}
"""Rows that describe a package of two accelerators as frameworks count them."""
POINT_TO_POINT = {"cdna2", "cdna3", "cdna4", "xe", "gaudi2", "gaudi3"}
GPU_NAMES = {
    "A100 40GB": "a100-40gb-sxm", "A100 80GB": "a100-80gb-sxm", "A100 80GB SXM": "a100-80gb-sxm", "A100 PCIe 80GB": "a100-80gb-pcie",
    "H100": "h100-sxm", "H100 SXM": "h100-sxm", "H100 PCIe": "h100-pcie", "H100 NVL": "h100-nvl", "H200": "h200-sxm", "H200 SXM": "h200-sxm",
    "B200": "b200-sxm", "B300": "b300", "GB200": "gb200", "GB300": "gb300", "GH200": "gh200", "L4": "l4", "L40S": "l40s", "A10": "a10",
    "V100": "v100-16gb", "V100 16GB": "v100-16gb", "MI300X": "mi300x", "MI355X": "mi355x", "RTX PRO 6000": "rtx-pro-6000", "Gaudi 3": "gaudi3",
}  # fmt: skip
PROVIDERS = {"Google Cloud": "gcp", "NVIDIA": "nvidia", "AMD OEM": "amd-oem"}
NODE_NAMES = {
    "DGX H100 / HGX H100": "dgx-h100", "DGX B300 (XDR)": "dgx-b300", "GB200 NVL72 rack": "gb200-nvl72", "GB300 NVL72 rack": "gb300-nvl72",
    "gb300_n18 (MLPerf)": "lambda-gb300-nvl72", "HGX H100": "coreweave-hgx-h100", "HGX B200": "coreweave-hgx-b200", "gb200-4x": "coreweave-gb200-4x",
    "gpu_8x_h100_sxm5": "lambda-8x-h100-sxm", "gpu_8x_b200_sxm6": "lambda-8x-b200-sxm", "gpu-h100-sxm_8gpu": "nebius-8x-h100-sxm",
    "gpu-b200-sxm_8gpu": "nebius-8x-b200-sxm", "Grand Teton": "meta-grand-teton",
}  # fmt: skip
INSTANCE_NODES = {
    ("lambda", "8x H100 SXM"): "lambda-8x-h100-sxm", ("lambda", "8x B200"): "lambda-8x-b200-sxm", ("lambda", "8x H100 SXM reserved"): "lambda-8x-h100-sxm",
    ("coreweave", "HGX H100"): "coreweave-hgx-h100", ("coreweave", "HGX B200"): "coreweave-hgx-b200",
    ("coreweave", "GB200 NVL72 (4-GPU node)"): "coreweave-gb200-4x", ("nebius", "HGX H100"): "nebius-8x-h100-sxm",
    ("nebius", "gpu-h100-sxm_8gpu"): "nebius-8x-h100-sxm", ("nebius", "gpu-b200-sxm_8gpu"): "nebius-8x-b200-sxm",
}  # fmt: skip
GIB = 2**30
"""Memory is sold in binary units: nvidia-smi prints 81,920 MiB for an A100 of 80 GB, 143,771 MiB for an H200 of 141 GB."""
TRAY = 4
"""Accelerators of a compute tray of an NVL72 rack: the node that schedulers see."""
YEAR_S = 365 * 86400
SPOT, RESERVED, BLOCK = ("spot", "preemptible"), ("reserv", "commitment", "savings plan"), ("capacity block",)
NOT_FOR_RENT = ("range", "before june 2025", "index", "contract")


def number(text: str) -> float | None:
    """The first number of a cell; none where there is none (``X``, ``?``, ``V``)."""
    match = re.match(r"\s*([0-9.]+)", text)
    return float(match[1]) if match else None


def write(path: Path, document: dict[str, Any]) -> None:
    """One TOML file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomlkit.dumps(document), encoding="utf-8")


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    """A table."""
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def accelerators(folder: Path, sources: dict[str, Any]) -> None:
    """One file an accelerator."""
    table = {r["name"]: r for r in rows(folder, "accelerators.csv")}
    for name, (row_name, vendor, architecture, multiprocessors, sheet, empty) in ACCELERATORS.items():
        row, half = table[row_name], 0.5 if name in HALVED else 1.0

        def value(
            column: str, row: dict[str, str] = row, empty: dict[str, float] = empty, half: float = half
        ) -> float | None:
            found = empty.get(column, number(row[column]))
            return None if found is None else found * half

        peaks = {k: value(f"{k}_dense_tflops") for k in ("bf16", "fp16", "tf32", "fp8", "fp4")}
        measured = {k: number(row[f"measured_{k}_matmul_tflops"]) for k in ("bf16", "fp8")}
        document: dict[str, Any] = {
            "name": name, "vendor": vendor, "architecture": architecture, "memory_bytes": (value("mem_gb") or 0) * GIB,
            "memory_bytes_per_s": (value("mem_bw_gbs") or 0) * 1e9, "multiprocessors": multiprocessors,
            "scale_up_bytes_per_s": (value("scaleup_alltoall_unidir_gbs") or 0) * 1e9,
            "scale_up_peer_bytes_per_s": (empty.get("scaleup_p2p_unidir_gbs") or number(row["scaleup_p2p_unidir_gbs"]) or value("scaleup_alltoall_unidir_gbs") or 0) * 1e9,
            "switched": architecture not in POINT_TO_POINT, "power_w": value("tdp_w") or 0,
        }  # fmt: skip
        if vendor == "intel":
            document["scale_up_peer_bytes_per_s"] = min(
                document["scale_up_peer_bytes_per_s"], document["scale_up_bytes_per_s"]
            )
        document["peak_flop_per_s"] = {k: v * 1e12 for k, v in peaks.items() if v}
        shares = {k: round(m / p, 4) for k, m in measured.items() if m and (p := peaks[k])}
        if shares:
            document["achievable"] = shares
        document["sources"] = [sheet, f"accelerator-{name}"]
        sources[f"accelerator-{name}"] = {
            "title": f"{row_name}, as read",
            "url": row["source"],
            "seen": row["source_date"],
        }
        write(CATALOG / "accelerators" / f"{name}.toml", document)


def fabric_of(text: str) -> str:
    """The kind of network."""
    lower = text.lower()
    kinds = (
        ("efa", "efa"),
        ("infiniband", "infiniband"),
        ("roce", "roce"),
        ("tcpx", "tcp"),
        ("slingshot", "slingshot"),
    )
    return next((kind for word, kind in kinds if word in lower), "unknown")


def nodes(folder: Path, sources: dict[str, Any]) -> set[str]:
    """One file a node; the names of all."""
    found = set()
    for row in rows(folder, "nodes.csv"):
        name = NODE_NAMES.get(row["node"]) or re.sub(r"[^A-Za-z0-9._-]+", "-", row["node"]).strip("-")
        name = name.lower() if row["provider"] in ("NVIDIA", "Intel", "AMD OEM") else name
        count, nics, gbps = int(row["gpus"]), number(row["fabric_nics"]), number(row["nic_gbps"])
        domain = 72 if row["gpu"] in ("GB200", "GB300") else count
        if match := re.search(r"(\d+) Gb/s per instance", row["fabric"]):
            nics, gbps = 8, int(match[1]) / 8
        if count == 72:
            count, nics = TRAY, (nics or 0) / (72 / TRAY)
        kilowatts = number(row["node_power_kw"])
        document: dict[str, Any] = {
            "name": name, "provider": PROVIDERS.get(row["provider"], row["provider"].lower()), "accelerator": GPU_NAMES[row["gpu"]],
            "accelerators": count, "scale_up_domain": domain, "nics": int(nics or 0), "nic_bits_per_s": (gbps or 0) * 1e9,
            "fabric": fabric_of(row["fabric"]) if nics and gbps else "unknown", "sources": [f"node-{name}"],
        }  # fmt: skip
        if kilowatts and domain != 72:
            document["power_w"] = kilowatts * 1e3
        sources[f"node-{name}"] = {"title": f"{row['node']}, as read", "url": row["source"], "seen": row["source_date"]}
        write(CATALOG / "nodes" / f"{name}.toml", document)
        found.add(name)
    return found


def date_of(text: str) -> str:
    """An ISO date; a bare year or month counts as its first day, so is stale."""
    match = re.match(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?", text)
    if match is None:
        msg = f"no date in {text!r}"
        raise ValueError(msg)
    return f"{match[1]}-{match[2] or '01'}-{match[3] or '01'}"


def offers(folder: Path, known: set[str]) -> None:
    """One file of all offers that can be rented."""
    document = tomlkit.document()
    listed = tomlkit.aot()
    for row in rows(folder, "prices.csv"):
        term = row["term"].lower()
        price = number(row["usd_per_node_hour"])
        if price is None or row["provider"] == "MARKET INDEX" or any(word in term for word in NOT_FOR_RENT):
            continue
        provider = PROVIDERS.get(row["provider"], row["provider"].lower())
        node = INSTANCE_NODES.get((provider, row["instance"]), row["instance"] if row["instance"] in known else "")
        kind = next(
            (
                k
                for k, words in (("spot", SPOT), ("reserved", RESERVED), ("capacity-block", BLOCK))
                if any(w in term for w in words)
            ),
            "on-demand",
        )
        years = re.search(r"(\d)-year", term)
        offer: dict[str, Any] = {"provider": provider, "node": node, "instance": row["instance"], "accelerator": GPU_NAMES[row["gpu"]],
                                 "accelerators": int(row["gpus"]), "term": kind, "usd_per_node_hour": price, "region": row["region"],
                                 "seen": date_of(row["price_date"]), "source": row["source"]}  # fmt: skip
        if kind == "reserved":
            offer["commitment_s"] = (int(years[1]) if years else 1) * YEAR_S
        each = number(row["usd_per_gpu_hour"])
        if each is None or abs(each * offer["accelerators"] / price - 1) > 0.01:
            msg = f"{provider} {row['instance']}: {each} a GPU does not agree with {price} a node of {offer['accelerators']}"
            raise ValueError(msg)
        listed.append(tomlkit.item({k: v for k, v in offer.items() if v != ""}))
    document["offer"] = listed
    (CATALOG / "offers.toml").write_text(tomlkit.dumps(document), encoding="utf-8")


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description="Build the catalogue from tables of published facts.")
    parser.add_argument("facts", type=Path)
    folder = parser.parse_args().facts
    sources: dict[str, Any] = {
        key: {"title": title, "url": url, "seen": "2026-11"} for key, (title, url) in SHEETS.items()
    }
    accelerators(folder, sources)
    offers(folder, nodes(folder, sources))
    write(CATALOG / "sources.toml", sources)


if __name__ == "__main__":
    main()
