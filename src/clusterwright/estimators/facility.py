"""The rest of a planned cluster: networks, network adequacy, storage, failures, power; as values and as terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.estimators import adequacy
from clusterwright.estimators.goodput import SaveMode, estimate_goodput
from clusterwright.estimators.networks import all_networks, compute_network, rails_of
from clusterwright.estimators.site import estimate_site
from clusterwright.estimators.storage import CHECKPOINTS_KEPT, require_storage, token_bytes
from clusterwright.estimators.worth import cost_of_straggler, goodput_elsewhere, what_would_help
from clusterwright.facility import Facility, Failures, SaveWay
from clusterwright.simulation.failures import simulate_goodput
from clusterwright.term import Kind, Term
from clusterwright.units import show_bytes
from clusterwright.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.estimators.goodput import GoodputEstimate
    from clusterwright.facility import FacilityFigures, Network, NetworkChoice, NetworkNeed, Power, StorageNeed
    from clusterwright.hardware import FabricParts, FailureRates
    from clusterwright.plan import Candidate, Plan

MOST_CAUSES = 5
"""Causes of interruptions that a plan names. [1]"""
HISTORIES = 100
"""Of the simulation behind the interval of a plan's goodput. [1]"""


def with_facility(
    plan: Plan,
    figures: FacilityFigures,
    parts: FabricParts,
    rates: FailureRates,
    choices: tuple[NetworkChoice, ...] | None = None,
) -> Plan:
    """The plan with the rest of its cluster, the terms and sources of that, and what it warns of.

    Args:
        plan: With a choice; one without is returned as it is.
        figures: Of the site, storage and management.
        parts: Switches, prices and power.
        rates: How often things fail.
        choices: Networks weighed for the very job that was planned; none: weighed for the job that the plan tells.
    """
    chosen = plan.chosen
    if chosen is None or plan.hardware_node is None:
        return plan
    found = facility_of(plan, chosen, figures, parts, rates, choices)
    terms = plan.terms and plan.terms.model_copy(update={"parts": (*plan.terms.parts, *terms_of(found))})
    sources = tuple(dict.fromkeys((*plan.sources, *figures.sources, *_storage_sources(found))))
    return plan.model_copy(
        update={
            "facility": found,
            "terms": terms,
            "sources": sources,
            "warnings": (*plan.warnings, *warnings_of(found)),
        }
    )


def facility_of(
    plan: Plan,
    chosen: Candidate,
    figures: FacilityFigures,
    parts: FabricParts,
    rates: FailureRates,
    choices: tuple[NetworkChoice, ...] | None = None,
) -> Facility:
    """Everything of the cluster besides its nodes.

    Args:
        plan: Workload, model and hardware.
        chosen: What is built.
        figures: Of the site, storage and management.
        parts: Switches, prices and power.
        rates: How often things fail.
        choices: Networks weighed for the job, where they were.
    """
    node, workload = plan.hardware_node, Workload.model_validate(plan.workload)
    assert node is not None  # noqa: S101 - asked with a choice
    nodes = chosen.nodes + chosen.spares
    failures = storage = None
    needs: tuple[NetworkNeed, ...] = ()
    if workload.training is not None:
        failures = failures_of(chosen, node.accelerators, figures, rates)
        storage = _storage(plan, chosen, workload, failures, figures, rates)
        choices = adequacy.weigh_networks_of_plan(plan) if choices is None else choices
        needs = adequacy.needs_of(choices, chosen.estimate.cost_usd, chosen.estimate.step_time_s)
    ratio = workload.cluster.oversubscription if workload.cluster else 1.0
    compute = compute_network(node, nodes, ratio, parts)
    networks = tuple(all_networks(compute, nodes, chosen.storage.write_bytes_per_s, figures, parts))
    return Facility(
        networks=networks,
        rails=rails_of(node, compute.design) if compute else (),
        choices=choices or (),
        needs=needs,
        storage=storage,
        failures=failures,
        power=_power(chosen, networks, figures, workload.constraints.power),
    )


def failures_of(chosen: Candidate, accelerators_a_node: int, figures: FacilityFigures, rates: FailureRates) -> Failures:
    """How often the run stops, what that costs, and what would help.

    Args:
        chosen: The candidate.
        accelerators_a_node: [1]
        figures: Causes of failures.
        rates: How often things fail.
    """
    store, count = chosen.storage, chosen.nodes * accelerators_a_node
    found = estimate_goodput(count, store.checkpoint_bytes, store.write_bytes_per_s, rates)
    whole = sum(times for _, times in figures.causes)
    worth = what_would_help(
        count, store.checkpoint_bytes, store.write_bytes_per_s, rates, cost_usd=chosen.estimate.cost_usd
    )
    return Failures(
        mtbf_s=float(found.mtbf_s),
        per_day=float(found.failures_per_day),
        in_run=chosen.estimate.train_time_s / float(found.mtbf_s),
        causes=tuple((name, times / whole) for name, times in figures.causes[:MOST_CAUSES]),
        reclaim_share=rates.reclaim_share,
        spares=chosen.spares,
        interval_young_s=float(found.interval_young_s),
        interval_daly_s=float(found.interval_daly_s),
        interval_exact_s=float(found.interval_exact_s),
        goodput=float(found.goodput),
        goodput_interval=_simulated(found, rates),
        elsewhere=goodput_elsewhere(
            count, store.checkpoint_bytes, store.write_bytes_per_s, rates, figures.other_mtbf_s
        ),
        stall_share=float(found.stall_share),
        restart_share=float(found.restart_share),
        rework_share=float(found.rework_share),
        straggler=cost_of_straggler(count, cost_usd=chosen.estimate.cost_usd),
        improvements=worth,
    )


