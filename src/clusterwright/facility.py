"""Everything of a cluster besides its nodes: networks, storage, failures, power and space; what a plan says of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clusterwright.hardware import FabricDesign, FabricKind, StorageSystem
from clusterwright.noun import Noun


class FacilityFigures(Noun):
    """Figures of the catalogue that a facility is designed with."""

    pue: float = Field(ge=1)
    usd_per_kwh: float = Field(gt=0)
    usd_per_byte_month: float = Field(gt=0)
    """Of rented shared storage."""
    usd_per_byte: float = Field(gt=0)
    """Of bought shared storage."""
    storage_over_use: float = Field(ge=1)
    """Storage to rent or buy over what is used [1]."""
    storage_nics: int = Field(gt=0)
    """Ports of a node on the storage network."""
    storage_bits_per_s: float = Field(gt=0)
    """Of each of them [bit/s]."""
    storage_oversubscription: float = Field(gt=0)
    management_ports: int = Field(gt=0)
    """Ports of a management switch."""
    management_bits_per_s: float = Field(gt=0)
    management_uplinks: int = Field(gt=0)
    """Of each management switch to the storage network, which carries in-band traffic too."""
    systems: tuple[StorageSystem, ...] = ()
    causes: tuple[tuple[str, int], ...] = ()
    """Causes of interruptions and how often each was counted."""
    other_mtbf_s: tuple[tuple[str, float], ...] = ()
    """Other clusters, and accelerator-seconds of each an interruption, the worst first."""
    sources: tuple[str, ...] = ()


class CapexPart(Noun):
    """One line of what a network costs to buy."""

    part: str
    count: int
    usd_each: float | None
    """None where no price was found; such a part is named, never guessed."""
    usd: float | None
    source: str = ""


class Network(Noun):
    """One of the networks of a cluster."""

    purpose: Literal["compute", "storage", "management"]
    design: FabricDesign
    transceivers: int
    """Optical modules of all links, at the switches and at the nodes; 0 where copper does."""
    parts: tuple[CapexPart, ...]
    capex_usd: float | None
    """Of the parts that have a price; none where no part has one."""
    unpriced: tuple[str, ...] = ()
    uplinks: int = 0
    """Of the management network to the storage network, among whose cables they are counted."""


class Rail(Noun):
    """The leaves that one NIC of every node is plugged into."""

    nic: int
    accelerators: tuple[int, ...]
    """Of each node, those nearest to this NIC, by index."""
    leaves: tuple[int, ...]
    """By number; the first holds the first nodes."""


class RackPlan(Noun):
    """How the nodes stand in racks of one power."""

    rack_power_w: float
    nodes_a_rack: int
    racks: int | None
    """None where a rack does not carry one node."""


class NetworkChoice(Noun):
    """A network, and what it does to the step."""

    fabric: FabricKind
    node_bits_per_s: float
    """Of all NICs of a node together, one direction [bit/s]."""
    oversubscription: float
    step_time_s: float
    exposed_communication_s: float
    """All of it, that of the scale-up links too [s]."""
    cost_share: float
    """Of the step time, lost against a network without limit [1]."""


class NetworkNeed(Noun):
    """The smallest network of a kind that costs little, and what the next size up would buy."""

    fabric: FabricKind
    adequate: NetworkChoice | None
    next_up: NetworkChoice | None = None
    next_up_saves_s: float | None = None
    """Of a step [s]."""
    next_up_saves_usd: float | None = None
    """Of the run's cost [USD]."""


class SaveWay(Noun):
    """What saving one way does to the run, at its own best interval and on the storage of the plan."""

    mode: Literal["sync", "async", "memory"]
    stall_s: float
    interval_s: float
    stall_share: float
    goodput: float


class StorageNeed(Noun):
    """What the plan asks of its storage, and who was measured to deliver it."""

    checkpoint_bytes: float
    sync_write_bytes_per_s: float
    """For synchronous saves that stop the job for less than 1% of its time."""
    async_write_bytes_per_s: float
    """For a checkpoint that is written before the next begins."""
    read_bytes_per_s: float
    """That feeding the job needs."""
    checkpoints_kept: int
    data_bytes: float
    capacity_bytes: float
    """Of checkpoints and data together."""
    room_bytes: float
    """To rent or buy for that: a file system is not filled to the brim."""
    usd_per_month: float
    """To rent that room."""
    capex_usd: float
    """To buy it."""
    ways: tuple[SaveWay, ...]
    deliverers: tuple[StorageSystem, ...]
    """Systems measured (then: advised) at the synchronous write rate or more, the smallest first."""


