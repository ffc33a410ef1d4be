"""A question about one layout on one kind of node: is it legal, does it fit, and what would it do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.errors import InputError
from clusterwright.estimators.cost import Quote
from clusterwright.estimators.training import SHARDINGS, USABLE_MEMORY, Layouts, run
from clusterwright.layout import Layout, Recompute, Schedule, Sharding
from clusterwright.search.choice import best, feasible
from clusterwright.search.design import deal_of, setting_of, trainable, tree
from clusterwright.search.evaluate import COLUMNS, Best, best_of
from clusterwright.search.offers import Kind, market, own_cluster
from clusterwright.search.propose import (
    AXES,
    DEGREES,
    LARGEST_WORLD,
    SHARDING_OF,
    Limits,
    rules,
    sharding_rules,
    takes,
)
from clusterwright.search.table import Group, handicaps, weighed
from clusterwright.workload import Constraints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.hardware import Accelerator, Node
    from clusterwright.layout import Framework, Precision
    from clusterwright.model import Model
    from clusterwright.plan import Candidate
    from clusterwright.search.candidate import Setting, Software
    from clusterwright.search.design import Known, Wish
    from clusterwright.search.table import Table
    from clusterwright.term import Term
    from clusterwright.workload import Training, Workload

    Stacks = list[tuple[Software, Layout]]

TERMS = ("on-demand", "spot", "reserved", "capacity-block")


@dataclass(frozen=True)
class Asked:
    """One layout and where it runs; what is not given follows from the rest."""

    accelerator: str
    accelerators: int
    tp: int = 1
    cp: int = 1
    pp: int = 1
    vpp: int = 1
    ep: int = 1
    micro_batch: int = 1
    recompute: Recompute = "none"
    sharding: Sharding | None = None
    framework: Framework | None = None
    """None: the workload's; where that is left open, the one that a plan would take."""
    precision: Precision | None = None
    node: str | None = None
    schedule: Schedule = "1f1b"


@dataclass(frozen=True)
class Answer:
    """What one layout would do."""

    candidate: Candidate
    fits: bool
    why: str
    """Memory needed and usable, in words."""
    terms: Term
    framework: str
    """That it runs under."""
    priced: str
    """Which price it is, in words."""


def ask(asked: Asked, wish: Wish, known: Known) -> Answer:
    """Estimate one layout, under the software, on the node and at the price that a plan would choose for it.

    Raises:
        InputError: a layout that no framework runs; names the option and the rule.
    """
    wish, training = _where(asked, wish), trainable(wish.workload)
    given = {key: value for key in ("framework", "precision") if (value := getattr(asked, key)) is not None}
    setting = setting_of(wish, training.model_copy(update=given), known)
    accelerator = known.catalogue.accelerator(asked.accelerator)
    kinds, whose = _kinds(asked, wish, setting, known)
    stacks = _stacks(asked, wish, setting, kinds[0])
    table = weighed(setting, tuple(_group(setting, kind, stacks) for kind in kinds))
    index = _row(table, wish.workload)
    candidate, row = table.candidate(index), table.rows[index]
    usable = USABLE_MEMORY * accelerator.memory_bytes
    fits = candidate.estimate.memory_bytes <= usable
    why = (
        f"memory: {candidate.estimate.memory_bytes / 1e9:.1f} GB needed on each accelerator, "
        f"{usable / 1e9:.1f} GB of {accelerator.memory_bytes / 1e9:.1f} GB usable"
    )
    terms = tree(table.setting_of(index), row.kind, row.quote, candidate)
    return Answer(candidate, fits, why, terms, row.software.framework, whose)


def _where(asked: Asked, wish: Wish) -> Wish:
    """The wish, without its cluster where another node is asked about."""
    cluster = wish.workload.cluster
    if cluster is None or asked.node in {None, cluster.node}:
        return wish
    return replace(wish, workload=wish.workload.model_copy(update={"cluster": None}))


def _stacks(asked: Asked, wish: Wish, setting: Setting, kind: Kind) -> list[Stacks]:
    """The software that a plan would try for the layout, each with what it makes of it; then where those do not fit.

    What no software is planned with is estimated under the first that can run it. Where the framework is open and no
    sharding is given, every other sharding comes second.

    Raises:
        InputError: none can; names every fault under the first.
    """
    tried = [
        (software, _layout(asked, setting.under(software).training)) for software in setting.software(kind.accelerator)
    ]
    faults = [_faults(asked, layout, wish, setting.under(software).training, kind) for software, layout in tried]
    able = [one for one, found in zip(tried, faults, strict=True) if not found]
    if not able:
        raise InputError("; ".join(faults[0]))
    first = [(one, layout) for one, layout in able if _planned(one.framework, layout, setting.model)] or able[:1]
    if asked.sharding is not None or setting.training.framework != "any":
        return [first]
    others = [
        (one, layout.model_copy(update={"sharding": sharding}))
        for one, layout in first
        for sharding in SHARDING_OF[one.framework]
        if sharding != layout.sharding
    ]
    return [first, [(one, layout) for one, layout in others if _planned(one.framework, layout, setting.model)]]


