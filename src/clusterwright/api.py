"""The public verbs, as functions: `import clusterwright as cw`.

>>> import clusterwright as cw
>>> design = cw.fabric(nodes=16, nics=8, nic_gbps=400, radix=64)
>>> design.leaf, design.spine
(8, 2)
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import date

    from clusterwright.calibration import Fit
    from clusterwright.catalog import Catalogue
    from clusterwright.emitters import Bundle
    from clusterwright.emitters.target import Target
    from clusterwright.estimators.goodput import GoodputEstimate
    from clusterwright.facility import Facility, Mixture
    from clusterwright.hardware import FabricDesign, FailureRates
    from clusterwright.health import Diagnosis
    from clusterwright.measurement import Calibration
    from clusterwright.model import Model
    from clusterwright.plan import Plan
    from clusterwright.search.compare import Comparison
    from clusterwright.search.design import Known, Wish
    from clusterwright.search.question import Answer
    from clusterwright.simulation.scheduling import Job, Schedule
    from clusterwright.term import Term
    from clusterwright.validation import Scoreboard
    from clusterwright.workload import Workload

__all__ = [
    "WorkloadFile",
    "calibrate",
    "catalogue",
    "compare",
    "design",
    "diagnose",
    "emit",
    "estimate",
    "explain",
    "fabric",
    "facility_of",
    "failure_rates",
    "goodput",
    "load_workload",
    "mix",
    "read_calibration",
    "schedule",
    "targets",
    "validate",
]


@dataclass(frozen=True)
class WorkloadFile:
    """A workload as read: validated, as written, and where it lies."""

    workload: Workload
    document: Mapping[str, Any]
    path: Path


def load_workload(path: Path | str, *, overrides: Iterable[str] = ()) -> WorkloadFile:
    """Read ``workload.toml``.

    Args:
        path: The file.
        overrides: ``section.key=value`` texts that replace what the file says.

    Raises:
        InputError: every fault of the file at once, each with its place.
    """
    from clusterwright.workload import load_workload as load

    workload, document = load(path, overrides=tuple(overrides))
    return WorkloadFile(workload, document, Path(path))


def design(
    work: WorkloadFile,
    *,
    pins: Iterable[str] = (),
    top: int | None = None,
    catalog: Path | None = None,
    calibration: Path | Calibration | None = None,
    today: date | None = None,
    progress: Callable[[float], None] | None = None,
) -> Plan:
    """Choose the cluster and the layout for a workload.

    Args:
        work: As `load_workload` gives it.
        pins: Single choices that are fixed, as ``key=value`` texts such as ``tp=8``.
        top: Most points of the front to keep. [1]
        catalog: A folder with one's own accelerators, nodes, models and offers.
        calibration: Factors fitted to one's own runs, or their file.
        today: The day that prices are judged stale against; by default the current one.
        progress: Told the share that is done.

    Returns:
        The plan; its ``chosen`` is none where nothing satisfies the constraints, and ``rejected`` says why.

    Raises:
        InputError: something asked is unknown or cannot be.
    """
    from clusterwright.search import design as search
    from clusterwright.search.propose import read_pins

    wish, known = _wish(work, catalog, calibration, today)
    wish = search.Wish(
        wish.workload, wish.model, wish.document, wish.today, read_pins(pins),
        search.FRONT if top is None else top, wish.calibration,
    )  # fmt: skip
    return search.design(wish, known, progress)


def estimate(
    work: WorkloadFile,
    *,
    catalog: Path | None = None,
    calibration: Path | Calibration | None = None,
    today: date | None = None,
    **layout: Any,  # noqa: ANN401 - the fields of Asked, checked there
) -> Answer:
    """Predict one layout on one cluster.

    Args:
        work: As `load_workload` gives it.
        catalog: A folder with one's own parts.
        calibration: Factors fitted to one's own runs, or their file.
        today: The day of the question.
        **layout: ``accelerator``, ``accelerators`` and what else `clusterwright.search.question.Asked` holds.

    Raises:
        InputError: a layout that no framework runs; names the option and the rule.
    """
    from clusterwright.search.question import Asked, ask

    wish, known = _wish(work, catalog, calibration, today)
    return ask(Asked(**layout), wish, known)


def explain(plan: Plan | Path | str, term: str | None = None, *, where: str = "plan") -> Term:
    """The tree of terms behind a plan's choice, or the part of that name.

    Args:
        plan: A plan, or its file.
        term: Name of a part; none: the whole.
        where: What to call the plan in a message.

    Raises:
        InputError: not a plan, a plan that chose nothing, or a term that it does not have.
    """
    from clusterwright.errors import InputError, unknown
    from clusterwright.plan import Plan, read_plan

    document = plan if isinstance(plan, Plan) else read_plan(plan)
    where = where if isinstance(plan, Plan) else str(plan)
    if document.terms is None:
        msg = f"{where}: chosen is null: this plan found nothing feasible, there is nothing to explain"
        raise InputError(msg)
    if term is None:
        return document.terms
    found = document.terms.find(term)
    if found is None:
        raise unknown("term", term, set(document.terms.names()))
    return found


def compare(
    work: WorkloadFile,
    *,
    plan: Plan | Path | str | None = None,
    without: Iterable[str] = (),
    catalog: Path | None = None,
    calibration: Path | Calibration | None = None,
    today: date | None = None,
) -> Comparison:
    """Hold renting, reserving and owning a workload's cluster against one another, over how much it is used.

    Args:
        work: As `load_workload` gives it; ``horizon`` and ``utilisation`` of its constraints are used.
        plan: Whose cluster is compared, or its file; none: the one that `design` would choose.
        without: Parts of owning that are left out, such as ``colocation``.
        catalog: A folder with one's own parts, prices and ``owning.toml``.
        calibration: Factors fitted to one's own runs, or their file.
        today: The day that prices are judged stale against; by default the current one.

    Raises:
        InputError: something asked is unknown, or the plan is of another model.
        InfeasibleError: nothing satisfies the workload.
    """
    from clusterwright.plan import Plan, read_plan
    from clusterwright.search.compare import compare as hold

    wish, known = _wish(work, catalog, calibration, today)
    return hold(wish, known, plan if plan is None or isinstance(plan, Plan) else read_plan(plan), without)


def emit(
    plan: Plan | Path | str,
    target: str,
    out: Path | str | None = None,
    *,
    site: Mapping[str, object] | None = None,
    allow_unset: bool = False,
) -> Bundle:
    """The files that run a plan, for one target; written to ``out`` when given, all of them or none.

    Raises:
        InputError: unknown target or key, or a file that cannot be written.
        InfeasibleError: a needed key of ``[site]`` has no value; names all of them.
    """
    from clusterwright.emitters import emit as write
    from clusterwright.files import write_all_atomically
    from clusterwright.plan import Plan, read_plan, require_chosen

    document = plan if isinstance(plan, Plan) else read_plan(plan)
    require_chosen(document, "plan" if isinstance(plan, Plan) else plan)
    bundle = write(document, target, site, allow_unset=allow_unset)
    if out is not None:
        write_all_atomically({Path(out) / name: text for name, text in bundle.files.items()})
    return bundle


def validate(
    *tables: Path | str, calibration: Path | Calibration | None = None, catalog: Path | None = None
) -> Scoreboard:
    """Score the estimate against measured runs; without tables against the published ones that are shipped.

    Args:
        tables: CSV tables of runs.
        calibration: Factors fitted to one's own runs, or their file.
        catalog: A folder with one's own parts.

    Returns:
        The scoreboard; of the shipped runs, with the facts as shipped, its ``worsened`` names the bands that are
        exceeded.

    Raises:
        InputError: a table is missing or lacks a column.
    """
    from clusterwright import catalog as facts
    from clusterwright import validation

    known = facts.load(catalog)
    factors = _factors(calibration)
    if tables:
        return validation.validate(tables, known, factors)
    return validation.validate_shipped(known, factors, held=catalog is None and factors is None)


def fabric(
    *,
    nodes: int,
    nics: int,
    nic_gbps: float,
    radix: int,
    topology: str = "shared-spine",
    oversubscription: float = 1.0,
    manager_ports: int = 0,
) -> FabricDesign:
    """The scale-out network of a cluster.

    Args:
        nodes: Nodes to join. [1]
        nics: NICs a node. [1]
        nic_gbps: Speed of one NIC and switch port. [Gb/s]
        radix: Ports of a switch at that speed. [1]
        topology: ``shared-spine`` or ``independent-rails``.
        oversubscription: Leaf bandwidth down over up. [1]
        manager_ports: Ports kept for the fabric manager. [1]
    """
    from clusterwright.catalog.cluster_parts import load_fabric_parts
    from clusterwright.estimators.fabric import design_fabric

    speed, parts = nic_gbps * 1e9, load_fabric_parts()
    return design_fabric(
        nodes, nics, speed, radix, topology=topology, oversubscription=oversubscription, parts=parts,
        manager_ports=manager_ports,
    )  # fmt: skip


def facility_of(plan: Plan | Path | str) -> Facility:
    """The rest of a planned cluster: networks, what network the job needs, storage, failures, power and space.

    Args:
        plan: A plan, or its file; one that was written without its facility gets it now.

    Raises:
        InputError: not a plan, or one that chose nothing.
    """
    from clusterwright.catalog.cluster_parts import load_fabric_parts, load_failure_rates, load_site_figures
    from clusterwright.estimators import facility
    from clusterwright.plan import Plan, read_plan, require_chosen

    document = plan if isinstance(plan, Plan) else read_plan(plan)
    chosen = require_chosen(document, "plan" if isinstance(plan, Plan) else plan)
    if document.facility is not None:
        return document.facility
    return facility.facility_of(document, chosen, load_site_figures(), load_fabric_parts(), load_failure_rates())


def goodput(
    accelerators: int,
    *,
    checkpoint_bytes: float,
    write_bytes_per_s: float,
    mtbf_s: float | None = None,
    mode: str = "async",
    interval_s: float | None = None,
    rates: FailureRates | None = None,
) -> GoodputEstimate:
    """Failures, checkpoints and useful time of a job.

    Args:
        accelerators: Of the job. [1]
        checkpoint_bytes: Of one checkpoint. [B]
        write_bytes_per_s: Of the storage. [B/s]
        mtbf_s: Accelerator-seconds of running per interruption; by default as published. [s]
        mode: ``sync``, ``async`` or ``memory``.
        interval_s: Useful work between saves; by default the optimum. [s]
        rates: Failure rates and recovery times; by default those of `failure_rates`.
    """
    from clusterwright.estimators.goodput import estimate_goodput

    rates = rates or failure_rates()
    if mtbf_s is not None:
        rates = rates.model_copy(update={"mtbf_s": mtbf_s})
    return estimate_goodput(accelerators, checkpoint_bytes, write_bytes_per_s, rates, mode=mode, interval_s=interval_s)


def failure_rates(**changes: float) -> FailureRates:
    """Published failure rates and recovery times, with the fields that are given replaced [s].

    >>> failure_rates(restart_s=60.0).restart_s
    60.0
    """
    from clusterwright.catalog.cluster_parts import load_failure_rates

    return load_failure_rates().model_copy(update=changes)


def mix(
    counts: Mapping[str, int],
    *,
    precision: str = "bf16",
    usd_per_accelerator_hour: float | None = None,
    catalog: Path | None = None,
) -> Mixture:
    """What a synchronous job loses on several kinds of accelerator at once: the slowest sets the pace.

    Args:
        counts: Accelerators of each kind, by name. [1]
        precision: Of the matrix products.
        usd_per_accelerator_hour: Mean price. [USD]
        catalog: A folder with one's own parts.

    Raises:
        InputError: an unknown kind, or one without the precision.
    """
    from clusterwright.estimators.worth import cost_of_mixture

    known = catalogue(catalog)
    kinds = [(known.accelerator(name), count) for name, count in counts.items()]
    return cost_of_mixture(kinds, precision=precision, usd_per_accelerator_hour=usd_per_accelerator_hour)


def schedule(
    jobs: Iterable[Job] | Path | str | None = None,
    *,
    nodes: int,
    leaf_nodes: int = 32,
    policies: Iterable[str] = ("piecemeal", "gang", "backfill", "topology"),
) -> tuple[Schedule, ...]:
    """Play jobs that need all of their nodes at once, under each policy.

    Args:
        jobs: Jobs, or a CSV file of ``name``, ``nodes``, ``run_s`` and ``submitted_s``; by default two of 48 nodes.
        nodes: Of the cluster. [1]
        leaf_nodes: Nodes on one leaf. [1]
        policies: Of ``piecemeal``, ``gang``, ``backfill``, ``topology``.

    Raises:
        InputError: the file is wrong, or a job is larger than the cluster.
    """
    from clusterwright.files import read_text
    from clusterwright.simulation.scheduling import TWO_OF_48, play, read_jobs

    wanted = TWO_OF_48 if jobs is None else jobs
    asked = read_jobs(read_text(wanted), str(wanted)) if isinstance(wanted, (str, Path)) else tuple(wanted)
    return tuple(play(asked, nodes, policy, leaf_nodes=leaf_nodes) for policy in policies)


def targets() -> tuple[Target, ...]:
    """What `emit` can write for: names, what each covers, and the ``[site]`` keys it needs."""
    from clusterwright.emitters import targets as listed

    return listed()


def catalogue(folder: Path | None = None) -> Catalogue:
    """The facts: accelerators, nodes, models, offers and sources, with one's own from ``folder``.

    Raises:
        InputError: the folder is missing, or a file in it is wrong.
    """
    from clusterwright import catalog as facts

    return facts.load(folder)


def calibrate(*tables: Path | str, catalog: Path | None = None) -> Fit:
    """Fit the named factors to one's own measured runs.

    Args:
        tables: CSV tables of runs, in the columns of `validate`.
        catalog: Folder of one's own parts and prices.

    Returns:
        The calibration, with the errors before, after, and of each run left out.

    Raises:
        InputError: a table is missing or lacks a column.
        InfeasibleError: no run can be scored.
    """
    from clusterwright import calibration, validation
    from clusterwright import catalog as facts

    _, runs, _ = validation.read_tables(tables)
    return calibration.calibrate(runs, facts.load(catalog))


def diagnose(
    files: Sequence[str], plan: Plan | Path | str | None = None, *, progress: Callable[[int], None] | None = None
) -> Diagnosis:
    """Read logs and name the cause, or say unknown.

    Args:
        files: Files, folders, ``.gz``, or ``-`` for standard input.
        plan: What was expected of the job, or its file.
        progress: Told the number of bytes that were just read.

    Raises:
        InputError: a file that cannot be read, or no plan.
    """
    from clusterwright.catalog.faults import load_faults
    from clusterwright.checks.diagnose import diagnose as judge
    from clusterwright.plan import Plan, read_plan

    known = plan if plan is None or isinstance(plan, Plan) else read_plan(plan)
    return judge(files, load_faults(), known, progress)


def read_calibration(path: Path | str) -> Calibration:
    """Factors fitted to one's own runs.

    Raises:
        InputError: the file is missing, or is no calibration; names it.
    """
    from pydantic import ValidationError

    from clusterwright.errors import InputError
    from clusterwright.files import read_text
    from clusterwright.measurement import Calibration

    try:
        return Calibration.model_validate(tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        msg = f"{path}: not valid TOML: {error}"
        raise InputError(msg) from None
    except ValidationError as error:
        first = error.errors()[0]
        msg = f"{path}: {'.'.join(str(p) for p in first['loc'])}: {first['msg']}"
        raise InputError(msg) from None


def _factors(calibration: Path | Calibration | None) -> Calibration | None:
    return read_calibration(calibration) if isinstance(calibration, (str, Path)) else calibration


def _wish(
    work: WorkloadFile, catalog: Path | None, calibration: Path | Calibration | None, today: date | None
) -> tuple[Wish, Known]:
    from clusterwright import catalog as facts
    from clusterwright.catalog.cluster_parts import load_fabric_parts, load_failure_rates, load_site_figures
    from clusterwright.search.design import Known, Wish

    known = Known(facts.load(catalog), load_fabric_parts(), load_failure_rates(), load_site_figures())
    day = today or datetime.now(UTC).date()
    model = _model(work, known)
    return Wish(work.workload, model, work.document, day, calibration=_factors(calibration)), known


def _model(work: WorkloadFile, known: Known) -> Model:
    from clusterwright.huggingface import read_config
    from clusterwright.workload import config_path

    choice = work.workload.model
    if choice.config is not None:
        return read_config(config_path(choice, work.path))
    return known.catalogue.model(choice.name or "")
