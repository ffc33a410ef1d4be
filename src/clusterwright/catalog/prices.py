"""Fresh offers, from a table of prices or from gpuhunt: what is not understood is counted, never dropped in silence."""

from __future__ import annotations

import contextlib
import csv
import io
import logging
from typing import TYPE_CHECKING, Any

import tomlkit
from pydantic import ValidationError

from clusterwright.errors import InputError
from clusterwright.files import read_text, write_text_atomically
from clusterwright.market import Offer, PricePerNodeHour

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import date
    from pathlib import Path

    from clusterwright.catalog.load import Catalogue

COLUMNS = ("provider", "instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
"""Of the table: the names that gpuhunt uses; price in USD an hour for the whole instance, memory in GB of one GPU."""
SOURCE = "https://github.com/dstackai/gpuhunt"
NAMES = {
    ("A10", 24): "a10", ("A100", 40): "a100-40gb-sxm", ("A100", 80): "a100-80gb-sxm", ("B200", 180): "b200-sxm",
    ("B200", 192): "b200-sxm", ("B300", 288): "b300", ("GB200", 186): "gb200", ("GB200", 192): "gb200",
    ("GB300", 288): "gb300", ("GH200", 96): "gh200", ("H100", 80): "h100-sxm", ("H100NVL", 94): "h100-nvl",
    ("H200", 141): "h200-sxm", ("L4", 24): "l4", ("L40S", 48): "l40s", ("MI300X", 192): "mi300x",
    ("MI325X", 256): "mi325x", ("MI350X", 288): "mi350x", ("MI355X", 288): "mi355x", ("RTX4090", 24): "rtx-4090",
    ("RTX5090", 32): "rtx-5090", ("A6000", 48): "rtx-a6000", ("RTXPRO6000", 96): "rtx-pro-6000",
    ("V100", 16): "v100-16gb", ("V100", 32): "v100-32gb",
}  # fmt: skip
"""Catalogue name by name and memory [GB] of gpuhunt."""
PCIE = {"a100-40gb-sxm": "a100-40gb-pcie", "a100-80gb-sxm": "a100-80gb-pcie", "h100-sxm": "h100-pcie"}
PROVIDERS = {"lambdalabs": "lambda", "vastai": "vast.ai"}
"""Of gpuhunt, where the catalogue has another name."""
PCIE_WORDS = ("pcie", "standard_nc")
"""In the name of an instance: its accelerators are cards."""


def rows_of_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table of prices.

    Raises:
        InputError: the file cannot be read, lacks a column, or is empty; names it.
    """
    reader = csv.DictReader(io.StringIO(read_text(path)))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        msg = f"{path}: line 1: column {', '.join(missing)} is missing; wanted are {', '.join(COLUMNS)}"
        raise InputError(msg)
    try:
        rows = [{**row, "_line": str(reader.line_num)} for row in reader]
    except csv.Error as error:
        msg = f"{path}: line {reader.line_num}: {error}"
        raise InputError(msg) from None
    short = next((row["_line"] for row in rows if any(row[name] is None for name in COLUMNS)), None)
    if short is not None:
        msg = f"{path}: line {short}: fewer fields than the first line has"
        raise InputError(msg)
    if not rows:
        msg = f"{path}: no prices in it"
        raise InputError(msg)
    return rows


class Heard(logging.Handler):
    """Keeps what a library logs, so that the user is told in words and not by a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one message, without its traceback."""
        self.messages.append(record.getMessage())


@contextlib.contextmanager
def _heard(name: str) -> Iterator[list[str]]:
    log, handler = logging.getLogger(name), Heard()
    before = log.propagate
    log.propagate = False
    log.addHandler(handler)
    try:
        yield handler.messages
    finally:
        log.removeHandler(handler)
        log.propagate = before


def rows_of_gpuhunt() -> tuple[list[dict[str, str]], list[str]]:
    """What gpuhunt lists today, over the network, and what it said of providers that did not answer.

    Raises:
        InputError: gpuhunt is not installed, the network is down, or nothing came.
    """
    try:
        import gpuhunt  # noqa: PLC0415 - an extra, asked for only here
    except ImportError:
        msg = "prices over the network need gpuhunt: pip install 'clusterwright[prices]'; or give a table with --csv"
        raise InputError(msg) from None
    try:
        with _heard("gpuhunt") as said:
            catalogue = gpuhunt.Catalog()
            catalogue.load()
            items = catalogue.query(min_gpu_count=1)
    except Exception as error:  # noqa: BLE001 - whatever a provider's client raises, the user is told in words
        msg = f"no prices could be fetched ({type(error).__name__}: {error}); are you offline? give a table with --csv"
        raise InputError(msg) from None
    if not items:
        msg = "no prices could be fetched: every provider answered with nothing; nothing was written"
        raise InputError(msg)
    return [{name: str(getattr(item, name)) for name in COLUMNS} for item in items], said


def offers_of(
    rows: Iterable[Mapping[str, str]], catalogue: Catalogue, *, seen: date, source: str
) -> tuple[list[Offer], dict[str, int]]:
    """Offers of what the catalogue knows, and how many rows were left out by reason.

    Args:
        rows: Prices, with the columns of :data:`COLUMNS`.
        catalogue: Knows which instance is which node.
        seen: The day of the prices.
        source: Where they are from.

    Returns:
        Offers, and the number of rows left out by reason.

    Raises:
        InputError: a price is no positive number, or not one row is understood.
    """
    made: list[Offer] = []
    left_out: dict[str, int] = {}
    for row in rows:
        known = _accelerator(row, catalogue)
        if known is None:
            reason = f"{row['gpu_name'] or 'no accelerator'} {row['gpu_memory'] or '?'} GB is not in the catalogue"
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        made.append(_offer(row, known, catalogue, seen, source))
    if not made:
        msg = f"{source}: not one price is of an accelerator in the catalogue ({'; '.join(list(left_out)[:3])})"
        raise InputError(msg)
    return made, left_out


def _accelerator(row: Mapping[str, str], catalogue: Catalogue) -> str | None:
    if row["instance_name"] in catalogue.nodes:
        return catalogue.node(row["instance_name"]).accelerator
    try:
        memory = round(float(row["gpu_memory"] or 0))
    except (ValueError, OverflowError):
        return None
    found = NAMES.get((row["gpu_name"], memory))
    card = any(word in row["instance_name"].lower() for word in PCIE_WORDS)
    return PCIE.get(found or "", found) if card else found


def _offer(row: Mapping[str, str], accelerator: str, catalogue: Catalogue, seen: date, source: str) -> Offer:
    where = f"{source}: line {row['_line']}" if "_line" in row else source
    name, provider = row["instance_name"], PROVIDERS.get(row["provider"], row["provider"])
    node = catalogue.nodes.get(name)
    try:
        count = int(row["gpu_count"])
        agrees = node is not None and (node.provider, node.accelerators) == (provider, count)
        return Offer(
            provider=provider, node=name if agrees else None, instance=name, accelerator=accelerator,
            accelerators=count, term="spot" if row["spot"].lower() == "true" else "on-demand",
            price=PricePerNodeHour(usd=float(row["price"])), region=row["location"], seen=seen, source=source,
        )  # fmt: skip
    except (ValueError, ValidationError):
        msg = f"{where}: price {row['price']!r} and gpu_count {row['gpu_count']!r} must be numbers greater than zero"
        raise InputError(msg) from None


def write_offers(folder: Path, offers: Iterable[Offer]) -> Path:
    """Write ``offers.toml`` into a folder that ``--catalog`` reads; the file.

    Raises:
        InputError: it cannot be written.
    """
    listed = tomlkit.aot()
    for offer in offers:
        entry: dict[str, Any] = offer.model_dump(mode="json", exclude_none=True, exclude={"price"})
        entry["usd_per_node_hour"] = offer.price.usd
        listed.append(tomlkit.item(entry))
    document = tomlkit.document()
    document["offer"] = listed
    file = folder / "offers.toml"
    write_text_atomically(file, tomlkit.dumps(document))
    return file
