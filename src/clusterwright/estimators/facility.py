"""The rest of a planned cluster: networks, network adequacy, storage, failures, power; as values and as terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.estimators import adequacy
from clusterwright.estimators.facility_terms import terms_of
from clusterwright.estimators.goodput import SaveMode, estimate_goodput
from clusterwright.estimators.networks import all_networks, compute_network, rails_of
from clusterwright.estimators.site import estimate_site
from clusterwright.estimators.storage import CHECKPOINTS_KEPT, require_storage, token_bytes
from clusterwright.estimators.worth import cost_of_straggler, goodput_elsewhere, what_would_help, worth_of_spares
from clusterwright.facility import Facility, Failures, SaveWay
from clusterwright.simulation.failures import simulate_goodput
from clusterwright.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.estimators.goodput import GoodputEstimate
    from clusterwright.facility import FacilityFigures, Network, NetworkChoice, NetworkNeed, Power, StorageNeed
    from clusterwright.hardware import FabricParts, FailureRates, Node
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
        if nodes <= 1:
            choices = ()  # nothing leaves the node
        elif choices is None:
            choices = adequacy.weigh_networks_of_plan(plan)
        needs = adequacy.needs_of(choices, chosen.estimate.cost_usd, chosen.estimate.step_time_s)
    ratio = workload.cluster.oversubscription if workload.cluster else 1.0
    compute = compute_network(node, nodes, ratio, parts)
    networks = tuple(all_networks(compute, nodes, chosen.storage.write_bytes_per_s, figures, parts))
    return Facility(
        networks=networks,
        rails=rails_of(node, compute.design) if compute else (),
        choices=choices or (),
        own=adequacy.choice_of(choices or (), node, ratio),
        needs=needs,
        storage=storage,
        failures=failures,
        power=_power(chosen, node, networks, figures, workload.constraints.power),
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
        spares_worth=worth_of_spares(
            chosen.nodes,
            chosen.spares,
            float(found.goodput),
            float(found.mtbf_s),
            rates,
            cost_usd=chosen.estimate.cost_usd,
        ),
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


def _power(
    chosen: Candidate, node: Node, networks: Iterable[Network], figures: FacilityFigures, limit_w: float | None
) -> Power:
    """Of nodes and networks, by rack, against the limit."""
    nodes = chosen.nodes + chosen.spares
    of_nodes = chosen.estimate.power_w - (chosen.fabric.power_w or 0.0)
    whole = of_nodes + sum(n.design.power_w or 0.0 for n in networks)
    together = max(node.scale_up_domain // node.accelerators, 1)
    return estimate_site(
        nodes, of_nodes / nodes, whole, chosen.estimate.train_time_s, figures, together=together, limit_w=limit_w
    )


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
    if facility.networks and facility.network("storage") is None:
        found.append("storage network: more nodes than two tiers hold; it is in neither the networks nor the power")
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
