"""What accelerators, fabrics and software stacks reach in practice: the shipped curves, as values."""

from __future__ import annotations

import functools
import math
import tomllib
from importlib import resources
from typing import Any, Literal

from pydantic import Field

from clusterwright.hardware import Accelerator, FabricKind  # noqa: TC001 - pydantic reads the annotations
from clusterwright.noun import Noun

TUNED = {"any": "megatron-bridge", "megatron": "megatron-bridge"}
"""What a workload's framework is timed as: Megatron as its maker's own recipes run it. Runs of others that say
Megatron-LM are matched as such; they were slower."""


BLOCKS = ("mxfp8", "nvfp4")
"""Number formats with a scale a block."""


class Product(Noun):
    """Matrix products of one number format: the factors of `laws.roofline.matrix_product_time`."""

    share: float = Field(gt=0)
    half_depth: float = Field(ge=0)
    waves: float = Field(ge=0)
    sustained: float = Field(default=1.0, gt=0)
    """Speed through a whole step over that of a short burst: clocks fall at the power limit [1]."""
    error: float = Field(default=0.0, ge=0)
    """Median error against the measured kernels; 0 where none were [1]."""


class Flash(Noun):
    """Flash attention in bf16: the factors of `laws.roofline.attention_time`."""

    share: float = Field(gt=0)
    backward: float = Field(gt=0)
    """Share of the peak that the backward kernel reaches, over that of the forward kernel."""
    half_length: float = Field(ge=0)
    half_head: float = Field(ge=0)
    sustained: float = Field(default=1.0, gt=0)
    """As for products [1]."""
    error: float = Field(default=0.0, ge=0)


class Curve(Noun):
    """What kernels and links of one accelerator architecture sustain."""

    bf16: Product
    fp8: Product
    fp4: Product
    start: float = Field(ge=0)
    """Time to start and end a kernel [s]."""
    attention: Flash
    """cuDNN, or FlashAttention-3."""
    attention_2: Flash
    """FlashAttention-2."""
    reference_w: float
    """Power limit at which the shares hold [W]."""
    memory: float
    up: float
    reduce_up: float
    kind: Literal["fitted", "measured", "estimated"]
    """Whether runs were fitted, or kernels measured alone, or neither."""


class Wire(Noun):
    """What collectives sustain on one kind of network: share of bandwidth, latency of a hop, time to fill a ring."""

    out: float
    latency: float
    fill: float


class Hidden(Noun):
    """Share of each communication that a stack hides under computing."""

    dp: float
    tp: float
    ep: float
    pp: float


