"""The one door: a workload and what can be had give a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clusterwright.errors import InputError
from clusterwright.estimators import expectation
from clusterwright.estimators.adequacy import weigh_networks
from clusterwright.estimators.cost import explain_rent, usual_power_ratio
from clusterwright.estimators.facility import with_facility
from clusterwright.estimators.goodput import Reclaims, estimate_goodput, explain_goodput
from clusterwright.plan import Plan
from clusterwright.search import bill, words
from clusterwright.search.candidate import Setting
from clusterwright.search.choice import choose
from clusterwright.search.misses import misses
from clusterwright.search.networks import unknown_networks
from clusterwright.search.offers import Deal, market, own_cluster, too_old
from clusterwright.search.propose import MAX_ACCELERATORS
from clusterwright.search.robustness import robustness
from clusterwright.search.table import evaluate
from clusterwright.search.upgrades import upgrades
from clusterwright.term import Term
from clusterwright.units import parse_count, show_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from clusterwright.catalog import Catalogue, Source
    from clusterwright.estimators.cost import Quote
    from clusterwright.facility import FacilityFigures
    from clusterwright.hardware import FabricParts, FailureRates
    from clusterwright.measurement import Calibration
    from clusterwright.model import Model
    from clusterwright.plan import Candidate
    from clusterwright.search.offers import Kind, Market
    from clusterwright.search.table import Row, Table
    from clusterwright.workload import Training, Workload

LONGEST_SEQUENCE = 2**27
MOST_TOKENS = 1e18
NARROW = ("fp8", "mxfp8", "nvfp4")
"""Formats of eight bits and fewer."""
BATCH_SLACK = 0.05
"""Share by which a global batch given in tokens may differ from what is asked. [1]"""
FRONT = 20
"""Points of the front that a plan keeps."""


@dataclass(frozen=True)
class Known:
    """Everything a search takes from the catalogue."""

    catalogue: Catalogue
    parts: FabricParts
    rates: FailureRates
    site: FacilityFigures | None = None
    """With them a plan says what the rest of its cluster needs."""


@dataclass(frozen=True)
class Wish:
    """What is asked, besides the workload's own text."""

    workload: Workload
    model: Model
    document: Mapping[str, Any]
    today: date
    pins: Mapping[str, int | str] = field(default_factory=dict)
    top: int = FRONT
    calibration: Calibration | None = None


def design(wish: Wish, known: Known, progress: Callable[[float], None] | None = None) -> Plan:
    """Search every cluster and layout, and choose one.

    Args:
        wish: The workload and its model.
        known: The catalogue.
        progress: Told the share that is done.

    Returns:
        A plan; its ``chosen`` is none where nothing satisfies the constraints, and ``rejected`` says why.

    Raises:
        InputError: something asked is unknown or cannot be.
    """
    training = trainable(wish.workload)
    setting = setting_of(wish, training, known)
    offered = offered_by(wish, setting, known)
    limit = largest(wish.workload)
    table = evaluate(setting, offered.kinds, limit, wish.pins, progress)
    if offered.kinds and not table.counts["legal"] and wish.pins:
        why = max(table.refused, key=lambda k: table.refused[k], default="nothing was tried")
        pins = ", ".join(f"{k}={v}" for k, v in wish.pins.items())
        raise InputError(f"--pin {pins}: no layout is legal: {why}")
    constraints = wish.workload.constraints
    quotes = [quote for kind in offered.kinds for quote in kind.quotes]
    front, chosen = choose(table, constraints, wish.workload.prefer.objective)
    plan = Plan(
        workload=dict(wish.document),
        site=wish.workload.site.model_dump(mode="json", exclude_unset=True),
        model=wish.model,
        chosen=None,
        front=tuple(table.candidate(i) for i in front[: wish.top]),
        rejected=(
            *misses(table, wish.workload, chosen, offered, _relaxed(wish, setting, offered)),
            *unknown_networks(table, offered, wish.workload, chosen, wish.pins),
            *too_old(offered, wish.today),
        ),
        exclusions=_exclusions(table, offered),
        candidates=table.counts["candidates"],
        assumptions=words.assumptions(setting, wish.workload, bill.assumptions(deal_of(wish, setting, known), quotes)),
        sources=(),
        catalogue_date=known.catalogue.date,
    )  # fmt: skip
    if chosen is None:
        return plan
    return _with_choice(plan, table, chosen, wish, known)


