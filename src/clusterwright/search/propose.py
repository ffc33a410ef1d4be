"""What may be tried: every layout that the frameworks accept, as arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
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
LARGEST_BATCH = 2**24
"""Largest global batch [sequences] and context-parallel search that is tried."""
LARGEST_MICRO_BATCH = 16
"""Larger micro-batches than this many sequences win nothing and are not tried."""
LEAST_CONTEXT = 4096
"""Tokens of a sequence that a context-parallel rank keeps at least: shorter shares are not among published runs, so
what ring attention costs there is not known."""
LARGEST_EXPERT_PARALLEL = 128
LARGEST_PIPELINE = 64

AXES = ("tp", "cp", "pp", "vpp", "ep", "dp", "micro_batch")
PINS = (*AXES, "recompute", "sharding", "nodes", "accelerators")
"""Single choices that a user may fix."""

SHARDING_OF = {
    "megatron": ("none", "distopt"),
    "torchtitan": ("fsdp", "hsdp"),
    "fsdp": ("fsdp", "hsdp"),
    "deepspeed": ("zero1", "zero2", "zero3"),
    "any": ("none", "distopt"),
}
"""How each framework shards the states over data parallelism; ``any`` is planned as Megatron runs it."""
_DATA_PARALLEL_ONLY = ("fsdp", "deepspeed")
"""Frameworks whose plain form has neither tensor, pipeline, context nor expert parallelism."""


@dataclass(frozen=True)
class Space:
    """Every legal layout as arrays of shape (n,), and what was refused."""

    layouts: Layouts
    candidates: int
    """Layouts looked at, legal or not."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Layouts refused, by the first rule that they break."""

    @property
    def legal(self) -> int:
        """Layouts that a framework would run."""
        return len(self.layouts.tp)


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


def legal_layouts(model: Model, training: Training, limits: Limits) -> Space:
    """Every layout that the framework accepts for this model on these nodes.

    One axis after the other is crossed with what is left, and every rule is one array test as soon as its axes are
    there. What it refuses counts for all that the later axes would have made of it.

    Args:
        model: Shape of the network.
        training: Sequence length, batch and framework.
        limits: The node and the largest cluster.

    Returns:
        The legal layouts in one row, and the others counted by the first rule that they break.
    """
    batch = training.batch_sequences
    if batch > LARGEST_BATCH:
        raise InputError(
            f"[training] global_batch: {batch:,} sequences are more than the {LARGEST_BATCH:,} that are tried"
        )
    values = _values(model, training, limits)
    pairs = _pairs(training.framework, limits.pins)
    each = len(pairs)
    rows, refused = _sieve(values, rules(model, training, limits))
    count = len(rows[AXES[0]])
    layouts = Layouts(
        **{name: np.repeat(row, each) for name, row in rows.items()},
        global_batch=np.full(count * each, batch, dtype=np.int64),
        sharding=np.tile(np.array([s for s, _ in pairs], dtype=np.int64), count),
        recompute=np.tile(np.array([r for _, r in pairs], dtype=np.int64), count),
    )
    tried = each * math.prod(len(v) for v in values.values())
    return _without_idle_sharding(Space(layouts, tried, {w: each * n for w, n in refused.items()}), training.framework)


