"""``clusterwright catalog``: the facts, each with unit and source, and the age of prices."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusterwright.catalog import Catalogue
    from clusterwright.catalog.integrity import Complaint

KINDS = ("accelerators", "nodes", "models", "offers", "money", "sources")
FOLDER = click.option("--catalog", "folder", type=click.Path(path_type=Path), help="Your own parts and prices.")
STYLE = click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.group("catalog", no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show the facts behind every plan: accelerators, nodes, models and offers."""


@command.command("list")
@click.argument("kind")
@FOLDER
@STYLE
def list_kind(kind: str, folder: Path | None, style: str) -> None:
    """List all of a KIND: accelerators, nodes, models, offers, money or sources."""
    from clusterwright import api
    from clusterwright.errors import unknown

    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    catalogue = api.catalogue(folder)
    rows = ROWS[kind](catalogue)
    if style == "json":
        print(json.dumps({"kind": kind, kind: rows, "catalogue_date": catalogue.date.isoformat()}, allow_nan=False))
        return
    _table(rows, COLUMNS[kind])
    print(f"{len(rows)} {kind}; newest price of {catalogue.date}")


@command.command("show")
@click.argument("name")
@FOLDER
@STYLE
def show(name: str, folder: Path | None, style: str) -> None:
    """Show all that is known of one accelerator, node, model or provider, with its sources."""
    from clusterwright import api

    catalogue = api.catalogue(folder)
    document = _found(catalogue, name)
    if style == "json":
        print(json.dumps(document, allow_nan=False))
        return
    for line in _lines(document):
        print(line)


@command.command("check")
@FOLDER
@STYLE
def check(folder: Path | None, style: str) -> int:
    """Hold the catalogue against itself: prices, counts, names, ages. Exit code 1 when something does not hold."""
    from clusterwright import api
    from clusterwright.catalog.integrity import integrity

    catalogue = api.catalogue(folder)
    found = integrity(catalogue, datetime.now(tz=UTC).date())
    errors = [c for c in found if c.severity == "error"]
    sizes = {k: len(getattr(catalogue, k)) for k in KINDS}
    if style == "json":
        document = {"findings": [c.model_dump() for c in found], "errors": len(errors), "counts": sizes}
        document["catalogue_date"] = catalogue.date.isoformat()
        print(json.dumps(document, allow_nan=False))
    else:
        _complaints(found)
        print(f"{', '.join(f'{n} {k}' for k, n in sizes.items())}; newest price of {catalogue.date}")
        print(f"{len(errors)} errors, {len(found) - len(errors)} warnings")
    return 1 if errors else 0


