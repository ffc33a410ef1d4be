"""The rest of a planned cluster as terms that explain themselves, for the tree of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.estimators.adequacy import ADEQUATE
from clusterwright.term import Kind, Term
from clusterwright.units import show_bytes

if TYPE_CHECKING:
    from clusterwright.facility import Facility, Failures, Network, Power, StorageNeed


def terms_of(facility: Facility) -> tuple[Term, ...]:
    """The facility as terms that explain themselves, for the tree of a plan."""
    found = [_networks_term(facility)] if facility.networks else []
    if facility.needs:
        found.append(_need_term(facility))
    if facility.storage:
        found.append(_storage_term(facility.storage))
    if facility.failures:
        found.append(_failures_term(facility.failures))
    return (*found, _power_term(facility.power))


def _networks_term(facility: Facility) -> Term:
    """What the networks cost to buy, each with its parts; one without any price is told by its switches."""
    parts = tuple(_network_term(network) for network in facility.networks)
    total = sum(network.capex_usd or 0.0 for network in facility.networks)
    return Term(
        name="networks", value=total, unit="USD", source="to buy; in the rent where nodes are rented", parts=parts
    )


def _network_term(network: Network) -> Term:
    """One network."""
    design = network.design
    lines = tuple(
        Term(
            name=f"{network.purpose} {line.part}", value=line.usd, unit="USD", source="number x price of one",
            parts=(
                Term(name="number", value=line.count, unit="1", source=f"{design.topology}, laws.fabric"),
                Term(name="price of one", value=line.usd_each or 0.0, unit="USD", source=line.source),
            ),
        )
        for line in network.parts if line.usd is not None
    )  # fmt: skip
    counts = f"switches {design.switches:,}, cables {design.cables:,}, optical modules {network.transceivers:,}"
    name = f"{network.purpose} network"
    if network.capex_usd is None:
        missing = f"no price was found: {', '.join(network.unpriced)}; {counts}"
        return Term(name=name, value=design.switches, unit="switches", source=missing)
    return Term(name=name, value=network.capex_usd, unit="USD", source=counts, parts=lines)


def _need_term(facility: Facility) -> Term:
    """The smallest adequate network of each kind, and the exposed communication on every one weighed."""
    parts = []
    for need in facility.needs:
        least = need.adequate
        weighed = tuple(
            Term(
                name=f"{c.fabric.value} {c.node_bits_per_s / 1e9:,.0f} Gb/s at {c.oversubscription:g}:1",
                value=c.exposed_communication_s, unit="s", source=f"exposed; {c.cost_share:.1%} of a step lost",
            )
            for c in facility.choices if c.fabric is need.fabric
        )  # fmt: skip
        if least is None:
            parts.append(Term(name=f"{need.fabric.value} weighed", value=len(weighed), unit="networks",
                              source="none of them is adequate", parts=weighed))  # fmt: skip
            continue
        parts.append(Term(name=f"{need.fabric.value} needed", value=least.node_bits_per_s / 1e9, unit="Gb/s",
                          source=f"at {least.oversubscription:g}:1", parts=weighed))  # fmt: skip
    first = next((p for p in parts if p.unit == "Gb/s"), None)
    return Term(name="network needed", value=first.value if first else 0.0, unit="Gb/s", parts=tuple(parts),
                source=f"of a node, so that at most {ADEQUATE:.0%} of a step is lost")  # fmt: skip


def _storage_term(need: StorageNeed) -> Term:
    """Bandwidth, capacity and what each way of saving does."""
    ways = tuple(
        Term(name=f"{way.mode} save", value=way.stall_s, unit="s",
             source=f"{way.stall_share:.2%} of the time, goodput {way.goodput:.2%}")
        for way in need.ways
    )  # fmt: skip
    kept = f"{need.checkpoints_kept} checkpoints of {show_bytes(need.checkpoint_bytes)} and the data set"
    parts = (
        Term(name="write in the background", value=need.async_write_bytes_per_s, unit="B/s",
             source="a checkpoint in each interval"),
        Term(name="read for the job", value=need.read_bytes_per_s, unit="B/s", source="tokens a second, as text"),
        Term(name="storage capacity", value=need.capacity_bytes, unit="B", source=kept),
        Term(name="storage room", value=need.room_bytes, unit="B", source="capacity and a quarter to spare"),
        Term(name="storage rent", value=need.usd_per_month, unit="USD/month", source="price of a byte and month"),
        Term(name="storage capex", value=need.capex_usd, unit="USD", source="price of a byte, bought"),
        *ways,
    )  # fmt: skip
    return Term(name="storage bandwidth", value=need.sync_write_bytes_per_s, unit="B/s", parts=parts,
                source="for synchronous saves under 1% of the time")  # fmt: skip


def _failures_term(failures: Failures) -> Term:
    """Interruptions, intervals, and what would help."""
    low, high = failures.goodput_interval
    intervals = (("Young", failures.interval_young_s), ("Daly", failures.interval_daly_s),
                 ("exact", failures.interval_exact_s))  # fmt: skip
    parts = (
        Term(name="spares", value=failures.spares, unit="1", source="nodes under repair are Poisson"),
        *(Term(name=f"interval by {name}", value=value, unit="s", source="laws.reliability")
          for name, value in intervals),
        Term(name="goodput simulated", value=(low + high) / 2, unit="1", kind=Kind.ESTIMATED,
             source=f"simulation.failures, 99%: {low:.4f} to {high:.4f}"),
        *(Term(name=f"goodput as at {e.cluster}", value=e.goodput, unit="1",
               source=f"a failure in {e.mtbf_s / 3600:,.0f} accelerator-hours")
          for e in failures.elsewhere),
        *(Term(name=f"worth of: {i.change}", value=i.saves_usd, unit="USD", source=f"goodput {i.goodput:.4f}")
          for i in failures.improvements),
        *(Term(name="worth of the spares", value=w.saves_usd, unit="USD",
               source=f"against waiting for each repair, goodput {w.goodput_without:.4f}; they cost ${w.cost_usd:,.0f}")
          for w in (failures.spares_worth,) if w),
        *(Term(name="one slow accelerator", value=s.lost_usd or 0.0, unit="USD",
               source=f"at {s.slowest:.0%} of the others' speed, as one was measured; at most")
          for s in (failures.straggler,) if s),
        *(Term(name=f"cause: {name}", value=share, unit="1", source="share of failures, as counted")
          for name, share in failures.causes),
    )  # fmt: skip
    return Term(name="interruptions in the run", value=failures.in_run, unit="1", parts=parts,
                source="train time over the MTBF of the job")  # fmt: skip


def _power_term(power: Power) -> Term:
    """Power of the site with its parts, racks and energy."""
    racks = tuple(
        Term(name=f"racks of {r.rack_power_w / 1e3:g} kW", value=r.racks or 0, unit="1",
             source=f"nodes in each: {r.nodes_a_rack}" if r.racks else "a rack does not carry one node")
        for r in power.racks
    )  # fmt: skip
    limit = () if power.limit_w is None else (
        Term(name="power limit", value=power.limit_w, unit="W", source="[constraints] power, of the computers"),
    )  # fmt: skip
    parts = (
        Term(name="power of the computers", value=power.it_power_w, unit="W", source="nodes and networks, at most"),
        Term(name="cooling", value=power.cooling_power_w, unit="W", source=f"PUE {power.pue:g}"),
        *limit,
        *racks,
        Term(name="energy of the run", value=power.energy_j / 3.6e9, unit="MWh", source="site power x train time"),
        Term(name="energy cost", value=power.energy_usd, unit="USD", source="at the price of a kWh"),
    )
    return Term(name="site power", value=power.site_power_w, unit="W", source="laws.power.site_power", parts=parts)