class Stack(Noun):
    """A software stack, as far as time and memory know it."""

    name: str
    match: tuple[str, ...]
    until: float = 9999.0
    """First year in which it no longer holds."""
    since: float = 0.0
    """First year in which it holds."""
    sequence_parallel: bool
    flash: bool
    flash_generation: int
    fused: bool
    factor: float = Field(gt=0)
    spread: float = Field(ge=0)
    gain: float = Field(default=0.0, ge=0)
    """Growth of its speed a year, up to ``gain_until`` where ``factor`` holds [1]."""
    gain_blocks: float = Field(default=0.0, ge=0)
    """The same of products in number formats with a scale a block, beyond it: mxfp8 and nvfp4 were new in 2025 [1]."""
    gain_until: float = 0.0
    host: float
    step: float
    hidden: Hidden
    gradient: float
    """Bytes of a gradient that is kept and added to [B]."""
    sent: float = 0.0
    """Bytes of a gradient that is sent; 0: as it is kept [B]."""
    host_experts: float = 4e-3
    """Time to launch and route one mixture layer, forward and backward, beyond a dense one [s]."""
    pipeline_host: float = 0.0
    """Growth of the launch time under a pipeline over several nodes, for every tensor-parallel rank: blocking messages
    serialise them."""
    tensor_hop: float = Field(default=0.0, ge=0)
    """Wait of each tensor-parallel collective for every node that its group spans beyond the first [s]."""
    stall: float = Field(default=0.0, ge=0)
    """Time that each blocking message of a pipeline stalls in a job with a bad node [s]."""
    stall_reduces: float = Field(default=0.0, ge=0)
    """How many such times the all-reduce of whole gradients takes there [1]."""
    stalling_nodes: float = Field(default=0.0, ge=0, lt=1)
    """Share of nodes that are bad in that way [1]."""
    context: Literal["ring", "all-gather", "all-to-all"] = "ring"
    """How attention sees the other parts of a sequence: Megatron passes them around, torchtitan and XLA gather them,
    DeepSpeed-Ulysses exchanges heads for tokens."""
    compiled_factor: float | None = None
    """Factor of compiled steps, where it is not ``factor``; fp8 and narrower are compiled, as torchao's float8 is."""
    wraps_layers: bool = False
    """Whether it reduces gradients a layer at a time under ZeRO-2 too, and overlaps that, as FSDP does."""
    bucket_bytes: float = 25e6
    """Gradients that are reduced by one call; torch's DistributedDataParallel takes 25 MB [B]."""
    graphs: dict[str, float] = Field(default_factory=dict)
    """Accelerators, and the year since when there the recipes for mixtures in mxfp8 run a whole iteration as one CUDA
    graph, in which nothing waits for the host and the grouped products of experts run as one large product would and
    hold their casts and activation."""
    overlaps_experts: tuple[str, ...] = ("",)
    """Beginnings of the architectures on which its recipes overlap expert-parallel communication; elsewhere none is."""
    graphs_hide: float = Field(default=0.0, ge=0, le=1)
    """Share of expert-parallel communication that these recipes overlap [1]."""

    def aged(self, gain: float, year: float) -> float:
        """Time as of a year over that of ``gain_until``; nothing is known of more than four years back [1]."""
        return float((1.0 + gain) ** min(max(self.gain_until - year, 0.0), 4.0))

    def hides_experts(self, accelerator: Accelerator, precision: str, year: float) -> float:
        """Share of expert-parallel communication that is overlapped [1]."""
        if self.graphed(accelerator.name, precision, year):
            return self.graphs_hide
        return self.hidden.ep if accelerator.architecture.startswith(self.overlaps_experts) else 0.0

    def graphed(self, accelerator: str, precision: str, year: float) -> bool:
        """Whether mixtures run so."""
        return precision == "mxfp8" and year >= self.graphs.get(accelerator.partition("-")[0], math.inf)


class LawFactors(Noun):
    """Fitted figures that hold for every accelerator and stack."""

    softmax_passes: float
    straggle: float
    elementwise: float
    power_exponent: float
    group_share: float
    """Speed of a group of products over that of one large product."""
    group_start: float
    """Time that a product of a group adds [s]."""


class Efficiency(Noun):
    """Everything the training estimate takes from measurements."""

    sources: dict[str, str]
    law: LawFactors
    architecture: dict[str, Curve]
    fabric: dict[str, Wire]
    stack: tuple[Stack, ...]

    def curve(self, architecture: str) -> Curve:
        """The curve of an architecture; names are matched by their beginning (``gaudi2`` is a ``gaudi``)."""
        for name, curve in self.architecture.items():
            if architecture.lower().startswith(name):
                return curve
        return self.architecture["ampere"]

    def fitted(self, architecture: str) -> bool:
        """Whether runs on that very architecture were fitted."""
        return architecture in self.architecture and self.architecture[architecture].kind == "fitted"

    def wire(self, kind: FabricKind) -> Wire:
        """The figures of a network."""
        return self.fabric[kind.value]

    def stack_of(self, framework: str, year: float) -> Stack:
        """The first stack whose words are in the framework's name and whose time has not passed."""
        name = TUNED.get(framework, framework.lower())
        return next(s for s in self.stack if s.since <= year < s.until and any(word in name for word in s.match))


@functools.cache
def shipped() -> Efficiency:
    """The shipped curves (package data, read once)."""
    text = resources.files("clusterwright.estimators").joinpath("efficiency.toml").read_text(encoding="utf-8")
    document: dict[str, Any] = tomllib.loads(text)
    return Efficiency.model_validate(document)
