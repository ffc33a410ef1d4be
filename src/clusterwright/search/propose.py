"""What may be tried: every layout that the frameworks accept, as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clusterwright.errors import InputError, unknown
from clusterwright.estimators.training import RECOMPUTES, SHARDINGS, Layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from clusterwright.model import Model
    from clusterwright.workload import Training

    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

MAX_ACCELERATORS = 16384
"""Largest cluster that is tried where the workload names no limit."""
LARGEST_WORLD = 2**21
"""Largest cluster that is ever tried."""
LEAST_CONTEXT = 4000
"""Tokens of a sequence that a context-parallel rank keeps at least, unless it is pinned: the shortest share among
published Megatron runs is 4,096, and what ring attention costs below that is not known."""
LARGEST_BATCH = 2**24
"""Largest global batch that is tried [sequences]."""

AXES = ("tp", "cp", "pp", "vpp", "ep", "dp", "sharding", "micro_batch")
"""In the order in which they are crossed."""
DEGREES = tuple(axis for axis in AXES if axis != "sharding")
PINS = (*AXES, "recompute", "nodes", "accelerators")
"""Single choices that a user may fix."""

SHARDING_OF = {
    "megatron": ("none", "fsdp", "distopt"),
    "torchtitan": ("fsdp", "hsdp"),
    "fsdp": ("fsdp", "hsdp"),
    "deepspeed": ("zero1", "zero2", "zero3"),
    "any": ("none", "fsdp", "distopt"),
}
"""How each framework shards the states over data parallelism: first what one rank does, last what it usually does."""
_ANY_STAGES = ("megatron", "any")
"""Frameworks whose pipeline takes any number of layers on each stage."""
_DATA_PARALLEL_ONLY = ("fsdp", "deepspeed")
"""Frameworks whose plain form has neither tensor, pipeline, context nor expert parallelism."""


@dataclass(frozen=True)
class Space:
    """Every legal layout as arrays of shape (n,), and what was refused."""

    layouts: Layouts
    """Each with the first of ``recomputes``; all of them are legal."""
    recomputes: tuple[int, ...]
    """Indices into `RECOMPUTES`, from the one that recomputes least."""
    candidates: int
    """Layouts looked at, legal or not."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Layouts refused, by the first rule that they break."""

    @property
    def legal(self) -> int:
        """Layouts that a framework would run."""
        return len(self.layouts.tp) * len(self.recomputes)


@dataclass(frozen=True)
class Limits:
    """What bounds the layouts besides model and workload."""

    accelerators_a_node: int
    scale_up_domain: int
    max_accelerators: int
    max_nodes: int | None = None
    pins: Mapping[str, int | str] = field(default_factory=dict)


def read_pins(texts: Iterable[str]) -> dict[str, int | str]:
    """Choices that are fixed, from ``key=value`` texts.

    Raises:
        InputError: an unknown key, or a value that cannot be.

    >>> read_pins(["tp=8", "recompute=full"])
    {'tp': 8, 'recompute': 'full'}
    """
    found: dict[str, int | str] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        key = key.replace("-", "_")
        if not equals or not value:
            raise InputError(f"--pin {text}: write key=value, for instance tp=8")
        if key not in PINS:
            raise unknown("--pin", key, PINS)
        words = {"recompute": RECOMPUTES, "sharding": SHARDINGS}.get(key)
        if words is not None:
            if value not in words:
                raise unknown(f"--pin {key}", value, words)
            found[key] = value
            continue
        if not value.isdecimal() or not 1 <= int(value) <= LARGEST_BATCH:
            raise InputError(f"--pin {key}: {value!r} is not a whole number from 1 to {LARGEST_BATCH:,}")
        found[key] = int(value)
    return found


def divisors(number: int, limit: int) -> list[int]:
    """Divisors of a number up to a limit.

    >>> divisors(80, 20)
    [1, 2, 4, 5, 8, 10, 16, 20]
    """
    return [d for d in range(1, min(number, limit) + 1) if number % d == 0]


