"""Loads what a cluster has besides nodes: parts of the fabric, failure rates, storage as measured.

A figure is a table of ``value``, ``unit``, ``source`` and ``seen``; one without them is refused.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from clusterwright.errors import InputError
from clusterwright.facility import FacilityFigures
from clusterwright.files import read_text
from clusterwright.hardware import FabricParts, FailureRates, StorageSystem, SwitchPart
from clusterwright.units import HOUR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PARTS_UNITS = {
    "switch_ports": "1",
    "bits_per_s": "bit/s",
    "switch_usd": "USD",
    "switch_w": "W",
    "node_link_usd": "USD",
    "switch_link_usd": "USD",
    "node_optics_w": "W",
    "ports_a_transceiver": "1",
}
_FACILITY_UNITS = {
    "pue": "1",
    "usd_per_kwh": "USD/kWh",
    "usd_per_byte_month": "USD/B",
    "usd_per_byte": "USD/B",
    "storage_nics": "1",
    "storage_bits_per_s": "bit/s",
    "storage_oversubscription": "1",
    "management_ports": "1",
    "management_bits_per_s": "bit/s",
    "management_uplinks": "1",
}
_RATES_UNITS = {
    "mtbf_s": "s",
    "hardware_share": "1",
    "detection_s": "s",
    "restart_s": "s",
    "repair_s": "s",
    "host_copy_bytes_per_s": "B/s",
    "save_overhead_s": "s",
}


@dataclass(frozen=True)
class Cause:
    """One cause of interruptions as a cluster counted it."""

    name: str
    count: int
    repair: bool
    """Whether it takes a node (or its cable) out for repair."""


@dataclass(frozen=True)
class PublishedRun:
    """A cluster whose failures or useful time were published."""

    name: str
    accelerators: int
    mttf_h: float | None
    goodput_low: float | None
    goodput_high: float | None
    settings: dict[str, float]
    """What the publication says of checkpoints and restarts, by parameter of the estimate."""
    kind: str
    source: str
    note: str


@cache
def load_fabric_parts(path: Path | None = None) -> FabricParts:
    """Prices and power of fabric parts.

    Raises:
        InputError: a figure without unit or source, or of another unit; names file and key.
    """
    where, document = _read("fabric_parts.toml", path)
    figures, sources = _figures(document, _PARTS_UNITS, where)
    rows = [_row(row, ("name", "ports", "bits_per_s", "fabric", "source"), where) for row in document.get("switch", [])]
    switches = tuple(SwitchPart.model_validate(row) for row in rows)
    return FabricParts.model_validate({**figures, "switches": switches, "sources": sources})


@cache
def load_failure_rates(path: Path | None = None) -> FailureRates:
    """The rates an estimate starts from where nothing better is known.

    Raises:
        InputError: a figure without unit or source, or of another unit; names file and key.
    """
    where, document = _read("failures.toml", path)
    table = document.get("rates", {})
    figures, sources = _figures(table, _RATES_UNITS, where)
    assumptions = tuple(f"{key}: {table[key]['note']}" for key in _RATES_UNITS if table[key].get("assumed"))
    return FailureRates.model_validate({**figures, "assumptions": assumptions, "sources": sources})


@cache
def load_site_figures(path: Path | None = None) -> FacilityFigures:
    """What a cluster needs besides nodes and compute network: power, storage, management, causes of failures.

    Raises:
        InputError: a figure without unit or source, or of another unit; names file and key.
    """
    where, document = _read("site.toml", path)
    figures, sources = _figures(document, _FACILITY_UNITS, where)
    owning, more = _figures(_read("owning.toml", None)[1], {"storage_capacity": "1"}, "catalog/owning.toml")
    causes = tuple((cause.name, cause.count) for cause in load_failure_causes())
    return FacilityFigures.model_validate(
        {
            **figures,
            "storage_over_use": owning["storage_capacity"],
            "systems": load_storage_systems(),
            "causes": causes,
            "other_mtbf_s": load_other_rates(),
            "sources": (*sources, *more),
        }
    )


@cache
def load_failure_causes(path: Path | None = None) -> tuple[Cause, ...]:
    """Causes of interruptions with their counts, the most frequent first."""
    where, document = _read("failures.toml", path)
    rows = [_row(row, ("name", "count", "unit", "source", "repair"), where) for row in document.get("cause", [])]
    return tuple(Cause(row["name"], row["count"], row["repair"]) for row in sorted(rows, key=lambda row: -row["count"]))


@cache
def load_other_rates(path: Path | None = None) -> tuple[tuple[str, float], ...]:
    """What other clusters measured: name, and accelerator-seconds an interruption, the worst first."""
    where, document = _read("failures.toml", path)
    rows = [_row(row, ("name", "mtbf_hours", "unit", "source"), where) for row in document.get("elsewhere", [])]
    return tuple(sorted(((row["name"], row["mtbf_hours"] * HOUR) for row in rows), key=lambda row: row[1]))


@cache
def load_published_runs(path: Path | None = None) -> tuple[PublishedRun, ...]:
    """Clusters whose failures or useful time were published, to check an estimate against."""
    where, document = _read("failures.toml", path)
    rows = [_row(row, ("name", "accelerators", "source", "kind"), where) for row in document.get("run", [])]
    return tuple(
        PublishedRun(
            name=row["name"],
            accelerators=row["accelerators"],
            mttf_h=row.get("mttf_h"),
            goodput_low=row.get("goodput_low"),
            goodput_high=row.get("goodput_high"),
            settings=row.get("settings", {}),
            kind=row["kind"],
            source=row["source"],
            note=row.get("note", ""),
        )
        for row in rows
    )


@cache
def load_storage_systems(path: Path | None = None) -> tuple[StorageSystem, ...]:
    """File systems as measured, by size of installation."""
    where, document = _read("storage.toml", path)
    keys = ("name", "scale", "unit", "metric", "date", "source")
    systems = []
    for row in document.get("system", []):
        checked = _row(row, keys, where)
        if checked["unit"] != "B/s":
            raise InputError(f"{where}: {checked['name']}: unit {checked['unit']!r}, 'B/s' is wanted")
        systems.append(StorageSystem.model_validate({k: v for k, v in checked.items() if k not in {"unit", "note"}}))
    return tuple(systems)


def _read(name: str, path: Path | None) -> tuple[str, dict[str, Any]]:
    """The document at ``path``, or the one that is shipped, and what to call it in a message."""
    if path is None:
        text = resources.files("clusterwright.catalog").joinpath(name).read_text(encoding="utf-8")
        where = f"catalog/{name}"
    else:
        text, where = read_text(path), str(path)
    try:
        return where, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML ({error})") from None


def _figures(
    document: Mapping[str, Any], units: Mapping[str, str], where: str
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The values by key, in the units wanted, and their sources without repetition."""
    values: dict[str, float] = {}
    sources: list[str] = []
    for key, unit in units.items():
        figure = document.get(key)
        if not isinstance(figure, dict):
            raise InputError(f"{where}: {key} is missing; write a table with value, unit, source and seen")
        _row({"name": key, **figure}, ("value", "unit", "source", "seen"), where)
        if figure["unit"] != unit:
            raise InputError(f"{where}: {key}: unit {figure['unit']!r}, {unit!r} is wanted")
        values[key] = float(figure["value"])
        if figure["source"] not in sources:
            sources.append(figure["source"])
    return values, tuple(sources)


def _row(row: dict[str, Any], keys: tuple[str, ...], where: str) -> dict[str, Any]:
    """The row itself, once it has every key."""
    missing = [key for key in keys if key not in row]
    if missing:
        raise InputError(f"{where}: {row.get('name', 'a row without name')}: {', '.join(missing)} missing")
    return row
