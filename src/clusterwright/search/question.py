"""A question about one layout on one kind of node: is it legal, does it fit, and what would it do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.errors import InputError
from clusterwright.estimators.cost import Quote
from clusterwright.estimators.training import USABLE_MEMORY, Layouts, run
from clusterwright.layout import Layout, Recompute, Schedule, Sharding
from clusterwright.search.candidate import make
from clusterwright.search.design import deal_of, setting_of, trainable, tree
from clusterwright.search.evaluate import COLUMNS
from clusterwright.search.offers import Kind
from clusterwright.search.propose import DEGREES, LARGEST_WORLD, SHARDING_OF, Limits, rules

if TYPE_CHECKING:
    from clusterwright.hardware import Accelerator
    from clusterwright.layout import Precision
    from clusterwright.plan import Candidate
    from clusterwright.search.design import Known, Wish
    from clusterwright.search.offers import Deal
    from clusterwright.term import Term
    from clusterwright.workload import Training


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


def ask(asked: Asked, wish: Wish, known: Known) -> Answer:
    """Estimate one layout.

    Raises:
        InputError: a layout that no framework runs; names the option and the rule.
    """
    training = trainable(wish.workload)
    if training.precision == "any":
        training = training.model_copy(update={"precision": "bf16"})
    if asked.precision is not None:
        training = training.model_copy(update={"precision": asked.precision})
    accelerator = known.catalogue.accelerator(asked.accelerator)
    setting = setting_of(wish, training, known)
    kind, quote = _kind(asked, deal_of(wish, setting, known))
    layout = _layout(asked, training)
    whole = layout.accelerators == asked.accelerators
    faults = illegal(layout, wish, training, kind, DEGREES if whole else tuple(n for n in DEGREES if n != "dp"))
    if not whole:
        split = f"tp x cp x pp = {layout.tp} x {layout.cp} x {layout.pp}"
        faults.append(f"--accelerators {asked.accelerators}: {split} does not divide it")
    faults += _beyond(layout, training, accelerator)
    if faults:
        raise InputError("; ".join(faults))
    found = run(setting.job(kind), Layouts.of(layout), setting.calibration)
    nodes = -(-layout.accelerators // kind.node.accelerators)
    useful = setting.useful(np.array([nodes]), kind.node.accelerators, quote)
    candidate = make(setting, kind, quote, layout, {n: float(getattr(found, n)[0]) for n in COLUMNS}, useful)
    usable = USABLE_MEMORY * accelerator.memory_bytes
    fits = candidate.estimate.memory_bytes <= usable
    why = (
        f"memory: {candidate.estimate.memory_bytes / 1e9:.1f} GB needed on each accelerator, "
        f"{usable / 1e9:.1f} GB of {accelerator.memory_bytes / 1e9:.1f} GB usable"
    )
    return Answer(candidate, fits, why, tree(setting, kind, quote, candidate))


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


def _kind(asked: Asked, deal: Deal) -> tuple[Kind, Quote]:
    """The node asked for, or the cheapest that holds the accelerators; with its cheapest price on demand if any."""
    catalogue = deal.catalogue
    accelerator = catalogue.accelerator(asked.accelerator)
    offers, _ = deal.fresh([o for o in catalogue.offers if o.accelerator == accelerator.name])
    if asked.node is not None:
        node = catalogue.node(asked.node)
        if node.accelerator != accelerator.name:
            raise InputError(f"--node {node.name}: has {node.accelerator}, not {accelerator.name}")
    else:
        able = [catalogue.node_of(o) for o in sorted(offers, key=lambda o: o.per_accelerator.usd)]
        able += [n for n in catalogue.nodes.values() if n.accelerator == accelerator.name]
        able = [n for n in able if asked.accelerators <= n.accelerators or n.scales_out]
        if not able:
            raise InputError(
                f"--accelerators {asked.accelerators}: no node with {accelerator.name} and a known network is known; "
                "give --node, or add one with --catalog"
            )
        node = able[0]
    priced = [o for o in offers if o.node == node.name or catalogue.node_of(o).name == node.name]
    priced.sort(key=lambda o: (o.term != "on-demand", o.per_accelerator.usd))
    if priced:
        return Kind(node, accelerator, ()), deal.quote(priced[0], node.accelerators)
    nothing = Quote(
        provider="none", term="none", instance=node.name, usd_per_node_hour=0.0, usd_per_accelerator_hour=0.0,
        source="no offer of this node is known: the cost is not counted",
    )  # fmt: skip
    return Kind(node, accelerator, ()), nothing
