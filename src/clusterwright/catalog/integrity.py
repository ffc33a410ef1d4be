"""Whether the catalogue agrees with itself: nodes with accelerators, offers with nodes, models with their counts."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Literal

from clusterwright.errors import InputError
from clusterwright.noun import Noun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from clusterwright.catalog.load import Catalogue
    from clusterwright.market import Offer

STALE_DAYS = 60
"""An older price is a warning."""
FACTOR = 20.0
"""A price for one accelerator that is this far from the median of its kind is a slip of a unit, not a bargain."""
TOLERANCE = 0.005
"""Between the parameters that the shape gives and those that were published."""


class Complaint(Noun):
    """One thing of the catalogue that does not hold, or has grown old."""

    what: str
    where: str
    why: str
    severity: Literal["error", "warning"]


def integrity(catalogue: Catalogue, today: date) -> list[Complaint]:
    """Everything that does not hold, errors first.

    Args:
        catalogue: What to look through; every file of it is read.
        today: The day that prices are held against.

    Returns:
        One complaint a fault, old prices as one warning an offer.
    """
    found = [*_files(catalogue), *_nodes(catalogue), *_offers(catalogue), *_outliers(catalogue), *_counts(catalogue)]
    found += _money(catalogue)
    return sorted([*found, *_ages(catalogue, today)], key=lambda c: c.severity != "error")


def _error(what: str, where: str, why: str) -> Complaint:
    return Complaint(what=what, where=where, why=why, severity="error")


def place(offer: Offer) -> str:
    """How an offer is told in a message."""
    return " ".join(filter(None, (offer.provider, offer.instance, offer.term, offer.region)))


def _files(catalogue: Catalogue) -> Iterator[Complaint]:
    for shelf in (catalogue.accelerators, catalogue.nodes, catalogue.models):
        for name in shelf:
            try:
                if shelf[name].name != name:
                    yield _error("name", name, f"the file says {shelf[name].name!r}; file and name must agree")
            except InputError as error:
                yield _error("file", name, str(error))


def _nodes(catalogue: Catalogue) -> Iterator[Complaint]:
    for name in _readable(catalogue, "nodes"):
        node = catalogue.nodes[name]
        if node.accelerator not in catalogue.accelerators:
            yield _error("accelerator", name, f"{node.accelerator!r} is not in the catalogue")
        if node.scale_up_domain % node.accelerators and node.accelerators % node.scale_up_domain:
            why = f"a domain of {node.scale_up_domain} does not hold whole nodes of {node.accelerators}"
            yield _error("scale_up_domain", name, why)


def _offers(catalogue: Catalogue) -> Iterator[Complaint]:
    for offer in catalogue.offers:
        where = place(offer)
        if offer.accelerator not in catalogue.accelerators:
            yield _error("accelerator", where, f"{offer.accelerator!r} is not in the catalogue")
        if offer.node is None:
            continue
        if offer.node not in _readable(catalogue, "nodes"):
            yield _error("node", where, f"{offer.node!r} is not in the catalogue")
            continue
        node = catalogue.node(offer.node)
        if (node.accelerator, node.accelerators) != (offer.accelerator, offer.accelerators):
            why = (
                f"{offer.accelerators} {offer.accelerator}, but {node.name} has {node.accelerators} {node.accelerator}"
            )
            yield _error("accelerators", where, why)


def _outliers(catalogue: Catalogue) -> Iterator[Complaint]:
    prices: dict[str, list[float]] = defaultdict(list)
    for offer in catalogue.offers:
        prices[offer.accelerator].append(offer.per_accelerator.usd)
    for offer in catalogue.offers:
        usual, price = median(prices[offer.accelerator]), offer.per_accelerator.usd
        if not usual / FACTOR < price < usual * FACTOR:
            why = f"{price:g} USD an accelerator-hour, others about {usual:g}: per node or per accelerator?"
            yield _error("price", place(offer), why)


def _money(catalogue: Catalogue) -> Iterator[Complaint]:
    """What owning and renting take: whole, of known nodes, and no price to buy that is far from the others."""
    try:
        servers, _ = catalogue.owning.servers, catalogue.renting
    except InputError as error:
        yield _error("figure", "owning.toml, renting.toml or site.toml", str(error))
        return
    each: dict[str, float] = {}
    for server in servers:
        if server.node not in _readable(catalogue, "nodes"):
            yield _error("node", f"server {server.node}", f"{server.node!r} is not in the catalogue")
            continue
        each[server.node] = server.price.value / (server.nodes * catalogue.node(server.node).accelerators)
    for name, usd in each.items():
        usual = median(each.values())
        if not usual / FACTOR < usd < usual * FACTOR:
            why = f"{usd:,.0f} USD an accelerator to buy, others about {usual:,.0f}: for how many nodes is the price?"
            yield _error("price", f"server {name}", why)


def _counts(catalogue: Catalogue) -> Iterator[Complaint]:
    for name in _readable(catalogue, "models"):
        model = catalogue.models[name]
        if model.published_parameters is None:
            yield Complaint(what="published_parameters", where=name, why="not given", severity="warning")
        elif abs(model.parameters / model.published_parameters - 1.0) > TOLERANCE:
            why = f"the shape has {model.parameters:,}, published are {model.published_parameters:,.0f}"
            yield _error("parameters", name, why)


def _ages(catalogue: Catalogue, today: date) -> Iterator[Complaint]:
    for offer in catalogue.offers:
        days = (today - offer.seen).days
        if days > STALE_DAYS:
            why = f"seen {offer.seen}, {days} days ago"
            yield Complaint(what="old price", where=place(offer), why=why, severity="warning")


def _readable(catalogue: Catalogue, kind: Literal["nodes", "models"]) -> list[str]:
    shelf = catalogue.nodes if kind == "nodes" else catalogue.models
    names = []
    for name in shelf:
        try:
            shelf[name]
        except InputError:
            continue
        names.append(name)
    return names