@command.command("refresh")
@click.option("--csv", "table", type=click.Path(path_type=Path), help="A table of prices, as gpuhunt writes them.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("prices"), show_default=True, help="Folder.")
@FOLDER
@STYLE
def refresh(table: Path | None, out: Path, folder: Path | None, style: str) -> None:
    """Fetch today's prices (or read a table) into a folder that --catalog reads."""
    from clusterwright import api
    from clusterwright.catalog import prices

    catalogue = api.catalogue(folder)
    rows, said = prices.rows_of_gpuhunt() if table is None else (prices.rows_of_csv(table), [])
    source = prices.SOURCE if table is None else table.name
    offers, left_out = prices.offers_of(rows, catalogue, seen=datetime.now(tz=UTC).date(), source=source)
    file = prices.write_offers(out, offers)
    unknown_network = sum(o.node is None for o in offers)
    if style == "json":
        document: dict[str, Any] = {"file": str(file), "offers": len(offers), "unknown_network": unknown_network}
        document |= {"left_out": left_out, "warnings": said}
        print(json.dumps(document, allow_nan=False))
        return
    print(f"{file}: {len(offers)} offers, {unknown_network} of them of nodes whose network is not known")
    for message in said:
        print(f"  warning: {message}")
    for reason, count in sorted(left_out.items(), key=lambda pair: -pair[1])[:10]:
        print(f"  left out {count}: {reason}")
    print(f"use them with --catalog {out}")


def _accelerators(catalogue: Catalogue) -> list[dict[str, Any]]:
    return [catalogue.accelerator(name).model_dump(mode="json") for name in catalogue.accelerators]


def _nodes(catalogue: Catalogue) -> list[dict[str, Any]]:
    nodes = [catalogue.node(name) for name in catalogue.nodes]
    return [{**n.model_dump(mode="json"), "network_bytes_per_s": n.network_bytes_per_s} for n in nodes]


def _models(catalogue: Catalogue) -> list[dict[str, Any]]:
    return [_model(catalogue, name) for name in catalogue.models]


def _model(catalogue: Catalogue, name: str) -> dict[str, Any]:
    model = catalogue.model(name)
    counts = {"parameters": model.parameters, "active_parameters": model.active_parameters, "layers": model.layers}
    return {**model.model_dump(mode="json"), **counts}


def _offers(catalogue: Catalogue) -> list[dict[str, Any]]:
    today = datetime.now(tz=UTC).date()
    rows = []
    for offer in catalogue.offers:
        row = offer.model_dump(mode="json", exclude={"price"})
        row |= {"usd_per_node_hour": offer.price.usd, "usd_per_accelerator_hour": offer.per_accelerator.usd}
        rows.append({**row, "age_days": (today - offer.seen).days})
    return rows


def _sources(catalogue: Catalogue) -> list[dict[str, Any]]:
    return [{"name": key, **source.model_dump()} for key, source in catalogue.sources.items()]


def _money(catalogue: Catalogue) -> list[dict[str, Any]]:
    figures = [{"name": name, **figure.model_dump(mode="json")} for name, figure in catalogue.money.items()]
    return [{**row, "what": "assumed" if row["assumed"] else "read", "sources": [row["source"]]} for row in figures]


ROWS: dict[str, Callable[[Catalogue], list[dict[str, Any]]]] = {
    "accelerators": _accelerators, "nodes": _nodes, "models": _models, "offers": _offers, "money": _money,
    "sources": _sources,
}  # fmt: skip
COLUMNS: dict[str, dict[str, tuple[str, float]]] = {
    "accelerators": {"name": ("", 0), "GiB": ("memory_bytes", 2**30), "GB/s": ("memory_bytes_per_s", 1e9),
                     "bf16 Tflop/s": ("peak_flop_per_s.bf16", 1e12), "achievable": ("achievable.bf16", 1),
                     "scale-up GB/s": ("scale_up_bytes_per_s", 1e9), "SMs": ("multiprocessors", 1),
                     "W": ("power_w", 1)},
    "nodes": {"name": ("", 0), "provider": ("", 0), "accelerator": ("", 0), "of": ("accelerators", 1),
              "domain": ("scale_up_domain", 1), "NICs": ("nics", 1), "Gbit/s": ("nic_bits_per_s", 1e9),
              "fabric": ("", 0), "kW": ("power_w", 1e3)},
    "models": {"name": ("", 0), "parameters": ("parameters", 1), "active": ("active_parameters", 1),
               "layers": ("", 1), "hidden": ("", 1), "vocab": ("", 1), "published": ("published_parameters", 1)},
    "offers": {"provider": ("", 0), "instance": ("", 0), "accelerator": ("", 0), "of": ("accelerators", 1),
               "term": ("", 0), "USD/node/h": ("usd_per_node_hour", 1), "USD/acc/h": ("usd_per_accelerator_hour", 1),
               "seen": ("", 0), "days": ("age_days", 1)},
    "money": {"name": ("", 0), "value": ("", 0), "unit": ("", 0), "low": ("", 0), "high": ("", 0), "seen": ("", 0),
              "what": ("", 0)},
    "sources": {"name": ("", 0), "title": ("", 0), "seen": ("", 0)},
}  # fmt: skip
"""Heading: key (empty: the heading itself) and what a figure is divided by (0: text)."""


def _table(rows: list[dict[str, Any]], columns: dict[str, tuple[str, float]]) -> None:
    from rich.table import Table

    from clusterwright.report import show_table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, (_, unit) in columns.items():
        table.add_column(heading, justify="right" if unit else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row, key or heading, unit) for heading, (key, unit) in columns.items()))
    show_table(table, sys.stdout)


def _cell(row: dict[str, Any], key: str, unit: float) -> str:
    value: Any = row
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return "-"
    if not unit:
        return str(value)
    figure = float(value) / unit
    return f"{figure:,.0f}" if figure.is_integer() else f"{figure:,.2f}"


