"""What owning a cluster costs over the time it is kept: capital, what is left of it, and everything that runs on.

Every part stands by itself, over arrays of node counts, and the same parts as a tree that explains itself. A part may
be left out, and is then told as such; none is hidden. Not in any part: the networks for storage and management, taxes,
the building of a hall, software licences, and the work of moving in.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.estimators.fabric import (
    Topology,
    explain_fabric,
    fabric_capex,
    fabric_counts,
    fabric_power,
    join_nodes,
)
from clusterwright.laws import money
from clusterwright.laws.power import site_power
from clusterwright.market import MONTH_S
from clusterwright.term import Kind, Term
from clusterwright.units import HOUR, YEAR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.hardware import FabricParts, Node
    from clusterwright.market import Figure, Owning, Server
    from clusterwright.units import Count

    Floats = NDArray[np.float64]

CAPITAL = ("nodes", "fabric", "storage", "installation")
"""What is bought."""
RUNNING = ("support", "staff", "energy", "colocation")
"""What is paid as time goes."""
PARTS = (*CAPITAL, "finance", *RUNNING)
OPTIONAL = ("residual", "fabric", "storage", "installation", "finance", *RUNNING)
"""What may be left out."""
UNCERTAIN = (
    "server", "residual", "installation", "finance", "support", "staff_accelerators", "staff_usd", "draw", "pue",
    "usd_per_kwh", "colocation",
)  # fmt: skip
"""Figures whose span moves the result."""


@dataclass(frozen=True)
class Owned:
    """A cluster of one kind of node, bought, kept for a time and sold."""

    node: Node
    server: Server
    node_w: float
    """Largest draw of one node. [W]"""
    figures: Owning
    fabric: FabricParts
    radix: int
    """Ports of a switch at the speed of the node's NICs. [1]"""
    kept_s: float
    oversubscription: float = 1.0
    storage_bytes: float = 0.0
    """That are used; more is bought. [B]"""
    without: frozenset[str] = frozenset()
    """Parts that are left out, of `OPTIONAL`."""

    def usd_per_hour(self, nodes: Count) -> Floats:
        """All parts of some nodes, an hour of the time they are kept [USD], of the shape of ``nodes``."""
        count = np.asarray(nodes)
        whole = _by_nodes(self, 1 << int(np.max(count, initial=1)).bit_length())[count]
        return np.asarray(whole * HOUR / self.kept_s)

    def worth(self, key: str) -> Figure:
        """A figure by the name that `UNCERTAIN` has for it."""
        figure: Figure = self.server.price if key == "server" else getattr(self.figures, key)
        return figure

    def at(self, key: str, value: float) -> Owned:
        """The same, with one figure of another value."""
        figure = self.worth(key).model_copy(update={"value": value, "low": None, "high": None})
        if key == "server":
            return replace(self, server=self.server.model_copy(update={"price": figure}))
        return replace(self, figures=self.figures.model_copy(update={key: figure}))


def capital(owned: Owned, nodes: Count) -> dict[str, Floats]:
    """What is paid at the start, by part [USD], of the shape of ``nodes``."""
    count = np.asarray(nodes, dtype=np.float64)
    server, figures = owned.server, owned.figures
    found = {
        # A rack that is sold whole is bought whole.
        "nodes": np.ceil(count / server.nodes) * server.price.value,
        "fabric": _fabric(owned, nodes)[0],
        "storage": np.full_like(count, owned.storage_bytes * figures.storage_capacity.value * figures.storage.value),
    }
    found = {key: 0.0 * usd if key in owned.without else usd for key, usd in found.items()}
    share = 0.0 if "installation" in owned.without else figures.installation.value
    return {**found, "installation": share * np.sum(list(found.values()), axis=0)}


def residual(owned: Owned, nodes: Count) -> Floats:
    """What the nodes are sold for in the end [USD]; the rest is taken to sell for nothing."""
    if "residual" in owned.without:
        return np.zeros(np.shape(nodes))
    figures = owned.figures
    price = capital(owned, nodes)["nodes"]
    return money.residual_value(price, owned.kept_s, figures.residual.value, figures.residual_age.value * YEAR)


def costs(owned: Owned, nodes: Count) -> dict[str, Floats]:
    """What owning some nodes costs over the whole time they are kept, by part [USD], of the shape of ``nodes``.

    The parts of `CAPITAL` are straight-line depreciation from the price to what is left; ``finance`` is what the
    capital that is bound costs above that.
    """
    bought, left = capital(owned, nodes), residual(owned, nodes)
    whole = np.sum(list(bought.values()), axis=0)
    months = owned.kept_s / MONTH_S
    level = money.annuity(whole, left, monthly(owned.figures.finance.value), months) * months
    found = {**bought, "nodes": bought["nodes"] - left, "finance": level - (whole - left), **running(owned, nodes)}
    return {key: 0.0 * found[key] if key in owned.without else found[key] for key in PARTS}


