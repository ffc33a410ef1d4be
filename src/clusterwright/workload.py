"""What must be done: the workload document that people write, validated whole."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr, ValidationError, model_validator

from clusterwright import units
from clusterwright.errors import InputError, nearest
from clusterwright.files import read_text
from clusterwright.layout import Framework, Precision, RecomputeModule
from clusterwright.noun import Noun

_LARGEST = 2**53


def _wrap(parse: Any) -> Any:  # noqa: ANN401 - a parser of any quantity
    def run(value: object) -> float:
        try:
            number = float(parse(value, where=""))
        except InputError as error:
            raise ValueError(str(error).removeprefix(": ")) from None
        if number <= 0:
            msg = f"{value!r} must be greater than zero"
            raise ValueError(msg)
        return number

    return BeforeValidator(run)


def _count(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        msg = f"{value!r} is not a count; write for instance '1.5T'"
        raise ValueError(msg)  # noqa: TRY004 - pydantic collects ValueError
    try:
        number, _ = units.parse_count(value, where="")
    except InputError as error:
        raise ValueError(str(error).removeprefix(": ")) from None
    if not math.isfinite(number) or number < 1:
        msg = f"{value!r} must be a finite count of at least 1"
        raise ValueError(msg)
    return number


Duration = Annotated[float, _wrap(units.parse_duration)]
Money = Annotated[float, _wrap(units.parse_money)]
Power = Annotated[float, _wrap(units.parse_power)]
Rate = Annotated[float, _wrap(units.parse_rate)]
Size = Annotated[float, _wrap(units.parse_size)]
Tokens = Annotated[float, BeforeValidator(_count)]
PositiveInt = Annotated[StrictInt, Field(gt=0, le=_LARGEST)]
Names = Annotated[tuple[StrictStr, ...], Field(min_length=1)]


class ModelChoice(Noun):
    """A catalogue name, or the path of a Hugging Face config.json."""

    name: StrictStr | None = None
    config: StrictStr | None = None

    @model_validator(mode="after")
    def _one(self) -> ModelChoice:
        if (self.name is None) == (self.config is None):
            msg = "give either name (of the catalogue) or config (path of a config.json), not both or neither"
            raise ValueError(msg)
        return self


class Training(Noun):
    """A training run. Batches are in sequences."""

    tokens: Tokens
    sequence_length: PositiveInt
    global_batch: StrictInt | StrictStr
    precision: Precision | Literal["any"] = "bf16"
    """``any``: bf16 or fp8, whichever is better by the objective."""
    framework: Framework = "any"
    method: Literal["full", "lora", "qlora"] = "full"
    lora_rank: PositiveInt = 16
    optimizer: Literal["adamw", "adamw-8bit", "precision-aware"] = "adamw"
    """``precision-aware``: moments and gradients in bf16; ``adamw-8bit``: moments of a byte, no fp32 master weights."""
    routing: Literal["balanced", "natural"] = "balanced"
    """How tokens fall on experts: forced to be even, or as they will."""
    sample_length: PositiveInt | None = None
    """Mean tokens of the samples that are packed into a sequence, each of which sees itself alone; none: one sample."""
    offload: tuple[Literal["optimizer", "activations"], ...] = ()
    """What host memory holds instead of the accelerators'."""
    recompute_modules: tuple[RecomputeModule, ...] | None = None
    """What selective recompute drops, by Megatron-Core's names; none: as the framework does it."""

    @model_validator(mode="after")
    def _batch(self) -> Training:
        self.batch_sequences  # noqa: B018 - validates
        return self

    @property
    def batch_sequences(self) -> int:
        """Global batch in sequences; a batch in tokens is rounded to whole sequences."""
        try:
            number, in_tokens = units.parse_count(self.global_batch, where="global_batch")
        except InputError as error:
            raise ValueError(str(error)) from None
        sequences = number / self.sequence_length if in_tokens else number
        if not 1 <= sequences <= _LARGEST or (not in_tokens and sequences != int(sequences)):
            msg = f"global_batch: {self.global_batch!r} is not a whole number of sequences of at least 1"
            raise ValueError(msg)
        return max(1, round(sequences))

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run."""
        return math.ceil(self.tokens / (self.batch_sequences * self.sequence_length))


class Serving(Noun):
    """A stream of requests to be served."""

    requests_per_s: Annotated[float, Field(gt=0)] | None = None
    trace: StrictStr | None = None
    input_tokens: PositiveInt | None = None
    output_tokens: PositiveInt | None = None
    ttft_p99: Duration | None = None
    tpot_p99: Duration | None = None
    precision: Precision = "bf16"
    prefix_hit_rate: Annotated[float, Field(ge=0, le=1)] = 0.0


class Constraints(Noun):
    """What the answer must keep; every line optional."""

    deadline: Duration | None = None
    budget: Money | None = None
    accelerators: Names | None = None
    max_accelerators: PositiveInt | None = None
    providers: Names | None = None
    regions: Names | None = None
    terms: Annotated[tuple[Literal["on-demand", "spot", "reserved", "capacity-block"], ...], Field(min_length=1)] = (
        "on-demand",
        "spot",
    )
    own: StrictBool = False
    horizon: Duration | None = None
    utilisation: Annotated[float, Field(gt=0, le=1)] | None = None
    power: Power | None = None
    price_age: Duration | None = None
    """Oldest price that may be used; by default that of the catalogue."""


class StorageUse(Noun):
    """What the job keeps and takes away, where the defaults do not fit."""

    data: Size | None = None
    """Of the data set; by default its tokens as they lie on disk."""
    checkpoints_kept: PositiveInt | None = None
    egress: Size | None = None
    """That leave the provider in the end; by default nothing does."""


class ExistingCluster(Noun):
    """What is already there."""

    node: StrictStr
    nodes: PositiveInt
    nic_gbps: Annotated[float, Field(gt=0)] | None = None
    oversubscription: Annotated[float, Field(ge=1)] = 1.0
    storage_write: Rate | None = None
    usd_per_hour: Annotated[float, Field(ge=0)] = 0.0


class Preference(Noun):
    """Whether time or money matters more."""

    objective: Literal["cost", "time", "balanced"] = "cost"


class Site(Noun):
    """What only the user knows; targets say which keys they need."""

    image: StrictStr | None = None
    namespace: StrictStr | None = None
    queue: StrictStr | None = None
    partition: StrictStr | None = None
    account: StrictStr | None = None
    rdma_resource: StrictStr | None = None
    rdma_per_node: PositiveInt | None = None
    interface: StrictStr | None = None
    data_dir: StrictStr | None = None
    checkpoint_dir: StrictStr | None = None
    tokenizer: StrictStr | None = None
    data_claim: StrictStr | None = None
    checkpoint_claim: StrictStr | None = None
    hosts: tuple[StrictStr, ...] = ()
    webhook: StrictStr | None = None
    asn: PositiveInt | None = None


class Workload(Noun):
    """The whole document."""

    model: ModelChoice
    training: Training | None = None
    serving: Serving | None = None
    constraints: Constraints = Constraints()
    cluster: ExistingCluster | None = None
    storage: StorageUse = StorageUse()
    prefer: Preference = Preference()
    site: Site = Site()

    @model_validator(mode="after")
    def _something(self) -> Workload:
        if self.training is None and self.serving is None:
            msg = "a [training] or a [serving] section is wanted"
            raise ValueError(msg)
        return self


_SECTIONS: dict[str, type[Noun]] = {
    "model": ModelChoice,
    "training": Training,
    "serving": Serving,
    "constraints": Constraints,
    "cluster": ExistingCluster,
    "storage": StorageUse,
    "prefer": Preference,
    "site": Site,
}


def load_workload(path: Path | str, *, overrides: tuple[str, ...] = ()) -> tuple[Workload, dict[str, Any]]:
    """Read a workload document; returns it validated, and as written (with ``overrides`` applied).

    Args:
        path: TOML file.
        overrides: ``section.key=value`` texts that replace what the file says.

    Raises:
        InputError: every fault of the file at once, each with its place.
    """
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        msg = f"{path}: not valid TOML: {error}"
        raise InputError(msg) from None
    for text in overrides:
        _override(document, text)
    try:
        workload = Workload.model_validate(document)
    except ValidationError as error:
        lines = [_fault(dict(fault)) for fault in error.errors()]
        unique = list(dict.fromkeys(lines))
        msg = f"{path}: " + (
            unique[0] if len(unique) == 1 else f"{len(unique)} faults\n" + "\n".join(f"  - {line}" for line in unique)
        )
        raise InputError(msg) from None
    return workload, document


def config_path(choice: ModelChoice, workload_path: Path | str) -> Path:
    """Where the config.json is: relative to the workload's folder."""
    return Path(workload_path).parent / (choice.config or "")


