"""``clusterwright goodput``: failures, checkpoints and useful time of a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterwright.cli.fabric import NOT_NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from clusterwright.estimators.goodput import GoodputEstimate
    from clusterwright.facility import Failures, Mixture
    from clusterwright.hardware import FailureRates

MODES = ("async", "sync", "memory")
SHOWN = 5
"""Causes and storage systems that are printed; the JSON document holds all."""
A_NODE = 8
"""Accelerators of a node, where the price of spares is told and no plan says. [1]"""
MOST_MIXED = 10_000_000
"""Accelerators of one kind. [1]"""
PARAMETERS = 70.6e9
"""Of the model whose checkpoint is taken where none is given: the size that people know best."""


@click.command("goodput")
@click.option("--accelerators", type=click.IntRange(min=1, max=10_000_000), help="Accelerators of the job.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path),
              help="Take accelerators, checkpoint and storage from this plan.")  # fmt: skip
@click.option("--checkpoint-bytes", type=POSITIVE, help="Of one checkpoint [default: that of 70B parameters].")
@click.option("--parameters", type=POSITIVE, help="Of the model, where its checkpoint's bytes are not given.")
@click.option("--checkpoint-format", type=click.Choice(["full", "weights-fp32", "weights-bf16"]), default="full",
              show_default=True, help="What a checkpoint of those parameters holds.")  # fmt: skip
@click.option("--samples-per-s", type=POSITIVE, help="That the job reads: images, clips, tokens.")
@click.option("--sample-bytes", type=POSITIVE, help="Of one of them on disk.")
@click.option("--write-bytes-per-s", type=POSITIVE, help="Of the storage [default: 57.5 GB/s, GPFS at Jean Zay].")
@click.option("--mtbf-hours-per-accelerator", type=POSITIVE, help="Accelerator-hours an interruption.")
@click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True, help="What the job waits for.")
@click.option("--interval-s", type=POSITIVE, help="Work between saves [default: the optimum].")
@click.option("--detection-s", type=NOT_NEGATIVE, help="From a failure until it is known.")
@click.option("--restart-s", type=NOT_NEGATIVE, help="From then until the job runs.")
@click.option("--repair-hours", type=POSITIVE, help="Until a node that was taken out is back.")
@click.option("--usd-per-accelerator-hour", type=POSITIVE, help="Also say what each improvement is worth.")
@click.option("--slowest", type=click.FloatRange(min=0, max=1, min_open=True),
              help="Speed of one slow accelerator over that of the others [default: as one was measured].")  # fmt: skip
@click.option("--mix", "mixed", multiple=True, metavar="ACCELERATOR=COUNT",
              help="Kinds that run one job together: what mixing costs; repeatable.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Of the Monte Carlo.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(  # noqa: PLR0917 - one argument an option
    accelerators: int | None,
    plan_file: Path | None,
    checkpoint_bytes: float | None,
    parameters: float | None,
    checkpoint_format: str,
    samples_per_s: float | None,
    sample_bytes: float | None,
    write_bytes_per_s: float | None,
    mtbf_hours_per_accelerator: float | None,
    mode: str,
    interval_s: float | None,
    detection_s: float | None,
    restart_s: float | None,
    repair_hours: float | None,
    usd_per_accelerator_hour: float | None,
    slowest: float | None,
    mixed: tuple[str, ...],
    seed: int | None,
    style: str,
) -> None:
    """Say how often a job stops, how often to save, and how much of its time is useful."""
    from clusterwright import api
    from clusterwright.catalog.cluster_parts import load_other_rates
    from clusterwright.estimators.storage import CHECKPOINT_FORMATS
    from clusterwright.estimators.storage import checkpoint_bytes as bytes_of
    from clusterwright.estimators.worth import goodput_elsewhere, what_would_help
    from clusterwright.units import HOUR

    given = {
        "mtbf_s": mtbf_hours_per_accelerator and mtbf_hours_per_accelerator * HOUR,
        "detection_s": detection_s,
        "restart_s": restart_s,
        "repair_s": repair_hours and repair_hours * HOUR,
    }
    rates = api.failure_rates(**{key: value for key, value in given.items() if value is not None})
    a_node = A_NODE
    if plan_file is not None:
        from clusterwright.plan import read_plan, require_chosen

        plan = read_plan(plan_file)
        chosen = require_chosen(plan, plan_file)
        accelerators, a_node = accelerators or chosen.accelerators, chosen.accelerators // chosen.nodes
        checkpoint_bytes = checkpoint_bytes or chosen.storage.checkpoint_bytes
        write_bytes_per_s = write_bytes_per_s or chosen.storage.write_bytes_per_s
        usd_per_accelerator_hour = usd_per_accelerator_hour or chosen.offer.usd_per_accelerator_hour or None
        failures = plan.facility and plan.facility.failures
        if failures and mtbf_hours_per_accelerator is None:
            rates = rates_of_plan(rates, failures, chosen.accelerators)
    counts = _counts(mixed)
    if accelerators is None and counts:
        accelerators = sum(counts.values())
    if accelerators is None:
        raise click.MissingParameter(param_hint="'--accelerators'", param_type="option")
    saved = float(bytes_of(parameters or PARAMETERS, CHECKPOINT_FORMATS[checkpoint_format]))
    size = checkpoint_bytes if checkpoint_bytes is not None else saved
    read = _read_rate(samples_per_s, sample_bytes)
    write = write_bytes_per_s if write_bytes_per_s is not None else default_write_rate()
    estimate = api.goodput(
        accelerators, checkpoint_bytes=size, write_bytes_per_s=write, mode=mode, interval_s=interval_s, rates=rates
    )
    document: dict[str, Any] = _document(estimate, rates, size, write, seed)
    document["accelerators"], document["mode"] = accelerators, mode
    document["storage"] = _storage(estimate, size, read)
    document["causes"] = _causes(float(estimate.failures_per_day) * (1.0 - rates.reclaim_share))
    document["elsewhere"] = [
        e.model_dump(mode="json")
        for e in goodput_elsewhere(accelerators, size, write, rates, load_other_rates(), mode=mode)
    ]
    document["warnings"] = _warnings(estimate, rates, interval_s, repair_hours)
    a_day = None if usd_per_accelerator_hour is None else accelerators * 24.0 * usd_per_accelerator_hour
    document["straggler"] = _straggler(accelerators, slowest, a_day)
    if counts:
        mixture = api.mix(counts, usd_per_accelerator_hour=usd_per_accelerator_hour)
        document["mix"] = mixture.model_dump(mode="json")
        document["warnings"] = [*_mix_warnings(mixture), *_warnings(estimate, rates, interval_s, repair_hours)]
    if a_day is not None:
        document["spares_worth"] = _spares_worth(estimate, rates, -(-accelerators // a_node), a_day)
        document["worth"] = [
            {"change": i.change, "goodput": i.goodput, "usd_per_day": i.saves_usd}
            for i in what_would_help(accelerators, size, write, rates, cost_usd=a_day, mode=mode)
        ]
    print(json.dumps(document, allow_nan=False) if style == "json" else _text(document))


def rates_of_plan(rates: FailureRates, failures: Failures, accelerators: int) -> FailureRates:
    """The rates with what the plan counts besides failures: spot nodes that the provider takes back."""
    return rates.model_copy(update={
        "mtbf_s": failures.mtbf_s * accelerators,
        "hardware_share": rates.hardware_share * (1.0 - failures.reclaim_share),
        "reclaim_share": failures.reclaim_share,
    })  # fmt: skip


def default_write_rate() -> float:
    """The measured write rate that is taken where none is given: one real checkpoint of one real run [B/s]."""
    from clusterwright.catalog.cluster_parts import load_storage_systems

    return next(
        s.write_bytes_per_s for s in load_storage_systems() if s.name.startswith("GPFS") and s.write_bytes_per_s
    )


def _document(
    estimate: GoodputEstimate, rates: FailureRates, size: float, write: float, seed: int | None
) -> dict[str, object]:
    from clusterwright.estimators.goodput import explain_goodput
    from clusterwright.simulation.failures import SEED, simulate_goodput

    seed = SEED if seed is None else seed
    simulated = simulate_goodput(
        float(estimate.checkpoint_interval_s),
        float(estimate.checkpoint_stall_s),
        rates.detection_s + rates.restart_s,
        float(estimate.checkpoint_lag_s),
        float(estimate.mtbf_s),
        seed=seed,
    )
    names = (
        "failures_per_day", "mtbf_s", "checkpoint_interval_s", "interval_young_s", "interval_daly_s",
        "interval_exact_s", "checkpoint_stall_s", "checkpoint_lag_s", "goodput", "stall_share", "restart_share",
        "rework_share",
    )  # fmt: skip
    return {
        **{name: float(getattr(estimate, name)) for name in names},
        "spares": int(estimate.spares),
        "checkpoint_bytes": size,
        "write_bytes_per_s": write,
        "mtbf_hours_per_accelerator": rates.mtbf_s / 3600.0,
        "monte_carlo": {
            "goodput": simulated.mean,
            "standard_error": simulated.standard_error,
            "interval": list(simulated.interval),
            "replicas": simulated.replicas,
            "seed": seed,
            "agrees": simulated.agrees(float(estimate.goodput)),
        },
        "terms": explain_goodput(estimate, rates).model_dump(mode="json"),
        "sources": list(rates.sources),
    }


def _spares_worth(estimate: GoodputEstimate, rates: FailureRates, nodes: int, a_day_usd: float) -> dict[str, object]:
    """What the spares cost a day, and what waiting for repairs would."""
    from clusterwright.estimators.worth import worth_of_spares

    spares = int(estimate.spares)
    paid = a_day_usd * (nodes + spares) / nodes
    found = worth_of_spares(nodes, spares, float(estimate.goodput), float(estimate.mtbf_s), rates, cost_usd=paid)
    return {
        "spares": spares,
        "cost_usd_per_day": found.cost_usd,
        "goodput_without": found.goodput_without,
        "saves_usd_per_day": found.saves_usd,
    }


def _read_rate(samples_per_s: float | None, sample_bytes: float | None) -> float:
    """What feeding the job needs [B/s]; 0 where it was not asked."""
    from clusterwright.estimators.storage import read_bandwidth_for_data

    if (samples_per_s is None) != (sample_bytes is None):
        missing = "--sample-bytes" if sample_bytes is None else "--samples-per-s"
        raise click.MissingParameter(param_hint=f"'{missing}'", param_type="option")
    return 0.0 if samples_per_s is None or sample_bytes is None else float(
        read_bandwidth_for_data(samples_per_s, sample_bytes)
    )  # fmt: skip


def _storage(estimate: GoodputEstimate, size: float, read: float) -> dict[str, object]:
    """The bandwidth that saves and the data need, the capacity, and who was measured to deliver it."""
    from clusterwright.catalog.cluster_parts import load_site_figures
    from clusterwright.estimators.storage import require_storage, who_reads

    interval, figures = float(estimate.checkpoint_interval_s), load_site_figures()
    need = require_storage(size, float(estimate.mtbf_s), interval, figures, read_bytes_per_s=read)
    able = who_reads(read, figures.systems) if read else ()
    return {
        **need.model_dump(mode="json", exclude={"ways", "data_bytes"}),
        "readers": [system.model_dump(mode="json") for system in able],
    }


def _causes(failures_per_day: float) -> list[dict[str, object]]:
    """Failures a day by cause, the most frequent first."""
    from clusterwright.catalog.cluster_parts import load_failure_causes

    causes = load_failure_causes()
    whole = sum(cause.count for cause in causes)
    return [
        {"cause": c.name, "share": c.count / whole, "per_day": failures_per_day * c.count / whole, "repair": c.repair}
        for c in causes
    ]


def _warnings(
    estimate: GoodputEstimate, rates: FailureRates, interval_s: float | None, repair_hours: float | None
) -> list[str]:
    """What was assumed, and what was asked but cannot be."""
    made = [] if repair_hours is not None else list(rates.assumptions)
    interval = float(estimate.checkpoint_interval_s)
    if interval_s is not None and interval > interval_s:
        made.append(f"interval: a write behind takes longer than {interval_s:g} s; {interval:.0f} s is the shortest")
    if float(estimate.goodput) < 0.5:  # noqa: PLR2004 - most of the time is lost
        made.append("goodput: most of the time is lost; smaller jobs, faster restarts or better nodes are needed")
    return made


def _straggler(accelerators: int, slowest: float | None, a_day_usd: float | None) -> dict[str, object]:
    """What one slow accelerator costs a synchronous job."""
    from clusterwright.estimators.worth import USUAL_STRAGGLER, cost_of_straggler

    found = cost_of_straggler(accelerators, USUAL_STRAGGLER if slowest is None else slowest, cost_usd=a_day_usd)
    return {**found.model_dump(mode="json", exclude={"lost_usd"}), "lost_usd_per_day": found.lost_usd}


def _counts(mixed: tuple[str, ...]) -> dict[str, int]:
    """Accelerators by kind, from ``name=count`` texts."""
    found: dict[str, int] = {}
    for text in mixed:
        name, equals, count = text.partition("=")
        if not equals or not count.isdecimal() or not 0 < int(count) <= MOST_MIXED:
            raise click.BadParameter(f"{text!r}: write ACCELERATOR=COUNT, such as h100-sxm=64", param_hint="'--mix'")
        found[name.strip()] = found.get(name.strip(), 0) + int(count)
    return found


def _mix_warnings(mixture: Mixture) -> list[str]:
    """What to beware of when kinds are mixed."""
    if len(mixture.kinds) == 1:
        return []
    lost = 1.0 - mixture.synchronous_share
    slow = mixture.slowest.accelerator
    told = [f"mix: the slowest kind, {slow}, sets the pace: {lost:.0%} of the paid speed is lost"]
    if mixture.best_alone_flop_per_s >= mixture.flop_per_s:
        gain = mixture.best_alone_flop_per_s / mixture.flop_per_s
        told.append(f"mix: the {mixture.best_alone} alone are {gain:.2f} times as fast as all of them together")
    return told


def _spares_text(document: dict[str, Any]) -> str:
    """What the spares save, where a price is known and there are any."""
    from clusterwright.units import show_money

    worth = document.get("spares_worth")
    if worth is None or not worth["spares"]:
        return ""
    saves = worth["saves_usd_per_day"]
    more = f"{show_money(abs(saves))} {'more' if saves >= 0 else 'less'} for each day's work"
    return f"; without them goodput {100 * worth['goodput_without']:.1f}%, {more}"


def _causes_text(found: list[dict[str, Any]]) -> str:
    """The most frequent causes."""
    shown = [f"{one['cause']} {one['share']:.0%}" for one in found[:SHOWN]]
    return f"{', '.join(shown)}, {len(found) - SHOWN} others"


def _elsewhere_lines(found: list[dict[str, Any]]) -> list[str]:
    """The goodput at the rates of other clusters."""
    return [
        f"{'elsewhere' if number == 0 else '':<14}{100 * one['goodput']:.2f}% if it failed as often as "
        f"{one['cluster']} ({one['mtbf_s'] / 3600:,.0f} accelerator-hours)"
        for number, one in enumerate(found)
    ]


def _text(document: dict[str, Any]) -> str:
    """The document for people, at the width of a page."""
    from clusterwright.report import wrapped

    lines = [
        *_job_lines(document),
        wrapped("causes", _causes_text(document["causes"])),
        *_elsewhere_lines(document["elsewhere"]),
        wrapped("spares", f"{document['spares']} (nodes) suffice 99% of the time{_spares_text(document)}"),
        f"straggler     {_straggler_text(document['straggler'])}",
        *(_mixture_lines(document["mix"]) if "mix" in document else ()),
        *_storage_lines(document["storage"]),
    ]
    if "worth" in document:
        lines += ["", "what it would be worth"]
        lines += [
            f"  {w['change']:<50} {100 * w['goodput']:.2f}%  ${w['usd_per_day']:,.0f} a day" for w in document["worth"]
        ]
    for title in ("warnings", "sources"):
        if document[title]:
            lines += ["", title, *(wrapped("  ", text, 4) for text in document[title])]
    return "\n".join(lines)


def _job_lines(document: dict[str, Any]) -> list[str]:
    """How often the job stops, how often it saves, and what of its time is useful."""
    from clusterwright.units import show_bytes, show_duration

    carlo, often = document["monte_carlo"], document["failures_per_day"]
    a_day = f"{often:.2f}" if often >= 0.01 else f"{often:.1g}"  # noqa: PLR2004 - of two decimals nothing would be left
    low, high = carlo["interval"]
    optima = ", ".join(f"{name} {show_duration(document[f'interval_{name}_s'])}" for name in ("young", "daly", "exact"))
    shares = (("saving", "stall_share"), ("restarting", "restart_share"), ("redoing", "rework_share"))
    lost = ", ".join(f"{word} {100 * document[key]:.2f}%" for word, key in shares)
    saving = f"{show_bytes(document['checkpoint_bytes'])} at {show_bytes(document['write_bytes_per_s'])}/s"
    stall = f"{document['mode']}: stops the job for {show_duration(document['checkpoint_stall_s'])}"
    agrees = "agrees" if carlo["agrees"] else "DISAGREES"
    each = f"{document['mtbf_hours_per_accelerator']:,.0f} accelerator-hours"
    return [
        f"{document['accelerators']:,} accelerators, one interruption per {each}",
        "",
        f"failures      {a_day} a day, one in {show_duration(document['mtbf_s'])}",
        f"checkpoint    {saving}, {stall}",
        f"interval      {show_duration(document['checkpoint_interval_s'])} (optimum: {optima})",
        f"goodput       {100 * document['goodput']:.2f}%",
        f"  lost to     {lost}",
        f"Monte Carlo   {100 * low:.2f}% to {100 * high:.2f}% (99%, {carlo['replicas']} histories): {agrees}",
    ]


def _straggler_text(straggler: dict[str, Any]) -> str:
    """What one slow accelerator does to all."""
    return f"one at {100 * straggler['slowest']:g}% makes all of them that slow{_lost(straggler)}"


def _mixture_lines(mixture: dict[str, Any]) -> list[str]:
    """What mixing kinds leaves of the speed that is paid."""
    return [
        f"mix           {100 * mixture['synchronous_share']:.0f}% of the paid speed{_lost(mixture)}",
        *(
            f"              {k['count']:,} {k['accelerator']} of {k['flop_per_s'] / 1e12:,.0f} TFLOP/s"
            for k in mixture["kinds"]
        ),
    ]


def _lost(found: dict[str, Any]) -> str:
    """Dollars a day, where a price is known."""
    usd = found["lost_usd_per_day"]
    return "" if usd is None else f", ${usd:,.0f} a day lost"


def _storage_lines(storage: dict[str, Any]) -> list[str]:
    """What saves and data ask of storage, and who was measured to deliver it."""
    from clusterwright.units import show_bytes

    sync, behind = (show_bytes(storage[f"{mode}_write_bytes_per_s"]) for mode in ("sync", "async"))
    lines = [
        f"storage       {sync}/s keeps synchronous saves under 1% of the time",
        f"              {behind}/s writes one checkpoint behind in each interval",
        f"              {show_bytes(storage['capacity_bytes'])} hold ten checkpoints",
        *_systems("written", "write_bytes_per_s", storage["deliverers"]),
    ]
    if storage["read_bytes_per_s"]:
        lines += [
            f"data          {storage['read_bytes_per_s'] / 1e9:,.3g} GB/s must be read",
            *_systems("read", "read_bytes_per_s", storage["readers"]),
        ]
    return lines


def _systems(done: str, key: str, systems: list[dict[str, Any]]) -> list[str]:
    """The first systems that do it as fast."""
    from clusterwright.report import wrapped

    shown = [
        f"{s['name']}, {s['scale']}: {s[key] / 1e9:,.1f} GB/s{' (advised)' if s['guideline'] else ''}"
        for s in systems[:SHOWN]
    ]
    head = f"{done} that fast {'elsewhere' if shown else 'nowhere that was measured'}"
    return [head, *(wrapped("  ", system, 4) for system in shown)]