def running(owned: Owned, nodes: Count) -> dict[str, Floats]:
    """What is paid as time goes, over the whole time, by part [USD]."""
    count, figures = np.asarray(nodes, dtype=np.float64), owned.figures
    years = owned.kept_s / YEAR
    bought = capital(owned, nodes)
    hardware = bought["nodes"] + bought["fabric"] + bought["storage"]
    largest = count * owned.node_w + _fabric(owned, nodes)[1]
    drawn = site_power(count * owned.node_w * figures.draw.value + _fabric(owned, nodes)[1], figures.pue.value)
    people = count * owned.node.accelerators / figures.staff_accelerators.value
    found = {
        "support": hardware * figures.support.value * years,
        "staff": people * figures.staff_usd.value * years,
        "energy": money.energy_cost(drawn, owned.kept_s, figures.usd_per_kwh.value),
        "colocation": largest / 1e3 * figures.colocation.value * (owned.kept_s / MONTH_S),
    }
    return {key: 0.0 * usd if key in owned.without else usd for key, usd in found.items()}


@functools.lru_cache(maxsize=256)
def _by_nodes(owned: Owned, limit: int) -> Floats:
    """The sum of all parts for 0, 1, ... nodes [USD]: a search asks for the same few numbers a million times."""
    return np.asarray(np.sum(list(costs(owned, np.arange(limit)).values()), axis=0))


def monthly(yearly: float) -> float:
    """The rate of a month that makes a yearly one.

    >>> round((1 + monthly(0.08)) ** 12, 6)
    1.08
    """
    return float(np.expm1(np.log1p(yearly) / 12))


def _fabric(owned: Owned, nodes: Count) -> tuple[Floats, Floats]:
    """Price [USD] and draw [W] of the network that is designed for each number of nodes; one node needs none."""
    count, node, parts = np.asarray(nodes), owned.node, owned.fabric
    nothing = np.zeros(count.shape)
    if not node.scales_out:
        return nothing, nothing
    price, power, open_ = nothing, nothing, count > 1
    for topology in Topology:
        counts = fabric_counts(np.maximum(count, 1), node.nics, owned.radix, topology, owned.oversubscription)
        here = open_ & (counts.tiers > 0)
        price = np.where(here, fabric_capex(counts, node.nic_bits_per_s, owned.radix, parts), price)
        power = np.where(here, fabric_power(counts, node.nic_bits_per_s, owned.radix, parts), power)
        open_ &= ~here
    return price, power


def explain(owned: Owned, nodes: int) -> Term:
    """Owning some nodes as a tree: every part with what it is made of, and those that are left out."""
    found = {key: float(usd) for key, usd in costs(owned, nodes).items()}
    bought = {key: float(usd) for key, usd in capital(owned, nodes).items()}
    parts = tuple(
        Term(
            name=_NAMES[key], value=found[key], unit="USD", source=_left_out(owned, key) or _LAWS[key],
            parts=() if key in owned.without else _factors(owned, key, nodes, bought),
        )
        for key in PARTS
    )  # fmt: skip
    years = f"{owned.kept_s / YEAR:.3g} years"
    return Term(name="owning", value=sum(found.values()), unit="USD", source=f"all parts, {years}", parts=parts)


_NAMES = {
    "nodes": "nodes, less resale", "fabric": "network", "storage": "storage bought", "installation": "installation",
    "finance": "cost of capital", "support": "support contract", "staff": "staff", "energy": "energy",
    "colocation": "colocation",
}  # fmt: skip
_LAWS = {
    "nodes": "price less what they are sold for in the end",
    "fabric": "switches, cables and optics of the network designed for these nodes; sells for nothing",
    "storage": "sells for nothing",
    "installation": "racks, insurance, freight: a share of the hardware",
    "finance": "money.annuity over the months, above depreciation",
    "support": "share of the hardware a year",
    "staff": "people x pay",
    "energy": "average draw x PUE x price",
    "colocation": "largest draw x price of a kW",
}


def _left_out(owned: Owned, key: str) -> str:
    return f"left out (--without {key})" if key in owned.without else ""