def _override(document: dict[str, Any], text: str) -> None:
    name, found, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not found or not dot:
        msg = f"--set {text}: write section.key=value, for instance site.queue=training"
        raise InputError(msg)
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    place = document.setdefault(section, {})
    if isinstance(place, dict):
        place[key] = parsed


def _fault(fault: dict[str, Any]) -> str:
    loc = [str(part) for part in fault["loc"]]
    section = loc[0] if loc else ""
    place = (f"[{section}] " + ".".join(p for p in loc[1:2])).strip() if section else "document"
    if fault["type"] == "extra_forbidden":
        known = list(_SECTIONS) if len(loc) == 1 else list(_SECTIONS[section].model_fields)
        near = nearest(loc[-1], known, limit=1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
        what = f"unknown section [{loc[0]}]" if len(loc) == 1 else f"[{section}] unknown key {loc[-1]!r}"
        return f"{what}; {hint}"
    if fault["type"] == "missing":
        return f"{place} is missing"
    if fault["type"] == "literal_error":
        given = str(fault.get("input"))
        expected = str(fault["ctx"]["expected"])
        near = nearest(given, [w.strip("' ") for w in expected.replace(" or ", ",").split(",")], limit=1)
        return f"{place} = {given!r} is not one of {expected}" + (f"; did you mean {near[0]}?" if near else "")
    text = str(fault["msg"]).removeprefix("Value error, ")
    given = (
        ""
        if isinstance(fault.get("input"), dict) or repr(fault.get("input")) in text
        else f" (given: {fault.get('input')!r})"
    )
    return f"{place}: {text}{given}" if place != "document" else text