def _exclusions(table: Table, offered: Market) -> dict[str, int]:
    """What was left out, by reason; layouts first, then offers."""
    found = {**table.refused, "out of memory": table.counts["out of memory"]}
    found |= {f"offers: {key} not asked for": count for key, count in offered.left_out.items()}
    found[f"offers: price older than {show_duration(offered.stale_s)}"] = len(offered.stale)
    return {why: count for why, count in found.items() if count}


def trainable(workload: Workload) -> Training:
    """The training section, where the tool can plan it.

    Raises:
        InputError: serving, or a figure beyond all sense; names the key.
    """
    training = workload.training
    if training is None:
        raise InputError("[serving] is not planned yet; write a [training] section")
    if training.method == "qlora" and training.precision in NARROW:
        raise InputError(
            f"[training] precision {training.precision}: qlora computes with its 4-bit weights in bf16; write bf16"
        )
    if training.sequence_length > LONGEST_SEQUENCE:
        raise InputError(
            f"[training] sequence_length: {training.sequence_length:,} tokens are more than {LONGEST_SEQUENCE:,}"
        )
    if training.tokens > MOST_TOKENS:
        raise InputError(f"[training] tokens: {training.tokens:g} are more than {MOST_TOKENS:g}")
    return training.model_copy(update={"global_batch": whole_batch(training)})