def _simulated(found: GoodputEstimate, rates: FailureRates) -> tuple[float, float]:
    """The interval of a simulation of the same system."""
    return simulate_goodput(
        float(found.checkpoint_interval_s), float(found.checkpoint_stall_s), rates.detection_s + rates.restart_s,
        float(found.checkpoint_lag_s), float(found.mtbf_s), replicas=HISTORIES,
    ).interval  # fmt: skip


def _storage(
    plan: Plan, chosen: Candidate, workload: Workload, failures: Failures, figures: FacilityFigures, rates: FailureRates
) -> StorageNeed:
    """What the run writes, reads and keeps."""
    store, width, use = chosen.storage, token_bytes(plan.model.vocab), workload.storage
    tokens = workload.training.tokens if workload.training else 0.0
    ways = []
    for mode in SaveMode:
        found = estimate_goodput(chosen.accelerators, store.checkpoint_bytes, store.write_bytes_per_s, rates, mode=mode)
        ways.append(SaveWay(
            mode=mode.value, stall_s=float(found.checkpoint_stall_s), interval_s=float(found.checkpoint_interval_s),
            stall_share=float(found.stall_share), goodput=float(found.goodput),
        ))  # fmt: skip
    return require_storage(
        store.checkpoint_bytes, failures.mtbf_s, store.checkpoint_interval_s, figures,
        checkpoints_kept=use.checkpoints_kept or CHECKPOINTS_KEPT,
        data_bytes=tokens * width if use.data is None else use.data, ways=tuple(ways),
        read_bytes_per_s=chosen.estimate.tokens_per_s * width,
    )  # fmt: skip


def _power(chosen: Candidate, networks: Iterable[Network], figures: FacilityFigures, limit_w: float | None) -> Power:
    """Of nodes and networks, by rack, against the limit."""
    nodes = chosen.nodes + chosen.spares
    of_nodes = chosen.estimate.power_w - (chosen.fabric.power_w or 0.0)
    whole = of_nodes + sum(n.design.power_w or 0.0 for n in networks)
    return estimate_site(nodes, of_nodes / nodes, whole, chosen.estimate.train_time_s, figures, limit_w=limit_w)


def warnings_of(facility: Facility) -> tuple[str, ...]:
    """What to beware of in the rest of the cluster."""
    power, found = facility.power, []
    limit = (power.limit_w or 0.0) / 1e3
    if not power.within_limit:
        found.append(
            f"power: with the storage network the computers draw {power.it_power_w / 1e3:,.0f} kW at most; "
            f"[constraints] power is {limit:,.0f} kW"
        )
    elif not power.within_limit_with_cooling:
        found.append(
            f"power: {limit:,.0f} kW are enough for the computers; with cooling at PUE {power.pue:g} the site draws "
            f"{power.site_power_w / 1e3:,.0f} kW"
        )
    storage = facility.storage
    if storage is not None and not storage.deliverers:
        found.append(
            f"storage: no system was measured to write {storage.sync_write_bytes_per_s / 1e9:,.1f} GB/s, which "
            "synchronous saves would need; save asynchronously"
        )
    return tuple(found)


def _storage_sources(facility: Facility) -> tuple[str, ...]:
    """Of the first that delivers; the others are in the catalogue."""
    return tuple(s.source for s in facility.storage.deliverers[:1]) if facility.storage else ()


def terms_of(facility: Facility) -> tuple[Term, ...]:
    """The facility as terms that explain themselves, for the tree of a plan."""
    found = [_networks_term(facility)]
    if facility.needs:
        found.append(_need_term(facility))
    if facility.storage:
        found.append(_storage_term(facility.storage))
    if facility.failures:
        found.append(_failures_term(facility.failures))
    return (*found, _power_term(facility.power))


def _networks_term(facility: Facility) -> Term:
    """What the networks cost to buy, each with its parts."""
    parts = []
    for network in facility.networks:
        lines = tuple(
            Term(
                name=f"{network.purpose} {line.part}", value=line.usd, unit="USD", source=line.source,
                parts=(
                    Term(name="number", value=line.count, unit="1", source=f"{network.design.topology}, laws.fabric"),
                    Term(name="price of one", value=line.usd_each or 0.0, unit="USD", source=line.source),
                ),
            )
            for line in network.parts if line.usd is not None
        )  # fmt: skip
        open_ = f"; without a price: {', '.join(network.unpriced)}" if network.unpriced else ""
        counts = (
            f"{network.design.switches:,} switches, {network.design.cables:,} cables, {network.transceivers:,} optics"
        )
        parts.append(
            Term(name=f"{network.purpose} network", value=network.capex_usd or 0.0, unit="USD", source=counts + open_,
                 parts=lines)
        )  # fmt: skip
    total = sum(part.value for part in parts)
    return Term(name="networks", value=total, unit="USD", source="to buy; in the rent where nodes are rented",
                parts=tuple(parts))  # fmt: skip


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
        value = least.node_bits_per_s / 1e9 if least else 0.0
        said = f"at {least.oversubscription:g}:1" if least else "none of those weighed is adequate"
        parts.append(Term(name=f"{need.fabric.value} needed", value=value, unit="Gb/s", source=said, parts=weighed))
    first = next((p for p in parts if p.value), parts[0])
    return Term(name="network needed", value=first.value, unit="Gb/s", parts=tuple(parts),
                source=f"of a node, so that at most {adequacy.ADEQUATE:.0%} of a step is lost")  # fmt: skip


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
