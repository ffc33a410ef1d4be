"""Loads what owning takes and what renting costs besides the nodes; people replace any block with their own."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from clusterwright.errors import InputError
from clusterwright.files import read_text
from clusterwright.market import Egress, Figure, Owning, Reclaim, Renting, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.resources.abc import Traversable

    from clusterwright.noun import Noun

OWNING_UNITS = {
    "life": "years", "residual": "1", "residual_age": "years", "installation": "1", "finance": "1/year",
    "support": "1/year", "staff_accelerators": "1", "staff_usd": "USD/year", "draw": "1",
    "colocation": "USD/kW/month", "storage_capacity": "1",
}  # fmt: skip
SITE_UNITS = {"pue": "1", "usd_per_kwh": "USD/kWh", "usd_per_byte": "USD/B", "usd_per_byte_month": "USD/B"}
RENTING_UNITS = {"stale": "days", "worst_reclaim": "h"}


def load_owning(folders: Sequence[Traversable | Path]) -> Owning:
    """What owning takes, from ``owning.toml`` and ``site.toml`` of all folders; later folders replace block by block.

    Raises:
        InputError: a figure without unit or source, of another unit, or an unknown block; names file and key.
    """
    figures = _figures(folders, "owning.toml", OWNING_UNITS, ("server",))
    site = _figures(folders, "site.toml", SITE_UNITS, None)
    servers = _rows(folders, "owning.toml", "server", "price", "USD", Server, lambda s: s.node)
    return Owning(
        servers=tuple(servers), pue=site["pue"], usd_per_kwh=site["usd_per_kwh"], storage=site["usd_per_byte"],
        **figures,
    )  # fmt: skip


def load_renting(folders: Sequence[Traversable | Path]) -> Renting:
    """What renting costs besides the nodes, from ``renting.toml`` of all folders.

    Raises:
        InputError: a figure without unit or source, of another unit, or an unknown block; names file and key.
    """
    figures = _figures(folders, "renting.toml", RENTING_UNITS, ("reclaim", "egress"))
    site = _figures(folders, "site.toml", SITE_UNITS, None)
    reclaims = _rows(
        folders, "renting.toml", "reclaim", "share", "1/month", Reclaim, lambda r: (r.provider, r.accelerator)
    )
    egress = _rows(folders, "renting.toml", "egress", "price", "USD/GB", Egress, lambda e: e.provider)
    return Renting(
        storage=site["usd_per_byte_month"],
        storage_capacity=_figures(folders, "owning.toml", OWNING_UNITS, ("server",))["storage_capacity"],
        reclaims=tuple(sorted(reclaims, key=lambda r: (r.provider == "*") + (r.accelerator == "*"))),
        egress=tuple(sorted(egress, key=lambda e: e.provider == "*")),
        **figures,
    )


def figures_of(owning: Owning, renting: Renting) -> dict[str, Figure]:
    """Every figure of owning and renting by its name."""
    found = {f"owning {name}": f for name, f in vars(owning).items() if isinstance(f, Figure)}
    found |= {f"buying {s.node} ({s.nodes})": s.price for s in owning.servers}
    found |= {f"renting {name}": f for name, f in vars(renting).items() if isinstance(f, Figure)}
    found |= {f"spot {r.provider} {r.accelerator}": r.share for r in renting.reclaims}
    return found | {f"egress {e.provider}": e.price for e in renting.egress}


def _documents(folders: Sequence[Traversable | Path], name: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for folder in folders:
        file = folder / name
        if not file.is_file():
            continue
        text = read_text(file) if isinstance(file, Path) else file.read_text(encoding="utf-8")
        try:
            found.append((str(file), tomllib.loads(text)))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file}: not valid TOML: {error}") from None
    return found


def _figures(
    folders: Sequence[Traversable | Path], name: str, units: dict[str, str], lists: tuple[str, ...] | None
) -> dict[str, Figure]:
    """The blocks by name; other blocks are refused where ``lists`` says which lists there may be besides."""
    found: dict[str, Figure] = {}
    for where, document in _documents(folders, name):
        unknown = [] if lists is None else [k for k in document if k not in units and k not in lists]
        if unknown:
            raise InputError(f"{where}: unknown {', '.join(unknown)}; known are {', '.join((*units, *(lists or ())))}")
        found |= {
            key: _figure(document[key], unit, f"{where}: {key}") for key, unit in units.items() if key in document
        }
    missing = [key for key in units if key not in found]
    if missing:
        raise InputError(f"{name}: {', '.join(missing)} missing")
    return found


def _figure(block: Any, unit: str, where: str) -> Figure:  # noqa: ANN401 - whatever the file holds
    if not isinstance(block, dict):
        raise InputError(f"{where}: write a table with value, unit, source and seen")
    made: Figure = _made(Figure, block, where)
    if made.unit != unit:
        raise InputError(f"{where}: unit {made.unit!r}, {unit!r} is wanted")
    low, high = made.span
    if not low <= made.value <= high:
        raise InputError(f"{where}: value {made.value:g} is not between low {low:g} and high {high:g}")
    return made


def _rows(  # noqa: PLR0917 - what differs between the lists
    folders: Sequence[Traversable | Path],
    name: str,
    key: str,
    field: str,
    unit: str,
    kind: type[Any],
    identity: Callable[[Any], object],
) -> list[Any]:
    """The rows of a list; a later folder's row replaces the one of the same identity."""
    found: dict[object, Any] = {}
    for where, document in _documents(folders, name):
        rows = document.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InputError(f"{where}: {key}: write [[{key}]] tables")
        for number, row in enumerate(rows, start=1):
            here = f"{where}: {key} {number}"
            own = {k: v for k, v in row.items() if k in kind.model_fields}
            figure = _figure({k: v for k, v in row.items() if k not in own}, unit, here)
            made = _made(kind, {**own, field: figure}, here)
            found[identity(made)] = made
    return list(found.values())


def _made(kind: type[Noun], values: dict[str, Any], where: str) -> Any:  # noqa: ANN401 - an instance of kind
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in error.errors())
        raise InputError(f"{where}: {faults}") from None