def whole_batch(training: Training) -> int:
    """The global batch in sequences; one given in tokens may move by 5% to a number that many degrees divide.

    "4M tokens" of 8,192 are 488.3 sequences; 512 (which people also call 4M) split over any power of two, 488 do not.
    """
    asked, in_tokens = parse_count(training.global_batch, where="global_batch")
    if not in_tokens or asked < training.sequence_length:
        return training.batch_sequences
    exact = asked / training.sequence_length
    low, high = math.ceil(exact * (1 - BATCH_SLACK)), math.floor(exact * (1 + BATCH_SLACK))
    step = 1
    while -(-low // (2 * step)) * 2 * step <= high:
        step *= 2
    near = max(1, round(exact / step)) * step
    return near if low <= near <= high else training.batch_sequences


def deal_of(wish: Wish, setting: Setting, known: Known) -> Deal:
    """What makes the catalogue's offers quotes for this job."""
    return Deal(wish.workload, known.catalogue, wish.today, setting)


def offered_by(wish: Wish, setting: Setting, known: Known) -> Market:
    """What may be used: the cluster that is there, or the catalogue's offers."""
    workload = wish.workload
    wanted = workload.constraints.accelerators
    if workload.cluster is not None:
        found = own_cluster(workload.cluster, known.catalogue)
        there = found.kinds[0].accelerator.name
        if wanted is not None and there not in wanted:
            raise InputError(
                f"[cluster] node {workload.cluster.node} has {there}, but [constraints] accelerators are "
                f"{', '.join(wanted)}: leave one of the two out"
            )
        return found
    return market(deal_of(wish, setting, known))


def largest(workload: Workload) -> int:
    """Most accelerators that the search tries."""
    return workload.constraints.max_accelerators or MAX_ACCELERATORS


def setting_of(wish: Wish, training: Training, known: Known) -> Setting:
    """What is the same for every candidate."""
    cluster = wish.workload.cluster
    nodes = known.catalogue.nodes.values()
    return Setting(
        model=wish.model, training=training, rates=known.rates, parts=known.parts,
        power_ratio=usual_power_ratio((n, known.catalogue.accelerator(n.accelerator)) for n in nodes),
        year=wish.today.year + (wish.today.month - 1) / 12, calibration=wish.calibration,
        oversubscription=cluster.oversubscription if cluster else 1.0,
        write_bytes_per_s=cluster.storage_write if cluster else None,
    )  # fmt: skip


def _relaxed(wish: Wish, setting: Setting, offered: Market) -> Callable[[], Table | None]:
    """The same search without the limit of accelerators, when it is asked for."""

    def run() -> Table | None:
        if (wish.workload.constraints.max_accelerators or MAX_ACCELERATORS) >= MAX_ACCELERATORS:
            return None
        return evaluate(setting, offered.kinds, MAX_ACCELERATORS, wish.pins)

    return run


def _with_choice(plan: Plan, table: Table, index: int, wish: Wish, known: Known) -> Plan:
    row, chosen, setting = table.rows[index], table.candidate(index), table.setting_of(index)
    found = plan.model_copy(update={
        "chosen": chosen,
        "workload": _settled(plan.workload, table.setting, row),
        "hardware_node": row.kind.node,
        "hardware_accelerator": row.kind.accelerator,
        "terms": tree(setting, row.kind, row.quote, chosen),
        "collectives": expectation.collectives(
            **_named(setting, row.kind), layout=chosen.layout, **_options(setting, row.kind)
        ),
        "reasons": words.reasons(table, index, plan, wish.workload, wish.pins),
        "robustness": robustness(table, index, wish.workload),
        "upgrades": (
            upgrades(table, index, deal_of(wish, table.setting, known), wish.pins) if wish.workload.cluster else ()
        ),
        "warnings": (
            *words.warnings(table, index, wish.today, wish.workload),
            *bill.cautions(
                chosen, row.quote, row.kind.node.accelerators, table.setting, deal_of(wish, table.setting, known)
            ),
        ),
        "sources": sources(table.setting, row, known.catalogue.sources),
    })  # fmt: skip
    if known.site is None:
        return found
    rates = table.setting.rates_of(row.quote, row.kind.node.accelerators)
    choices = weigh_networks(setting.job(row.kind), chosen.layout, wish.calibration)
    return with_facility(found, known.site, known.parts, rates, choices)


def _settled(document: Mapping[str, Any], setting: Setting, row: Row) -> dict[str, Any]:
    """The workload with the framework and the precision that were chosen where they were left open."""
    opened = {key: value for key, value in vars(row.software).items() if getattr(setting.training, key) == "any"}
    return {**document, "training": {**document["training"], **opened}}


def _named(setting: Setting, kind: Kind) -> dict[str, Any]:
    return {"model": setting.model, "accelerator": kind.accelerator, "node": kind.node}


def _options(setting: Setting, kind: Kind) -> dict[str, Any]:
    job = setting.job(kind)
    return {k: v for k, v in vars(job).items() if k not in {"model", "accelerator", "node"}}


def tree(setting: Setting, kind: Kind, quote: Quote, chosen: Candidate) -> Term:
    """Every number of a candidate as a tree: time, money and memory with all that they are made of."""
    found = expectation.terms(
        **_named(setting, kind), layout=chosen.layout, calibration=setting.calibration, **_options(setting, kind)
    )
    step, *memory = found.parts
    rates = setting.rates_of(quote, kind.node.accelerators)
    found_useful = estimate_goodput(
        chosen.nodes * kind.node.accelerators, chosen.storage.checkpoint_bytes, chosen.storage.write_bytes_per_s, rates
    )
    taken = Reclaims(quote.node_mtbi_s / chosen.nodes, quote.reclaim_source)
    goodput = explain_goodput(found_useful, rates, taken if quote.reclaim_source else None)
    steps = Term(name="steps", value=float(setting.training.steps), unit="1", source="tokens over tokens of a batch")
    time = Term(
        name="train time", value=chosen.estimate.train_time_s, unit="s", source="steps x step time / goodput",
        parts=(steps, step, goodput),
    )  # fmt: skip
    cost = explain_rent(chosen.nodes, chosen.spares, quote, chosen.estimate.train_time_s)
    return Term(
        name="plan", value=chosen.estimate.cost_usd, unit="USD", source="what the run costs",
        parts=(time, cost, *memory),
    )  # fmt: skip


def sources(setting: Setting, row: Row, known: Mapping[str, Source]) -> tuple[str, ...]:
    """Where the figures behind a candidate come from, each once; keys of the catalogue in full."""
    keys = [
        row.quote.source, *row.quote.more_sources, *row.kind.node.sources, *row.kind.accelerator.sources,
        *setting.model.sources, *setting.rates.sources, *setting.parts.sources,
    ]  # fmt: skip
    found = [f"{s.title}: {s.url} (seen {s.seen})" if (s := known.get(key)) else key for key in keys]
    return tuple(dict.fromkeys(s for s in found if s))
