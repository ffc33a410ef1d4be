"""What one more dollar would buy for a cluster that is there: nodes, network, storage, fp8, or rent instead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.plan import Upgrade
from clusterwright.search.candidate import fabric_of
from clusterwright.search.choice import choose
from clusterwright.search.offers import market
from clusterwright.search.propose import MAX_ACCELERATORS
from clusterwright.search.table import evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clusterwright.search.candidate import Setting
    from clusterwright.search.offers import Deal, Kind
    from clusterwright.search.table import Table

WIDER = 2
"""So many times the nodes, the bandwidth and the storage are looked at."""
WORTH = 1e-3
"""What makes a run sooner by a smaller share is not told. [1]"""


@dataclass(frozen=True)
class There:
    """A cluster that is there, and how long its best layout takes."""

    setting: Setting
    kind: Kind
    nodes: int
    time_s: float
    deal: Deal
    pins: Mapping[str, int | str]

    def time_with(self, *, kind: Kind | None = None, setting: Setting | None = None) -> float:
        """Time of the quickest layout on another node, or under another setting [s]."""
        return float(self.table(kind or self.kind, setting or self.setting).time_s.min(initial=np.inf))

    def table(self, kind: Kind, setting: Setting) -> Table:
        """Every layout on a kind of node."""
        return evaluate(setting, [kind], self.deal.workload.constraints.max_accelerators or MAX_ACCELERATORS, self.pins)

    def fabric_usd(self, kind: Kind, nodes: int, oversubscription: float) -> float | None:
        """Price of the network [USD]; none where it is not known."""
        return fabric_of(kind.node, nodes, oversubscription, self.setting.parts).capex_usd


def upgrades(table: Table, chosen: int, deal: Deal, pins: Mapping[str, int | str]) -> tuple[Upgrade, ...]:
    """What would end the job sooner on a cluster that is there: what is free, then the most time for a dollar.

    Args:
        table: Of the cluster that is there.
        chosen: Its best row.
        deal: Constraints and catalogue.
        pins: Choices that are fixed.
    """
    row = table.rows[chosen]
    there = There(table.setting, row.kind, row.kind.there or 0, float(table.time_s[chosen]), deal, pins)
    options = (*_nodes(there), *_network(there), *_storage(there), *_precision(there))
    sooner = [one for one in options if one.train_time_s < there.time_s * (1 - WORTH)]
    return (*sorted(sooner, key=lambda one: _rank(one, there.time_s)), *_rent(there))


def _rank(one: Upgrade, now_s: float) -> tuple[int, float]:
    """Free ones first, then by seconds for a dollar; what has no price is last."""
    gain = now_s - one.train_time_s
    if one.price_usd is None:
        return 2, -gain
    return (0, -gain) if one.price_usd <= 0 else (1, -gain / one.price_usd)


def _nodes(there: There) -> Iterator[Upgrade]:
    """The number of further nodes that gives most for a dollar, up to as many again."""
    most = there.nodes * WIDER
    quotes = tuple(replace(q, paid_nodes=most, largest_order=most) for q in there.kind.quotes)
    table = there.table(replace(there.kind, there=most, quotes=quotes), there.setting)
    more, gain = table.nodes - there.nodes, there.time_s - table.time_s
    better = np.flatnonzero((more > 0) & (gain > WORTH * there.time_s))
    if not len(better):
        return
    row = int(better[np.argmax(gain[better] / more[better])])
    count = int(more[row])
    price, source = _node_price(there)
    if price is not None:
        fabrics = [
            there.fabric_usd(there.kind, n, there.setting.oversubscription) for n in (there.nodes, there.nodes + count)
        ]
        price = count * price + ((fabrics[1] or 0.0) - (fabrics[0] or 0.0))
    what = f"{count} more {'node' if count == 1 else 'nodes'} ({there.nodes + count} in all)"
    yield Upgrade(what=what, train_time_s=float(table.time_s[row]), price_usd=price, source=source)


def _node_price(there: There) -> tuple[float | None, str]:
    """Price of one such node where one of its kind is priced [USD], and the source of that."""
    for server in there.deal.catalogue.owning.servers:
        node = there.deal.catalogue.node(server.node)
        if (node.accelerator, node.accelerators) == (there.kind.accelerator.name, there.kind.node.accelerators):
            return server.price.value / server.nodes, f"{server.node}: {server.price.source}"
    return None, ""


def _network(there: There) -> Iterator[Upgrade]:
    """Twice the bandwidth, and a network that is not oversubscribed."""
    kind, over = there.kind, there.setting.oversubscription
    if not kind.node.scales_out or there.nodes <= 1:
        return
    now = there.fabric_usd(kind, there.nodes, over)
    rate = kind.node.nic_bits_per_s * WIDER
    wide = replace(kind, node=kind.node.model_copy(update={"nic_bits_per_s": rate}))
    source = "switches and cables that such a network takes more; NICs and work are not counted"
    yield Upgrade(
        what=f"NICs of {rate / 1e9:.0f} Gb/s", train_time_s=there.time_with(kind=wide),
        price_usd=_more(now, there.fabric_usd(wide, there.nodes, over)), source=source,
    )  # fmt: skip
    full = _more(now, there.fabric_usd(kind, there.nodes, 1.0))
    if over > 1 and full != 0:  # a single switch is not oversubscribed
        yield Upgrade(
            what="a network that is not oversubscribed",
            train_time_s=there.time_with(setting=replace(there.setting, oversubscription=1.0)),
            price_usd=full, source=source,
        )  # fmt: skip


def _more(now: float | None, then: float | None) -> float | None:
    return None if now is None or then is None else max(then - now, 0.0)


def _storage(there: There) -> Iterator[Upgrade]:
    rate = there.setting.write_bytes_per_s
    if rate is not None:
        faster = replace(there.setting, write_bytes_per_s=WIDER * rate)
        yield Upgrade(
            what=f"storage that writes {WIDER * rate / 1e9:,.0f} GB/s", train_time_s=there.time_with(setting=faster),
            price_usd=None, source="",
        )  # fmt: skip


def _precision(there: There) -> Iterator[Upgrade]:
    training = there.setting.training
    if training.method == "qlora":
        return  # it computes with its 4-bit weights in bf16
    if training.precision == "bf16" and "fp8" in there.kind.accelerator.peak_flop_per_s:
        narrow = replace(there.setting, training=training.model_copy(update={"precision": "fp8"}))
        yield Upgrade(
            what="fp8 instead of bf16, if the training keeps its quality", train_time_s=there.time_with(setting=narrow),
            price_usd=0.0, source="",
        )  # fmt: skip


def _rent(there: There) -> Iterator[Upgrade]:
    """The cheapest rent of the same accelerator that is as quick."""
    limits = there.deal.workload.constraints
    quick = limits.model_copy(update={"deadline": min(there.time_s, limits.deadline or np.inf)})
    kinds = [kind for kind in market(there.deal).kinds if kind.accelerator.name == there.kind.accelerator.name]
    table = evaluate(there.setting, kinds, limits.max_accelerators or MAX_ACCELERATORS, there.pins)
    _, found = choose(table, quick, "cost")
    if found is not None:
        one = table.candidate(found)
        what = f"rent instead: {one.accelerators} {one.accelerator} ({one.seller})"
        yield Upgrade(
            what=what, train_time_s=one.estimate.train_time_s, price_usd=one.estimate.cost_usd, source=one.offer.source
        )
