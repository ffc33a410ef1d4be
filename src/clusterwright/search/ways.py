"""What useful work costs each way that a cluster can be had, over how much of the time it works.

Every way costs ``hourly + standing / u`` for a useful accelerator-hour at a utilisation ``u``: what is rented by the
hour has only the first (and its storage), what is committed to or owned only the second. So owning breaks even with a
rent by the hour at one utilisation; against a commitment utilisation cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clusterwright.estimators import ownership
from clusterwright.estimators.training import Layouts, run
from clusterwright.laws import money
from clusterwright.market import MONTH_S
from clusterwright.noun import Noun
from clusterwright.search.candidate import spares_of
from clusterwright.term import Term
from clusterwright.units import HOUR, YEAR

if TYPE_CHECKING:
    from clusterwright.estimators.cost import Quote
    from clusterwright.layout import Layout
    from clusterwright.search.candidate import Setting
    from clusterwright.search.offers import Kind

UTILISATION = tuple(round(0.05 * i, 2) for i in range(1, 21))
"""Shares of the time that the cluster works. [1]"""
PRICE_SPAN = 0.2
"""Share by which a rent may move either way. [1]"""
SAME = 0.01
"""Share by which two sums may differ and be called the same. [1]"""
MONTHS = 12


class Way(Noun):
    """One way to have the cluster. Lists are over `UTILISATION`."""

    offer: str
    provider: str
    term: str
    instance: str
    region: str
    seen: str | None
    billed: Literal["by the hour", "round the clock"]
    nodes: int
    """Spares included."""
    usd_per_accelerator_hour: float
    goodput: float
    relative_speed: float
    """Of the same layout, over that on the nodes that are bought. [1]"""
    hourly_usd: float
    """Of a useful accelerator-hour, paid only while the cluster works."""
    standing_usd: float
    """Of a useful accelerator-hour at full utilisation, paid all the time."""
    usd_per_useful_accelerator_hour: tuple[float, ...]
    usd_per_year: tuple[float, ...]
    """Of all useful work that the cluster does in a year."""
    usd_per_job: tuple[float, ...]
    break_even_utilisation: float | None = None
    """From which on owning is cheaper; none: there is no such share, see the reason."""
    break_even_interval: tuple[float, float] | None = None
    """With the rent 20% either way and every figure of owning over its span, taken as independent; above 1: never."""
    break_even_reason: str = ""
    pay_back_months: tuple[float | None, ...] = ()
    """Until the rent that is not paid has paid for what was bought; none: never."""
    pay_back_months_with_finance: tuple[float | None, ...] = ()
    """And for the capital bound in it."""

    def at(self, utilisation: float) -> float:
        """Price of a useful accelerator-hour [USD]."""
        return self.hourly_usd + self.standing_usd / utilisation


class Moves(Noun):
    """What one figure does to the hour of owning when it is at the ends of its span."""

    figure: str
    low: float
    high: float
    unit: str
    usd_per_accelerator_hour: tuple[float, float]


class Own(Noun):
    """Owning the cluster."""

    node: str
    nodes: int
    kept_s: float
    capital_usd: dict[str, float]
    residual_usd: float
    usd_per_year: dict[str, float]
    """By part."""
    usd_per_hour: float
    usd_per_accelerator_hour: float
    """Of those that are bought, spares included."""
    interval: tuple[float, float]
    """Of the hour of an accelerator: every figure over its span, taken as independent."""
    left_out: tuple[str, ...]
    moves: tuple[Moves, ...]
    """What moves the hour most, first."""
    terms: Term

    @property
    def capital(self) -> float:
        """All that is paid at the start [USD]."""
        return sum(self.capital_usd.values())


@dataclass(frozen=True)
class Base:
    """The job whose work is compared, on the nodes that are bought."""

    layout: Layout
    step_s: float
    job_hours: float
    """Useful accelerator-hours of one job. [h]"""
    year_hours: float
    """Useful accelerator-hours of a year without a pause. [h]"""


def step_of(kind: Kind, layout: Layout, setting: Setting) -> float:
    """Step time of a layout on a kind of node [s]."""
    return float(run(setting.job(kind), Layouts.of(layout), setting.calibration).step_time_s[0])


def nodes_of(kind: Kind, layout: Layout) -> int:
    """Nodes of a kind that hold a layout."""
    return -(-layout.accelerators // kind.node.accelerators)


def goodput_of(kind: Kind, quote: Quote, layout: Layout, setting: Setting) -> tuple[float, int]:
    """Useful share of the time at a price, and the spare nodes."""
    nodes = nodes_of(kind, layout)
    useful = setting.useful(np.array([nodes]), kind.node.accelerators, quote)
    return float(useful.goodput[nodes]), spares_of(useful, nodes, quote)


def way(kind: Kind, quote: Quote, setting: Setting, base: Base, horizon_s: float) -> Way:
    """What useful work costs at one price.

    Args:
        kind: Of node.
        quote: Its price.
        setting: Of the search.
        base: The job.
        horizon_s: How long the cluster is kept. [s]
    """
    layout = base.layout
    goodput, spares = goodput_of(kind, quote, layout, setting)
    ordered = quote.paid_nodes or nodes_of(kind, layout) + spares
    speed = base.step_s / step_of(kind, layout, setting)
    work = layout.accelerators * goodput * speed
    price, standing = float(quote.usd_per_hour(ordered)), _standing(quote) / work
    if committed := quote.commitment_s > 0 or quote.paid_nodes is not None:
        # Kept for a whole horizon at full use, which share of what is paid serves?
        whole = replace(quote, kept_s=horizon_s, utilisation=1.0)
        standing += price / work * (whole.paid_s / whole.used_s if whole.used_s else 1.0)
    leaving = quote.beside.egress_bytes / 1e9 * quote.beside.usd_per_gb_egress
    hourly = (0.0 if committed else price / work) + leaving / base.job_hours
    useful = [hourly + standing / share for share in UTILISATION]
    there = quote.paid_nodes is not None and quote.owned is None
    name = " ".join(dict.fromkeys((quote.provider, quote.instance, quote.term)))
    name = f"{quote.instance} as paid now" if there else name
    return Way(
        offer=name, provider=quote.provider, term=quote.term, instance=quote.instance, region=quote.region,
        seen=quote.seen.isoformat() if quote.seen else None, billed="round the clock" if committed else "by the hour",
        nodes=ordered, usd_per_accelerator_hour=price / (ordered * kind.node.accelerators), goodput=goodput,
        relative_speed=speed, hourly_usd=hourly, standing_usd=standing,
        usd_per_useful_accelerator_hour=tuple(useful),
        usd_per_year=tuple(u * share * base.year_hours for u, share in zip(useful, UTILISATION, strict=True)),
        usd_per_job=tuple(u * base.job_hours for u in useful),
    )  # fmt: skip


def _standing(quote: Quote) -> float:
    """What is paid an hour besides the nodes, used or not [USD]."""
    beside = quote.beside
    return float(money.storage_rent(beside.storage_bytes, 1e9 * beside.usd_per_byte_month, HOUR))


def own_of(quote: Quote, nodes: int) -> Own:
    """Owning some nodes, spares included, with what moves its price most."""
    owned = quote.owned
    assert owned is not None  # noqa: S101 - asked only for what is bought
    count = nodes * owned.node.accelerators
    hour, years = float(owned.usd_per_hour(nodes)), owned.kept_s / YEAR
    cheap, dear, names = ownership.spread(owned, nodes)
    moves = [
        Moves(
            figure="price of a node" if name == "server" else name.replace("_", " "), low=figure.span[0],
            high=figure.span[1], unit=figure.unit, usd_per_accelerator_hour=(float(low) / count, float(high) / count),
        )
        for name, low, high in zip(names, cheap, dear, strict=True)
        for figure in [owned.worth(name)]
    ]  # fmt: skip
    return Own(
        node=owned.node.name, nodes=nodes, kept_s=owned.kept_s,
        capital_usd={key: float(usd) for key, usd in ownership.capital(owned, nodes).items()},
        residual_usd=float(ownership.residual(owned, nodes)),
        usd_per_year={key: float(usd) / years for key, usd in ownership.costs(owned, nodes).items()},
        usd_per_hour=hour, usd_per_accelerator_hour=hour / count,
        interval=(
            (hour - math.sqrt(float(((hour - cheap) ** 2).sum()))) / count,
            (hour + math.sqrt(float(((dear - hour) ** 2).sum()))) / count,
        ),
        left_out=tuple(sorted(owned.without)),
        moves=tuple(
            sorted(moves, key=lambda m: m.usd_per_accelerator_hour[0] - m.usd_per_accelerator_hour[1])
        ),
        terms=ownership.explain(owned, nodes),
    )  # fmt: skip


def against(one: Way, owned: Way, own: Own, base: Base) -> Way:
    """The same way, with where owning breaks even with it and when it has paid for itself."""
    ratio = owned.standing_usd / (one.hourly_usd + one.standing_usd)
    found: dict[str, object] = _pay_back(one, own, base)
    if one.billed == "round the clock":
        apart = f"{abs(ratio - 1):.0%} {'dearer' if ratio > 1 else 'cheaper'}"
        what = f"is {apart}" if abs(ratio - 1) >= SAME else "costs the same within 1%"
        found["break_even_reason"] = (
            f"utilisation cancels: both are paid used or idle; owning {what} at any utilisation"
        )
        return one.model_copy(update=found)
    share = float(money.break_even_utilisation(owned.standing_usd - one.standing_usd, one.hourly_usd))
    # The same standing cost moves with each figure of owning as the hour does.
    low, high = (end / own.usd_per_accelerator_hour * owned.standing_usd for end in own.interval)
    down = math.hypot((owned.standing_usd - low) / one.hourly_usd, share - share / (1 + PRICE_SPAN))
    up = math.hypot((high - owned.standing_usd) / one.hourly_usd, share / (1 - PRICE_SPAN) - share)
    found["break_even_interval"] = (max(0.0, share - down), max(0.0, share + up))
    if share > 1:
        found["break_even_reason"] = f"owning is dearer even if used all the time: it costs {share:.0%} of this rent"
    else:
        found["break_even_utilisation"] = max(0.0, share)
    return one.model_copy(update=found)


def _pay_back(one: Way, own: Own, base: Base) -> dict[str, object]:
    """Months until the rent that is not paid, less what owning runs on, has paid for what was bought."""
    share = np.array(UTILISATION)
    rent = (one.hourly_usd * share + one.standing_usd) * base.year_hours / MONTHS
    running = sum(own.usd_per_year[key] for key in ownership.RUNNING) / MONTHS
    months = own.kept_s / MONTH_S
    yearly = own.terms.find("cost of capital a year")
    rate = ownership.monthly(yearly.value) if yearly is not None and months else 0.0
    return {
        key: tuple(float(m) if math.isfinite(m) else None for m in money.pay_back(own.capital, rent - running, i))
        for key, i in (("pay_back_months", 0.0), ("pay_back_months_with_finance", rate))
    }