def legal_layouts(model: Model, training: Training, limits: Limits, bounds: Iterable[Rule] = ()) -> Space:
    """Every layout that the framework accepts for this model on these nodes.

    One axis after the other is crossed with what is left, and every rule is one array test as soon as its axes are
    there. What it refuses counts for all that the later axes would have made of it.

    Args:
        model: Shape of the network.
        training: Sequence length, batch and framework.
        limits: The node and the largest cluster.
        bounds: Rules that refuse what is legal but cannot fit.

    Returns:
        The legal layouts in one row, and the others counted by the first rule that they break.
    """
    batch = training.batch_sequences
    if batch > LARGEST_BATCH:
        raise InputError(
            f"[training] global_batch: {batch:,} sequences are more than the {LARGEST_BATCH:,} that are tried"
        )
    axes = _values(model, training, limits)
    recomputes = _codes("recompute", RECOMPUTES, RECOMPUTES, limits.pins)
    each = len(recomputes)
    found = [*rules(model, training, limits), *sharding_rules(model, training.framework, limits.pins), *bounds]
    rows, refused = _sieve(axes, found)
    layouts = Layouts(
        **rows,
        global_batch=np.full_like(rows["tp"], batch),
        recompute=np.full_like(rows["tp"], recomputes[0]),
    )
    return Space(layouts, recomputes, each * _size(axes), {why: each * n for why, n in refused.items()})


def count_candidates(model: Model, training: Training, limits: Limits) -> int:
    """Layouts that `legal_layouts` would look at, legal or not."""
    recomputes = _codes("recompute", RECOMPUTES, RECOMPUTES, limits.pins)
    return len(recomputes) * _size(_values(model, training, limits))


def _sieve(axes: list[dict[str, Integers]], tests: list[Rule]) -> tuple[dict[str, Integers], dict[str, int]]:
    """Cross the axes one after the other and keep what breaks no rule."""
    rows: dict[str, Integers] = {}
    refused: dict[str, int] = {}
    count, rest = 1, _size(axes)
    for axis in axes:
        length = _size([axis])
        rest //= length
        rows = {known: np.repeat(row, length) for known, row in rows.items()}
        rows |= {name: np.tile(values, count) for name, values in axis.items()}
        kept = np.ones(count * length, dtype=bool)
        for rule in tests:
            if axis.keys().isdisjoint(rule.axes) or not rows.keys() >= set(rule.axes):
                continue
            broken = kept & rule.broken(*(rows[a] for a in rule.axes))
            if number := int(broken.sum()):
                refused[rule.why] = refused.get(rule.why, 0) + number * rest
                kept &= ~broken
        rows = {known: row[kept] for known, row in rows.items()}
        count = int(kept.sum())
    return rows, refused


def _size(axes: list[dict[str, Integers]]) -> int:
    """Points of the grid that the axes span."""
    return math.prod(len(next(iter(axis.values()))) for axis in axes)


@dataclass(frozen=True)
class Rule:
    """Something that the frameworks refuse."""

    why: str
    axes: tuple[str, ...]
    broken: Callable[..., Flags]
    """Where it is broken, from arrays of its axes."""