def _factors(owned: Owned, key: str, nodes: int, bought: dict[str, float]) -> tuple[Term, ...]:
    figures = owned.figures
    hardware = bought["nodes"] + bought["fabric"] + bought["storage"]
    largest = nodes * owned.node_w + float(_fabric(owned, nodes)[1])
    drawn = nodes * owned.node_w * figures.draw.value + float(_fabric(owned, nodes)[1])
    sold = Term(
        name="resale", value=float(residual(owned, nodes)), unit="USD",
        source=_left_out(owned, "residual") or "money.residual_value",
        parts=(_term("share left", figures.residual), _term("at the age of", figures.residual_age)),
    )  # fmt: skip
    factors = {
        "fabric": _designed(owned, nodes),
        "nodes": (
            _law("nodes bought", np.ceil(nodes / owned.server.nodes) * owned.server.nodes, "1", owned.server.node),
            _term(f"price of {owned.server.nodes} node{'s' * (owned.server.nodes > 1)}", owned.server.price),
            sold,
        ),
        "storage": (
            _law("bytes used", owned.storage_bytes, "B", "checkpoints kept and data"),
            _term("bought over used", figures.storage_capacity),
            _term("price of a byte", figures.storage),
        ),
        "installation": (_law("hardware", hardware, "USD", "nodes, network, storage"),
                         _term("share", figures.installation)),
        "finance": (_law("capital", sum(bought.values()), "USD", "all that is bought"),
                    _term("cost of capital a year", figures.finance)),
        "support": (_law("hardware", hardware, "USD", "nodes, network, storage"),
                    _term("share a year", figures.support)),
        "staff": (
            _law("accelerators", nodes * owned.node.accelerators, "1", "spares included"),
            _term("accelerators a person", figures.staff_accelerators),
            _term("pay", figures.staff_usd),
        ),
        "energy": (
            _law("average draw", drawn, "W", "nodes at their average, network at its largest"),
            _term("average over largest draw", figures.draw),
            _term("PUE", figures.pue),
            _term("price of energy", figures.usd_per_kwh),
        ),
        "colocation": (_law("largest draw", largest, "W", "nodes and network"), _term("price", figures.colocation)),
    }  # fmt: skip
    return factors.get(key, ())


def _designed(owned: Owned, nodes: int) -> tuple[Term, ...]:
    """Switches by tier and links by kind of the network, each with its price."""
    design = join_nodes(owned.node, nodes, owned.radix, owned.oversubscription, owned.fabric)
    return () if design is None else explain_fabric(design, owned.fabric).parts


def _law(name: str, value: float, unit: str, source: str) -> Term:
    return Term(name=name, value=float(value), unit=unit, source=source)


def _term(name: str, figure: Figure) -> Term:
    kind = Kind.ESTIMATED if figure.assumed else Kind.MEASURED
    return Term(name=name, value=figure.value, unit=figure.unit, kind=kind, source=figure.cited)


def assumptions(owned: Owned) -> tuple[str, ...]:
    """What owning takes for granted without a source of its own, and what is left out."""
    used = {"installation": ("installation",), "finance": ("finance",), "staff": ("staff_accelerators", "staff_usd")}
    keys = [key for part, names in used.items() if part not in owned.without for key in names]
    figures = [(key, owned.worth(key)) for key in keys]
    found = [f"owning: {key} {f.value:g}{f' {f.unit}' * (f.unit != '1')}: {f.note}" for key, f in figures if f.assumed]
    if owned.without:
        found.append(f"owning without {', '.join(sorted(owned.without))}, as asked")
    outside = "networks for storage and management, taxes, a hall of one's own, software licences and moving in"
    return (*found, f"owning: {outside} are in no part")


def sources(owned: Owned) -> tuple[str, ...]:
    """Where the figures of the parts that count were read."""
    figures = [owned.server.price, *(f for key in UNCERTAIN[1:] if _counts(owned, key) for f in [owned.worth(key)])]
    more = (owned.figures.storage, owned.figures.storage_capacity) if "storage" not in owned.without else ()
    return tuple(dict.fromkeys(f.source for f in (*figures, *more)))


def _counts(owned: Owned, key: str) -> bool:
    return key not in owned.without and _part_of(key) not in owned.without


def spread(owned: Owned, nodes: int) -> tuple[Floats, Floats, tuple[str, ...]]:
    """What an hour of owning costs when one figure after the other is at its low and at its high.

    Returns:
        With each figure at the end that makes owning cheaper, with each at the other [USD], and the figures' names.
    """
    names = tuple(key for key in UNCERTAIN if _counts(owned, key))
    ends = np.array([
        sorted(float(owned.at(key, value).usd_per_hour(nodes)) for value in owned.worth(key).span) for key in names
    ]).reshape(len(names), 2)  # fmt: skip
    return ends[:, 0], ends[:, 1], names


def _part_of(key: str) -> str:
    """The part that a figure moves."""
    return {"staff_accelerators": "staff", "staff_usd": "staff", "draw": "energy", "pue": "energy",
            "usd_per_kwh": "energy"}.get(key, key)  # fmt: skip