def _sieve(values: Mapping[str, Integers], tests: list[Rule]) -> tuple[dict[str, Integers], dict[str, int]]:
    rows: dict[str, Integers] = {}
    refused: dict[str, int] = {}
    count, rest = 1, math.prod(len(v) for v in values.values())
    for name in AXES:
        axis = values[name]
        rest //= len(axis)
        rows = {known: np.repeat(row, len(axis)) for known, row in rows.items()}
        rows[name] = np.tile(axis, count)
        kept = np.ones(len(rows[name]), dtype=bool)
        for rule in tests:
            if name not in rule.axes or not rows.keys() >= set(rule.axes):
                continue
            broken = kept & rule.broken(*(rows[a] for a in rule.axes))
            if number := int(broken.sum()):
                refused[rule.why] = refused.get(rule.why, 0) + number * rest
                kept &= ~broken
        rows = {known: row[kept] for known, row in rows.items()}
        count = int(kept.sum())
    return rows, refused


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
        Rule("tp leaves the scale-up domain", ("tp",), lambda tp: tp > limits.scale_up_domain),
        Rule("sequence_length is not a multiple of 2 cp", ("cp",), lambda cp: (cp > 1) & (sequence % (2 * cp) != 0)),
        Rule("pp x vpp does not divide the layers", ("pp", "vpp"), lambda pp, vpp: ~splits(layers, pp, vpp)),
        Rule("vpp needs pp > 1", ("pp", "vpp"), lambda pp, vpp: (vpp > 1) & (pp == 1)),
        Rule("ep does not divide the experts", ("ep",), lambda ep: experts % ep != 0),
        Rule("ep does not divide tp x cp x dp", ("tp", "cp", "ep", "dp"),
             lambda tp, cp, ep, dp: (tp * cp * dp) % ep != 0),
        Rule("accelerators are not whole nodes", world, lambda tp, cp, pp, dp: tp * cp * pp * dp % a_node != 0),
        Rule("accelerators exceed max_accelerators", world, lambda tp, cp, pp, dp: tp * cp * pp * dp > most),
        Rule("global_batch is not a multiple of dp x micro_batch", ("dp", "micro_batch"),
             lambda dp, micro_batch: batch % (dp * micro_batch) != 0),
        Rule("vpp needs micro-batches that are a multiple of pp", ("pp", "vpp", "dp", "micro_batch"),
             lambda pp, vpp, dp, micro_batch: (vpp > 1) & (batch // (dp * micro_batch) % pp != 0)),
    ]  # fmt: skip
    if limits.max_nodes is not None:
        joined = limits.max_nodes * a_node
        found.append(Rule("more nodes than can be joined", world, lambda tp, cp, pp, dp: tp * cp * pp * dp > joined))
    for key, one in (("nodes", a_node), ("accelerators", 1)):
        if key in limits.pins:
            found.append(_pinned(key, int(limits.pins[key]) * one, world))
    return found


def _pinned(key: str, wanted: int, world: tuple[str, ...]) -> Rule:
    return Rule(f"{key} are not those pinned", world, lambda tp, cp, pp, dp: tp * cp * pp * dp != wanted)


def splits(layers: int, pp: Integers, vpp: Integers) -> Flags:
    """Whether the layers split over the stages, evenly or with the ends counted.

    Uneven: embedding and loss count as a layer each (126 layers on 8 or 16 stages), as Llama 3.1 405B is run.
    """
    slots = pp * vpp
    uneven = (pp > 1) & (pp & (pp - 1) == 0) & ((layers + 2) % slots == 0)
    return np.asarray((slots <= layers) & ((layers % slots == 0) | uneven))


def kv_heads(model: Model) -> int:
    """Key and value heads that tensor parallelism splits (the least of the attention layers)."""
    mixers = [b.mixer for b in model.blocks if b.mixer is not None and b.mixer.kind != "state-space"]
    return min((m.kv_heads for m in mixers), default=1)


def _values(model: Model, training: Training, limits: Limits) -> dict[str, Integers]:
    batch, plain = training.batch_sequences, training.framework in _DATA_PARALLEL_ONLY
    most = min(limits.max_accelerators, LARGEST_WORLD)
    if limits.max_nodes is not None:
        most = min(most, limits.max_nodes * limits.accelerators_a_node)
    if plain:
        free = {"tp": [1], "cp": [1], "pp": [1], "vpp": [1], "ep": [1]}
    else:
        stages = sorted({*divisors(model.layers, LARGEST_PIPELINE), *divisors(model.layers + 2, LARGEST_PIPELINE)})
        free = {
            "tp": [t for t in divisors(model.heads, limits.scale_up_domain) if t <= most],
            "cp": _powers(max(1, min(training.sequence_length // LEAST_CONTEXT, 256, most))),
            "pp": [p for p in stages if p <= most],
            "vpp": stages,
            "ep": [e for e in divisors(max(model.experts, 1), LARGEST_EXPERT_PARALLEL) if e <= most],
        }
    free["dp"] = divisors(batch, most)
    free["micro_batch"] = divisors(batch, LARGEST_MICRO_BATCH)
    return {n: np.array([limits.pins[n]] if n in limits.pins else free[n], dtype=np.int64) for n in AXES}


def _powers(limit: int) -> list[int]:
    return [2**i for i in range(limit.bit_length()) if 2**i <= limit]


def _pairs(framework: str, pins: Mapping[str, int | str]) -> list[tuple[int, int]]:
    """Every sharding with every recompute, as codes."""
    shardings = (str(pins["sharding"]),) if "sharding" in pins else SHARDING_OF[framework]
    recomputes = (str(pins["recompute"]),) if "recompute" in pins else RECOMPUTES
    return [(SHARDINGS.index(s), RECOMPUTES.index(r)) for s in shardings for r in recomputes]


def _without_idle_sharding(space: Space, framework: str) -> Space:
    """Sharded states over one rank are not sharded: of such twins only the first is kept."""
    lay, first = space.layouts, SHARDINGS.index(SHARDING_OF[framework][0])
    if not space.legal or not (lay.sharding == first).any():
        return space
    idle = (lay.dp * lay.cp == 1) & (lay.sharding != first)
    if not idle.any():
        return space
    kept = Layouts(*(getattr(lay, f.name)[~idle] for f in fields(lay)))
    return replace(space, layouts=kept, refused={**space.refused, "sharding over a single rank": int(idle.sum())})