def rules(model: Model, training: Training, limits: Limits) -> list[Rule]:
    """What the frameworks refuse.

    Sources: Megatron-LM ``arguments.py``, ``TransformerConfig`` and ``parallel_state.py`` (core 0.20);
    torchtitan ``parallel_dims.py``; DeepSpeed's batch rule.
    """
    batch, sequence, heads = training.batch_sequences, training.sequence_length, model.heads
    layers, experts, kv = model.layers, max(model.experts, 1), kv_heads(model)
    a_node, most = limits.accelerators_a_node, limits.max_accelerators
    world = ("tp", "cp", "pp", "dp")
    found = [
        Rule("tp does not divide the heads", ("tp",), lambda tp: heads % tp != 0),
        Rule("tp and the key-value heads do not divide one another", ("tp",),
             lambda tp: (kv % tp != 0) & (tp % kv != 0)),
        Rule("sequence_length is not a multiple of 2 cp", ("cp",), lambda cp: (cp > 1) & (sequence % (2 * cp) != 0)),
        _pipeline_rule(layers, training.framework),
        Rule("vpp needs pp > 1", ("pp", "vpp"), lambda pp, vpp: (vpp > 1) & (pp == 1)),
        Rule("ep does not divide the experts", ("ep",), lambda ep: experts % ep != 0),
        Rule("ep does not divide tp x cp x dp", ("tp", "cp", "ep", "dp"),
             lambda tp, cp, ep, dp: (tp * cp * dp) % ep != 0),
        Rule("accelerators are not whole nodes", world, lambda tp, cp, pp, dp: tp * cp * pp * dp % a_node != 0),
        Rule(_exceeds(most), world, lambda tp, cp, pp, dp: tp * cp * pp * dp > most),
        Rule("global_batch is not a multiple of dp x micro_batch", ("dp", "micro_batch"),
             lambda dp, micro_batch: batch % (dp * micro_batch) != 0),
        Rule("vpp needs micro-batches that are a multiple of pp", ("pp", "vpp", "dp", "micro_batch"),
             lambda pp, vpp, dp, micro_batch: (vpp > 1) & (batch // (dp * micro_batch) % pp != 0)),
    ]  # fmt: skip
    if "tp" not in limits.pins:
        domain = limits.scale_up_domain
        found.insert(2, Rule("tp leaves the scale-up domain", ("tp",), lambda tp: tp > domain))
    if limits.max_nodes is not None:
        joined = limits.max_nodes * a_node
        found.append(Rule("more nodes than can be joined", world, lambda tp, cp, pp, dp: tp * cp * pp * dp > joined))
    for key, one in (("nodes", a_node), ("accelerators", 1)):
        if key in limits.pins:
            found.append(_pinned(key, int(limits.pins[key]) * one, world))
    return found


def _exceeds(most: int) -> str:
    """That a cluster is larger than is tried; a limit that nobody gave is named."""
    given = "max_accelerators" if most != MAX_ACCELERATORS else f"the {most:,} tried without max_accelerators"
    return f"accelerators exceed {given}"


def _pinned(key: str, wanted: int, world: tuple[str, ...]) -> Rule:
    return Rule(f"{key} are not those pinned", world, lambda tp, cp, pp, dp: tp * cp * pp * dp != wanted)


def _pipeline_rule(layers: int, framework: str) -> Rule:
    """Megatron takes any stages that hold a layer each (``--pipeline-model-parallel-layout``); others divide."""
    if framework in _ANY_STAGES:
        return Rule("pp x vpp exceeds the layers", ("pp", "vpp"), lambda pp, vpp: pp * vpp > layers)
    return Rule("pp x vpp does not divide the layers", ("pp", "vpp"),
                lambda pp, vpp: (pp * vpp > layers) | ~_even(layers, pp * vpp))  # fmt: skip


def _even(layers: int, slots: Integers) -> Flags:
    """Whether layers divide over the pieces of a pipeline, or do so where embedding and loss count as one each."""
    return np.asarray((layers % slots == 0) | ((layers + 2) % slots == 0))


def pipelines(layers: int, most: int, framework: str, pins: Mapping[str, int | str]) -> tuple[Integers, Integers]:
    """Stages and virtual stages that are worth trying: those that divide, and of the others those that may win.

    With as many layers on its fullest stage a shorter pipeline takes no longer (each micro-batch passes as quickly, and
    the bubble is shorter) on fewer accelerators. Pieces of different sizes make the fullest stage wait for the largest.
    A pinned axis is tried as it is.

    Args:
        layers: Of the model. [1]
        most: Accelerators. [1]
        framework: Of the workload.
        pins: Choices that are fixed.

    Returns:
        ``pp`` and ``vpp``, shape (n,).

    >>> pipelines(8, 8, "megatron", {})[0].tolist()
    [1, 2, 2, 2, 3, 4, 4, 5, 8]
    """
    one = {axis: np.array([pins[axis]], dtype=np.int64) for axis in ("pp", "vpp") if axis in pins}
    every = np.arange(1, layers + 1, dtype=np.int64)
    pp, vpp = (a.ravel() for a in np.meshgrid(one.get("pp", every[:most]), one.get("vpp", every), indexing="ij"))
    fullest, slots = -(-layers // pp), pp * vpp
    kept = ~_pipeline_rule(layers, framework).broken(pp, vpp) & ((vpp == 1) | (pp > 1))
    if "pp" not in pins:
        kept &= (pp == 1) | (fullest < -(-layers // np.maximum(pp - 1, 1))) | _even(layers, pp)
    if "vpp" not in pins:
        kept &= (vpp * -(-layers // slots) <= fullest) | _even(layers, slots)
    if not kept.any():
        kept[0] = True  # so that a rule says what is wrong with it
    return pp[kept], vpp[kept]


def takes(framework: str, pins: Mapping[str, int | str]) -> bool:
    """Whether a framework has what is pinned.

    >>> takes("deepspeed", {"tp": 8}), takes("megatron", {"tp": 8}), takes("megatron", {"sharding": "zero3"})
    (False, True, False)
    """
    split = any(int(pins.get(axis, 1)) > 1 for axis in ("tp", "cp", "pp", "vpp", "ep"))
    return pins.get("sharding", SHARDING_OF[framework][0]) in SHARDING_OF[framework] and not (
        split and framework in _DATA_PARALLEL_ONLY
    )


def kv_heads(model: Model) -> int:
    """Key and value heads that tensor parallelism splits (the least of the attention layers)."""
    mixers = [b.mixer for b in model.blocks if b.mixer is not None and b.mixer.kind != "state-space"]
    return min((m.kv_heads for m in mixers), default=1)


def _values(model: Model, training: Training, limits: Limits) -> list[dict[str, Integers]]:
    """The values of every axis, each legal by itself; stages and virtual stages are one axis of pairs."""
    batch, plain = training.batch_sequences, training.framework in _DATA_PARALLEL_ONLY
    most = min(limits.max_accelerators, LARGEST_WORLD)
    if limits.max_nodes is not None:
        most = min(most, limits.max_nodes * limits.accelerators_a_node)
    kv, shortest = kv_heads(model), training.sequence_length // LEAST_CONTEXT
    free = {
        "tp": [t for t in divisors(model.heads, min(limits.scale_up_domain, most)) if kv % t == 0 or t % kv == 0],
        "cp": [1, *(c for c in divisors(training.sequence_length // 2, min(shortest, most)) if c > 1)],
        "ep": divisors(max(model.experts, 1), most),
    }
    if plain:
        free = {name: [1] for name in free}
    free["dp"] = divisors(batch, most)
    free["micro_batch"] = divisors(batch, batch)
    one = {n: np.array([limits.pins[n]] if n in limits.pins else v, dtype=np.int64) for n, v in free.items()}
    pp, vpp = pipelines(1 if plain else model.layers, most, training.framework, limits.pins)
    stages = {"pp": pp, "vpp": vpp}
    one["sharding"] = np.array(_codes("sharding", SHARDING_OF[training.framework], SHARDINGS, limits.pins))
    return [
        {"tp": one["tp"]},
        {"cp": one["cp"]},
        stages,
        *({n: one[n]} for n in ("ep", "dp", "sharding", "micro_batch")),
    ]


def _codes(key: str, values: tuple[str, ...], names: tuple[str, ...], pins: Mapping[str, int | str]) -> tuple[int, ...]:
    """The values of an axis of words, or the one that is pinned, as places among its names."""
    return tuple(names.index(v) for v in ((str(pins[key]),) if key in pins else values))


def sharding_rules(model: Model, framework: str, pins: Mapping[str, int | str]) -> list[Rule]:
    """What is not planned of sharding: over one rank, and Megatron's FSDP under a pipeline or of a mixture.

    Sharded states over one rank are not sharded: of such twins only the first is kept. No run of a mixture under
    Megatron's FSDP is among the published ones; it can be pinned.
    """
    first, full = SHARDINGS.index(SHARDING_OF[framework][0]), SHARDINGS.index("fsdp")
    found = [
        Rule("sharding over a single rank", ("cp", "dp", "sharding"),
             lambda cp, dp, sharding: (dp * cp == 1) & (sharding != first)),
    ]  # fmt: skip
    if framework in _ANY_STAGES:
        found.append(Rule("Megatron's FSDP runs without a pipeline", ("pp", "sharding"),
                          lambda pp, sharding: (pp > 1) & (sharding == full)))  # fmt: skip
        if model.experts and "sharding" not in pins:
            found.append(Rule("no mixture under Megatron's FSDP is published", ("sharding",),
                              lambda sharding: sharding == full))  # fmt: skip
    return found
