"""Physical things at nameplate. Bandwidth is one direction of one accelerator or port; peaks are dense."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import Field

from clusterwright.noun import Noun


class FabricKind(StrEnum):
    """How nodes talk to one another."""

    INFINIBAND = "infiniband"
    ROCE = "roce"
    EFA = "efa"
    SLINGSHOT = "slingshot"
    TCP = "tcp"
    NONE = "none"
    UNKNOWN = "unknown"


class Accelerator(Noun):
    """One accelerator as frameworks count it (a GPU, an MI250X GCD, a PVC tile)."""

    name: str
    vendor: Literal["nvidia", "amd", "intel"]
    architecture: str
    memory_bytes: float = Field(gt=0)
    memory_bytes_per_s: float = Field(gt=0)
    peak_flop_per_s: dict[str, float]
    """Dense peak by number format: fp32, tf32, fp16, bf16, fp8, fp4 [FLOP/s]."""
    achievable: dict[str, float] = Field(default_factory=dict)
    """Measured share of the dense peak on large matrix products, by number format [1]."""
    multiprocessors: int = Field(gt=0)
    scale_up_bytes_per_s: float = Field(ge=0)
    """To all peers of the scale-up domain together, one direction [B/s]."""
    scale_up_peer_bytes_per_s: float = Field(ge=0)
    """To one peer, one direction [B/s]; less than to all where links are point to point (MI300X)."""
    switched: bool = True
    """Whether the scale-up links go through switches (any peer at full rate)."""
    power_w: float = Field(gt=0)
    sources: tuple[str, ...] = ()


class Node(Noun):
    """A server or cloud instance."""

    name: str
    provider: str
    accelerator: str
    accelerators: int = Field(gt=0)
    scale_up_domain: int = Field(gt=0)
    """Accelerators that share one scale-up domain (72 for NVL72, else those of the node)."""
    nics: int = Field(ge=0)
    nic_bits_per_s: float = Field(ge=0)
    """Of one scale-out NIC, one direction [bit/s]."""
    fabric: FabricKind
    power_w: float | None = None
    """Largest draw of the node [W]; unknown when none."""
    sources: tuple[str, ...] = ()

    @property
    def network_bytes_per_s(self) -> float:
        """Scale-out bandwidth of the node, one direction [B/s]."""
        return self.nics * self.nic_bits_per_s / 8.0

    @property
    def scales_out(self) -> bool:
        """Whether several of these nodes can be joined by a network that is known."""
        return self.fabric not in (FabricKind.NONE, FabricKind.UNKNOWN) and self.network_bytes_per_s > 0


class Fabric(Noun):
    """A scale-out network as designed: counts of switches and cables."""

    topology: str
    tiers: int
    leaf: int
    spine: int
    core: int
    nic_bits_per_s: float
    cables: int
    capex_usd: float | None = None
    power_w: float | None = None


class FabricDesign(Fabric):
    """A scale-out network in full: what it joins, its cables by kind, and how far it grows."""

    nodes: int = Field(ge=1)
    nics: int = Field(ge=1)
    radix: int = Field(ge=2)
    oversubscription: float = Field(gt=0)
    node_leaf_cables: int
    leaf_spine_cables: int
    spine_core_cables: int
    max_nodes: int
    """Most nodes with the same number of tiers."""
    bisection_bytes_per_s: float
    """Between two halves of the nodes, all rails together, one direction [B/s]."""
    most_hops: int
    """Switches on the longest path of one network."""
    device_leaf: int = 0
    """Of the leaves, those of storage; 0 where storage and nodes share leaves or there is none."""
    device_leaf_cables: int = 0
    """From storage, or from what else is no node, to leaves."""

    @property
    def switches(self) -> int:
        """Leaf, spine and core switches together."""
        return self.leaf + self.spine + self.core


class SwitchPart(Noun):
    """A switch that can be bought."""

    name: str
    ports: int = Field(gt=0)
    bits_per_s: float = Field(gt=0)
    """Of one port [bit/s]."""
    fabric: FabricKind
    usd: float | None = None
    """None where no price was found."""
    watts: float | None = None
    """Largest draw with optics; none where none was found."""
    source: str = ""


class FabricParts(Noun):
    """What a switch and a link cost and draw, at the one size that was priced; other sizes scale with bandwidth."""

    switch_ports: int = Field(gt=0)
    bits_per_s: float = Field(gt=0)
    """Of one port of the priced switch and one end of the priced link [bit/s]."""
    switch_usd: float = Field(gt=0)
    switch_w: float = Field(gt=0)
    node_link_usd: float = Field(gt=0)
    """Cable and optics of one link from a node to a switch, both ends."""
    switch_link_usd: float = Field(gt=0)
    """Cable and optics of one link between switches, both ends."""
    node_optics_w: float = Field(ge=0)
    """Of the optics at the node's end; those of a switch are in the switch's figure."""
    ports_a_transceiver: int = Field(default=2, gt=0)
    """Ports of a switch or a node that one optical module serves."""
    switches: tuple[SwitchPart, ...] = ()
    """Switches by name, with and without a price."""
    sources: tuple[str, ...] = ()


class FailureRates(Noun):
    """How often accelerators interrupt a job, and how long it takes to go on."""

    mtbf_s: float = Field(gt=0)
    """Accelerator-seconds of running per interruption of the job."""
    hardware_share: float = Field(gt=0, le=1)
    """Share of interruptions that take a node out for repair."""
    reclaim_share: float = Field(default=0.0, ge=0, le=1)
    """Share of interruptions in which the provider takes a spot node back."""
    detection_s: float = Field(ge=0)
    restart_s: float = Field(ge=0)
    repair_s: float = Field(gt=0)
    host_copy_bytes_per_s: float = Field(gt=0)
    """Of one accelerator into host memory, for asynchronous saves [B/s]."""
    save_overhead_s: float = Field(ge=0)
    """By which an asynchronous save stops the job besides the copy, whatever its size [s]."""
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class StorageSystem(Noun):
    """A file system as it was measured, with the size of the installation; the name alone says nothing."""

    name: str
    scale: str
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    metric: str
    date: str
    source: str
    guideline: bool = False
    """A vendor's sizing advice or peak instead of a measurement."""


class Storage(Noun):
    """What the storage must carry for this plan."""

    write_bytes_per_s: float
    checkpoint_bytes: float
    checkpoint_interval_s: float


class Cluster(Noun):
    """Nodes of one kind under one fabric."""

    node: Node
    accelerator: Accelerator
    nodes: int = Field(gt=0)
    spares: int = Field(default=0, ge=0)

    @property
    def accelerators(self) -> int:
        """Accelerators that the job runs on."""
        return self.nodes * self.node.accelerators
