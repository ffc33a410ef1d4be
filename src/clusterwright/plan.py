"""The waist: what we intend. Everything above reads a `Plan`; nothing below knows it."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError, model_validator

from clusterwright.errors import InputError
from clusterwright.facility import Facility
from clusterwright.files import read_text
from clusterwright.hardware import Accelerator, Fabric, Node, Storage
from clusterwright.layout import Layout
from clusterwright.model import Model
from clusterwright.noun import Noun
from clusterwright.term import Term

if TYPE_CHECKING:
    from pathlib import Path

VERSION = 1


class Rent(Noun):
    """The offer a candidate is rented from."""

    provider: str
    term: str
    usd_per_accelerator_hour: float = Field(ge=0)
    seen: date | None
    region: str = ""
    instance: str = ""
    source: str = ""


class Estimate(Noun):
    """What a candidate is predicted to do."""

    step_time_s: float = Field(gt=0)
    interval: tuple[float, float]
    """80% interval of the step time, low and high [s]."""
    mfu: float
    tokens_per_s: float
    memory_bytes: float
    train_time_s: float
    goodput: float
    cost_usd: float
    power_w: float
    exposed_communication_s: float = 0.0
    commitment_usd: float | None = None
    """What is bound to be paid in whole for what is committed to; none: nothing is. [USD]"""


class Collective(Noun):
    """A collective that the run is expected to make, for the checks."""

    axis: Literal["tp", "cp", "pp", "ep", "dp"]
    operation: Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]
    ranks: int
    message_bytes: float
    per_step: float
    """Calls a rank makes in one step."""
    crosses_nodes: bool
    expected_s: float
    expected_bus_bytes_per_s: float


class Candidate(Noun):
    """A cluster with a layout, and its estimate."""

    accelerator: str
    node: str
    nodes: int = Field(ge=1)
    accelerators: int = Field(ge=1)
    nics: int | None = None
    """Of a node, on its network; none: not told."""
    spares: int = Field(default=0, ge=0)
    offer: Rent
    layout: Layout
    estimate: Estimate
    fabric: Fabric
    storage: Storage

    @model_validator(mode="after")
    def _whole(self) -> Candidate:
        if self.layout.accelerators != self.accelerators:
            msg = f"layout tp x cp x pp x dp = {self.layout.accelerators} is not accelerators = {self.accelerators}"
            raise ValueError(msg)
        return self

    @property
    def seller(self) -> str:
        """Who sells it, and on which term; of what is bought, which is said once, how many NICs are cabled."""
        terms = [*dict.fromkeys((self.offer.provider, self.offer.term))]
        if self.offer.term == "owned" and self.nics:
            terms.append(f"{self.nics} NIC{'' if self.nics == 1 else 's'} a node")
        return ", ".join(terms)


class Rejected(Noun):
    """A near miss, and the constraint that binds it."""

    candidate: Candidate | None = None
    binding_constraint: str
    why: str
    count: int = 0
    """Candidates or offers refused for this reason, where they were counted."""


class Case(Noun):
    """What a choice costs and how long it takes when one figure is another, and what would be chosen then."""

    factor: float
    """On the figure."""
    cost_usd: float
    train_time_s: float
    changes: bool
    """Whether another cluster, or another price, would be chosen."""
    choice: str
    """What would be chosen, in words; empty where nothing would meet the constraints."""


class Swing(Noun):
    """One uncertain figure at its two ends."""

    what: str
    low: Case
    high: Case


class Threshold(Noun):
    """A price at which the choice changes."""

    accelerator: str
    provider: str
    term: str
    usd_per_accelerator_hour: float
    """As it is."""
    changes_at_usd: float
    """Of an accelerator-hour."""
    choice: str
    """What is chosen then, in words."""


class Robustness(Noun):
    """What would change the choice."""

    swings: tuple[Swing, ...] = ()
    thresholds: tuple[Threshold, ...] = ()


class Upgrade(Noun):
    """What could be added to a cluster that is there, or done instead."""

    what: str
    train_time_s: float
    """Of the job then."""
    price_usd: float | None
    """Of the upgrade; none where it is not known, 0 where it is free."""
    source: str
    """Of the price, or what is in it."""


class Plan(Noun):
    """The chosen candidate, whom it beat and why, and what was assumed."""

    version: int = VERSION
    workload: dict[str, Any]
    site: dict[str, Any] = Field(default_factory=dict)
    model: Model
    hardware_node: Node | None = None
    hardware_accelerator: Accelerator | None = None
    chosen: Candidate | None
    facility: Facility | None = None
    """The rest of the chosen cluster: networks, storage, failures, power and space."""
    terms: Term | None = None
    collectives: tuple[Collective, ...] = ()
    reasons: tuple[str, ...] = ()
    robustness: Robustness = Robustness()
    upgrades: tuple[Upgrade, ...] = ()
    """Of a cluster that is there: what one more dollar would buy, the best first."""
    front: tuple[Candidate, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    exclusions: dict[str, int] = Field(default_factory=dict)
    """Candidates excluded, by reason; offers left out too."""
    candidates: int = 0
    """Looked at in all, legal or not."""
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    catalogue_date: date

    def to_json(self) -> str:
        """The plan document, as kept on disk."""
        return json.dumps(self.model_dump(mode="json"), indent=2, allow_nan=False) + "\n"


def read_plan(path: Path | str) -> Plan:
    """Read a plan document.

    Raises:
        InputError: not a plan, of a newer version, or with a value that cannot be; names file and key.
    """
    text = read_text(path)

    def refuse(name: str) -> float:
        msg = f"{path}: {name} is not JSON"
        raise InputError(msg)

    try:
        document = json.loads(text, parse_constant=refuse)
    except ValueError as error:
        msg = f"{path}: not a plan document (JSON: {error})"
        raise InputError(msg) from None
    if not isinstance(document, dict):
        msg = f"{path}: not a plan document (no object with `chosen`); write one with `clusterwright plan --out`"
        raise InputError(msg)
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        msg = f"{path}: plan version {version} is newer than {VERSION}, the newest known; update clusterwright"
        raise InputError(msg)
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        msg = f"{path}: {place}: {first['msg']}{more}"
        raise InputError(msg) from None


def require_chosen(plan: Plan, path: Path | str) -> Candidate:
    """The chosen candidate.

    Raises:
        InputError: the plan found none.
    """
    if plan.chosen is None:
        msg = f"{path}: chosen is null: this plan found nothing feasible"
        raise InputError(msg)
    return plan.chosen