def _planned(framework: str, layout: Layout, model: Model) -> bool:
    """Whether a plan would try such a layout under a framework."""
    axes = {axis: getattr(layout, axis) for axis in AXES}
    if not takes(framework, axes):
        return False
    grid = {**axes, "sharding": SHARDINGS.index(layout.sharding)}
    found = sharding_rules(model, framework, {})
    return not any(bool(np.any(rule.broken(*(np.array([grid[a]]) for a in rule.axes)))) for rule in found)


def _group(setting: Setting, kind: Kind, stacks: list[Stacks]) -> Group:
    """The layout on a kind of node as the only one of a search, under the best software that it fits in memory with."""
    nodes = np.array([-(-stacks[0][0][1].accelerators // kind.node.accelerators)])
    tried = [
        [(software, _alone(setting.under(software), kind, layout, nodes)) for software, layout in some]
        for some in stacks
    ]
    fitting = [[(software, one) for software, one in some if one.fits] for some in tried]
    software, several = zip(*next((some for some in fitting if some), tried[0]), strict=True)
    factors = handicaps(software, setting.software(kind.accelerator)[0])
    chosen = best_of(list(several), factors, setting.model.layers)
    return Group((kind,), chosen, setting.useful(nodes, kind.node.accelerators), software)


def _alone(setting: Setting, kind: Kind, layout: Layout, nodes: NDArray[np.int64]) -> Best:
    """One layout as the best of its number of nodes."""
    found = run(setting.job(kind), Layouts.of(layout), setting.calibration)
    memory = float(found.memory_bytes[0])
    fits = memory <= USABLE_MEMORY * kind.accelerator.memory_bytes
    return Best(
        layouts=Layouts.of(layout), nodes=nodes, columns={n: np.asarray(getattr(found, n)) for n in COLUMNS},
        fits=int(fits), too_large=int(not fits), least_memory_bytes=memory, least=layout, least_software=0,
        software=np.zeros(1, dtype=np.int64),
    )  # fmt: skip


def _row(table: Table, workload: Workload) -> int:
    """The node and the price that a plan would choose: those that keep the constraints first."""
    aim = "time" if workload.prefer.objective == "time" else "cost"
    for limits in (workload.constraints, Constraints()):
        if len(rows := feasible(table, limits)):
            return best(table, rows, aim)
    return best(table, np.arange(len(table.rows)), aim)


def illegal(layout: Layout, wish: Wish, training: Training, kind: Kind, axes: tuple[str, ...] = DEGREES) -> list[str]:
    """The rules on some axes that a layout breaks, each naming what was given."""
    grid = {name: np.array([getattr(layout, name)]) for name in axes}
    limits = Limits(1, LARGEST_WORLD, LARGEST_WORLD, kind.max_nodes and kind.max_nodes * kind.node.accelerators)
    figures = {**{n: getattr(layout, n) for n in DEGREES}, "global_batch": layout.global_batch,
               "sequence_length": training.sequence_length, "heads": wish.model.heads, "layers": wish.model.layers,
               "experts": wish.model.experts}  # fmt: skip
    found = []
    for rule in rules(wish.model, training, limits):
        if grid.keys() >= set(rule.axes) and bool(np.any(rule.broken(*(grid[axis] for axis in rule.axes)))):
            words = (*rule.axes, *rule.why.split())
            given = ", ".join(f"{n} = {figures[n]}" for n in dict.fromkeys(words) if n in figures)
            found.append(f"{rule.why} ({given})")
    return found


def _faults(asked: Asked, layout: Layout, wish: Wish, training: Training, kind: Kind) -> list[str]:
    """Everything that is wrong with a layout."""
    whole = layout.accelerators == asked.accelerators
    found = illegal(layout, wish, training, kind, DEGREES if whole else tuple(n for n in DEGREES if n != "dp"))
    if not whole:
        split = f"tp x cp x pp = {layout.tp} x {layout.cp} x {layout.pp}"
        found.append(f"--accelerators {asked.accelerators}: {split} does not divide it")
    if kind.there is not None and asked.accelerators > kind.there * kind.node.accelerators:
        found.append(f"--accelerators {asked.accelerators}: [cluster] has {kind.there} x {kind.node.accelerators}")
    return [*found, *_beyond(layout, training, kind.accelerator)]


def _beyond(layout: Layout, training: Training, accelerator: Accelerator) -> list[str]:
    """What neither the software nor the accelerator does."""
    found, framework = [], training.framework
    if layout.schedule != "1f1b" and layout.pp == 1:
        found.append(f"schedule {layout.schedule} needs pp > 1 (pp = 1)")
    split = ", ".join(f"{n} = {getattr(layout, n)}" for n in ("tp", "cp", "pp", "ep") if getattr(layout, n) > 1)
    if framework == "fsdp" and split:
        found.append(f"framework fsdp splits the batch alone ({split})")
    if framework in ("fsdp", "torchtitan") and layout.sharding in ("zero1", "distopt"):
        found.append(f"framework {framework} does not share the optimizer alone (sharding = {layout.sharding})")
    narrow = {"fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}.get(layout.precision)
    if narrow and training.method == "qlora":
        found.append(f"qlora computes with its 4-bit weights in bf16 (precision = {layout.precision})")
    if narrow and narrow not in accelerator.peak_flop_per_s:
        found.append(f"{accelerator.name} has no products in {narrow} (precision = {layout.precision})")
    return found


def _layout(asked: Asked, training: Training) -> Layout:
    """The layout; its data parallelism is rounded down where the accelerators do not divide."""
    dp = max(asked.accelerators // (asked.tp * asked.cp * asked.pp), 1)
    options = SHARDING_OF[training.framework]
    sharding = asked.sharding or (options[-1] if dp * asked.cp > 1 else options[0])
    return Layout(
        tp=asked.tp, cp=asked.cp, pp=asked.pp, vpp=asked.vpp, ep=asked.ep, dp=dp, sharding=sharding,
        micro_batch=asked.micro_batch, global_batch=training.batch_sequences, recompute=asked.recompute,
        precision=training.precision, schedule=asked.schedule,
    )  # fmt: skip


def _kinds(asked: Asked, wish: Wish, setting: Setting, known: Known) -> tuple[tuple[Kind, ...], str]:
    """The nodes that may be meant with their prices, and in words whose prices those are.

    The cluster that is there; else what the constraints allow; else whatever is offered.
    """
    catalogue, cluster = known.catalogue, wish.workload.cluster
    accelerator = catalogue.accelerator(asked.accelerator)
    if cluster is not None:
        found = own_cluster(cluster, catalogue).kinds
        if found[0].accelerator.name != accelerator.name:
            raise InputError(
                f"--accelerator {accelerator.name}: [cluster] node {cluster.node} has {found[0].accelerator.name}; "
                "another cluster: --node"
            )
        return found, "the cluster that is there"
    node = catalogue.nodes.get(asked.node or "")
    if node is not None and node.accelerator != accelerator.name:
        raise InputError(f"--node {node.name}: has {node.accelerator}, not {accelerator.name}")
    aim = "quickest" if wish.workload.prefer.objective == "time" else "cheapest"
    only = {"accelerators": (accelerator.name,)}
    anything = {**only, "terms": TERMS, "providers": None, "regions": None}
    for update, words in ((only, f"the {aim} that is allowed"), (anything, f"the {aim}; [constraints] allow none")):
        limits = wish.workload.constraints.model_copy(update=update)
        workload = wish.workload.model_copy(update={"constraints": limits})
        kinds = market(deal_of(replace(wish, workload=workload), setting, known)).kinds
        if found := tuple(kind for kind in kinds if _meant(asked, kind.node)):
            return found, words
    nodes = [n for n in catalogue.nodes.values() if n.accelerator == accelerator.name and _meant(asked, n)]
    if not nodes and asked.node is not None:
        catalogue.node(asked.node)  # says what is unknown
    if not nodes:
        raise InputError(
            f"--accelerators {asked.accelerators}: no node with {accelerator.name} and a known network is known; "
            "give --node, or add one with --catalog"
        )
    nothing = Quote(
        provider="none", term="none", instance=nodes[0].name, usd_per_node_hour=0.0, usd_per_accelerator_hour=0.0,
        source="no offer of this node is known: the cost is not counted",
    )  # fmt: skip
    return (Kind(nodes[0], accelerator, (nothing,)),), "none is known"


def _meant(asked: Asked, node: Node) -> bool:
    """Whether a node is the one asked for, or holds the job where none is."""
    if asked.node is not None:
        return node.name == asked.node
    return asked.accelerators <= node.accelerators or node.scales_out