def _found(catalogue: Catalogue, name: str) -> dict[str, Any]:
    from clusterwright.errors import unknown

    offers = [row for row in _offers(catalogue) if name in (row["node"], row["accelerator"], row["provider"])]
    if name in catalogue.accelerators:
        part = {"kind": "accelerator", **catalogue.accelerator(name).model_dump(mode="json")}
    elif name in catalogue.nodes:
        part = {"kind": "node", **catalogue.node(name).model_dump(mode="json")}
    elif name in catalogue.models:
        part = {"kind": "model", **_model(catalogue, name)}
    elif offers:
        part = {"kind": "provider", "name": name, "sources": sorted({row["source"] for row in offers})}
    else:
        known = [*catalogue.accelerators, *catalogue.nodes, *catalogue.models, *catalogue.providers]
        raise unknown("name", name, known)
    where = {key: catalogue.sources[key].model_dump() for key in part["sources"] if key in catalogue.sources}
    return {**part, "sources": where or part["sources"], "offers": offers}


UNITS = {
    "_bytes": ("GiB", 2**30), "_bytes_per_s": ("GB/s", 1e9), "_flop_per_s": ("Tflop/s", 1e12),
    "_bits_per_s": ("Gbit/s", 1e9), "_w": ("W", 1.0), "_usd": ("USD", 1.0), "parameters": ("billion", 1e9),
}  # fmt: skip
"""How a figure is shown to people, by the end of its key."""


def _lines(document: dict[str, Any]) -> list[str]:
    from clusterwright.report import wrapped

    offers, sources = document.pop("offers"), document.pop("sources")
    blocks = document.pop("blocks", ())
    lines = [wrapped(*_line(key, value), 27) for key, value in document.items()]
    lines += [wrapped(" " * 27 if i else "blocks", _block(block), 27) for i, block in enumerate(_merged(blocks))]
    lines += ["", "sources"]
    if isinstance(sources, dict):
        lines += [f"  {s['title']} (seen {s['seen']})\n{wrapped('    ', s['url'], 4)}" for s in sources.values()]
    else:
        lines += [wrapped("  ", url, 4) for url in sources]
    return [*lines, "", "offers", *(wrapped("  ", _offer(one), 4) for one in offers)] if offers else lines


def _line(key: str, value: object) -> tuple[str, str]:
    end = max((end for end in UNITS if key.endswith(end)), key=len, default="")
    unit, size = UNITS.get(end, ("", 1.0))
    return key.removesuffix(end if end[:1] == "_" else ""), _plain(value, unit, size)


def _plain(value: object, unit: str = "", size: float = 1.0) -> str:
    if isinstance(value, bool) or value is None:
        return "unknown" if value is None else "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value / size:,.6g} {unit}".rstrip() if unit else f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_plain(v, unit, size)}" for k, v in value.items())
    return str(value)


def _merged(blocks: list[dict[str, Any]] | tuple[()]) -> list[dict[str, Any]]:
    """Equal layers counted together, whatever their order."""
    counts: dict[str, int] = {}
    for block in blocks:
        key = json.dumps({**block, "count": 0})
        counts[key] = counts.get(key, 0) + block["count"]
    return [{**json.loads(key), "count": count} for key, count in counts.items()]


def _block(block: dict[str, Any]) -> str:
    parts = [_part(block[part]) for part in ("mixer", "feed") if block[part]]
    return f"{block['count']} layers of {' and '.join(parts)}"


def _part(part: dict[str, Any]) -> str:
    said = [k if v is True else f"{k} {v}" for k, v in part.items() if k != "kind" and v and v != "none"]
    return f"{part['kind']} ({', '.join(said)})"


def _offer(offer: dict[str, Any]) -> str:
    what = " ".join(filter(None, (offer["provider"], offer["instance"], offer["term"], offer["region"])))
    price = f"{offer['usd_per_accelerator_hour']:.2f} USD an accelerator-hour"
    return f"{what}: {price}, seen {offer['seen']} ({offer['age_days']} days ago)"


def _complaints(found: list[Complaint]) -> None:
    for complaint in found:
        print(f"{complaint.severity:<8} {complaint.what}: {complaint.where}: {complaint.why}")