class Improvement(Noun):
    """What one change alone would do to the run."""

    change: str
    goodput: float
    saves_usd: float
    """Of the run's cost [USD]."""


class Straggler(Noun):
    """What one slow accelerator costs a synchronous job: all others wait for it at every step."""

    slowest: float
    """Its speed over that of the others [1]."""
    synchronous_share: float
    """Of the paid speed that the job gets [1]."""
    lost_usd: float | None
    """Of what was paid, at most: what does not compute is not slowed; none where no price is known."""


class MixedKind(Noun):
    """One kind of accelerator of a mixture."""

    accelerator: str
    count: int
    flop_per_s: float
    """Of one, on large matrix products: measured, or its dense peak where that is not known."""
    measured: bool


class Mixture(Noun):
    """A synchronous job on several kinds of accelerator."""

    kinds: tuple[MixedKind, ...]
    synchronous_share: float
    """Of the speed of all of them together that the job gets [1]."""
    flop_per_s: float
    """That it gets: as many of the slowest kind."""
    best_alone: str
    """The kind whose accelerators alone are fastest."""
    best_alone_flop_per_s: float
    lost_usd_per_day: float | None

    @property
    def slowest(self) -> MixedKind:
        """The kind that sets the pace."""
        return min(self.kinds, key=lambda kind: kind.flop_per_s)


class SparesWorth(Noun):
    """What the spares cost, and what waiting for each repair would cost without them."""

    spares: int
    cost_usd: float
    """Their part of what the run costs [USD]."""
    goodput_without: float
    """Of the job that waits until a node is back, whenever one is taken out for repair."""
    saves_usd: float
    """What that waiting would cost, less what the spares cost [USD]."""


class Elsewhere(Noun):
    """The goodput that the run would have if its accelerators failed as often as those of another cluster."""

    cluster: str
    mtbf_s: float
    """Accelerator-seconds of a failure there."""
    goodput: float


class Failures(Noun):
    """How often the run stops, what that costs, and what would help."""

    mtbf_s: float
    per_day: float
    in_run: float
    """Interruptions expected in the whole run [1]."""
    causes: tuple[tuple[str, float], ...]
    """The most frequent, with their share of all failures; spot nodes taken away are apart."""
    reclaim_share: float = 0.0
    """Of the interruptions, those in which the provider takes a spot node back [1]."""
    spares: int
    interval_young_s: float
    interval_daly_s: float
    interval_exact_s: float
    goodput: float
    goodput_interval: tuple[float, float]
    """99% interval of a simulation of the same system."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """At the rates of other clusters, the worst first: what the goodput may well be here."""
    stall_share: float
    restart_share: float
    rework_share: float
    straggler: Straggler | None = None
    """Of the size that one was measured to be."""
    spares_worth: SparesWorth | None = None
    improvements: tuple[Improvement, ...]


class Power(Noun):
    """Power, space and energy of the cluster, against what the site grants."""

    it_power_w: float
    """Of nodes and all networks, at most [W]."""
    pue: float
    site_power_w: float
    cooling_power_w: float
    energy_j: float
    """Of the run, cooling included [J]."""
    energy_usd: float
    racks: tuple[RackPlan, ...]
    limit_w: float | None = None
    """What `[constraints] power` grants; it is held against the power of the computers."""
    within_limit: bool = True
    within_limit_with_cooling: bool = True


class Facility(Noun):
    """The rest of the cluster."""

    networks: tuple[Network, ...]
    """None where there is a single node."""
    rails: tuple[Rail, ...] = ()
    choices: tuple[NetworkChoice, ...] = ()
    """Every network weighed."""
    own: NetworkChoice | None = None
    """The one of them that the plan has; none where it has another."""
    needs: tuple[NetworkNeed, ...] = ()
    storage: StorageNeed | None = None
    failures: Failures | None = None
    power: Power

    def network(self, purpose: str) -> Network | None:
        """The network of a purpose."""
        return next((n for n in self.networks if n.purpose == purpose), None)
