"""Facts on disk become nouns: one TOML file a thing, no figure without unit and source.

People add their own accelerators, nodes, models and offers with a folder of the same form.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from clusterwright.catalog.money import figures_of, load_owning, load_renting
from clusterwright.errors import InputError, unknown
from clusterwright.files import read_text
from clusterwright.hardware import Accelerator, FabricKind, Node
from clusterwright.market import Figure, Offer, Owning, PricePerNodeHour, Renting
from clusterwright.model import Model
from clusterwright.noun import Noun

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

T = TypeVar("T", Accelerator, Node, Model)


class Source(Noun):
    """Where figures were read, and when."""

    title: str
    url: str
    seen: str


class Shelf(Mapping[str, T]):
    """Nouns of one kind by name, each file read when it is first asked for."""

    def __init__(
        self, kind: type[T], what: str, files: dict[str, Traversable | Path], sources: Mapping[str, Source]
    ) -> None:
        self.kind: type[T] = kind
        self.what = what
        self._files, self._sources = files, sources
        self._read: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._read:
            self._read[name] = self._load(self._files[name])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def get_or_refuse(self, name: str) -> T:
        """The noun of that name.

        Raises:
            InputError: there is none; names the nearest right ones.
        """
        if name not in self._files:
            raise unknown(self.what, name, self._files)
        return self[name]

    def _load(self, file: Traversable | Path) -> T:
        found: T = _validated(self.kind, _document(file), str(file))
        if not found.sources:
            msg = f"{file}: no sources; every figure needs one"
            raise InputError(msg)
        missing = [s for s in found.sources if s not in self._sources and "://" not in s]
        if missing:
            msg = f"{file}: source {', '.join(missing)} is not in sources.toml"
            raise InputError(msg)
        return found


class Catalogue:
    """Everything known: accelerators, nodes, models, offers and their sources."""

    def __init__(self, folders: list[Traversable | Path]) -> None:
        self.sources = _sources(folders)
        self.accelerators = Shelf(Accelerator, "accelerator", _files(folders, "accelerators"), self.sources)
        self.nodes = Shelf(Node, "node", _files(folders, "nodes"), self.sources)
        self.models = Shelf(Model, "model", _files(folders, "models"), self.sources)
        self.offers = _merged(folders)
        self._folders = tuple(folders)

    @functools.cached_property
    def owning(self) -> Owning:
        """What owning a cluster takes."""
        return load_owning(self._folders)

    @functools.cached_property
    def renting(self) -> Renting:
        """What renting costs besides the nodes."""
        return load_renting(self._folders)

    @property
    def money(self) -> dict[str, Figure]:
        """Every figure of owning and renting by its name."""
        return figures_of(self.owning, self.renting)

    @property
    def date(self) -> date:
        """The day of the newest offer."""
        return max((offer.seen for offer in self.offers), default=date(1970, 1, 1))

    def accelerator(self, name: str) -> Accelerator:
        """An accelerator by name; an unknown name is refused with the nearest right ones."""
        return self.accelerators.get_or_refuse(name)

    def node(self, name: str) -> Node:
        """A node by name; an unknown name is refused with the nearest right ones."""
        return self.nodes.get_or_refuse(name)

    def model(self, name: str) -> Model:
        """A model by name; an unknown name is refused with the nearest right ones."""
        return self.models.get_or_refuse(name)

    def node_of(self, offer: Offer) -> Node:
        """The node of an offer; where it is unknown, one of its accelerators without a network."""
        if offer.node is not None:
            return self.node(offer.node)
        return Node(
            name=f"{offer.provider}:{offer.instance}",
            provider=offer.provider,
            accelerator=offer.accelerator,
            accelerators=offer.accelerators,
            scale_up_domain=offer.accelerators,
            nics=0,
            nic_bits_per_s=0.0,
            fabric=FabricKind.UNKNOWN,
            sources=(offer.source,),
        )

    @property
    def providers(self) -> list[str]:
        """Who sells."""
        return sorted({offer.provider for offer in self.offers})


@functools.lru_cache(maxsize=4)
def load(extra: Path | None = None) -> Catalogue:
    """The shipped catalogue, with a folder of people's own parts when given.

    Raises:
        InputError: the folder is missing, or a file in it is wrong; names file and key.
    """
    folders: list[Traversable | Path] = [resources.files("clusterwright.catalog")]
    if extra is not None:
        if not extra.is_dir():
            msg = f"{extra}: no such folder; it holds accelerators/, nodes/, models/, offers.toml, sources.toml"
            raise InputError(msg)
        folders.append(extra)
    return Catalogue(folders)


def _files(folders: list[Traversable | Path], kind: str) -> dict[str, Traversable | Path]:
    found: dict[str, Traversable | Path] = {}
    for folder in folders:
        room = folder / kind
        if room.is_dir():
            found |= {
                f.name.removesuffix(".toml"): f
                for f in sorted(room.iterdir(), key=lambda f: f.name)
                if f.name.endswith(".toml")
            }
    return found


def _document(file: Traversable | Path) -> dict[str, Any]:
    text = read_text(file) if isinstance(file, Path) else file.read_text(encoding="utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        msg = f"{file}: not valid TOML: {error}"
        raise InputError(msg) from None


def _validated(kind: type[Any], document: dict[str, Any], where: str) -> Any:  # noqa: ANN401 - an instance of kind
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, f['loc']))}: {f['msg']}" for f in error.errors())
        msg = f"{where}: {faults}"
        raise InputError(msg) from None


def _sources(folders: list[Traversable | Path]) -> dict[str, Source]:
    found: dict[str, Source] = {}
    for folder in folders:
        file = folder / "sources.toml"
        if file.is_file():
            found |= {key: _validated(Source, value, f"{file}: {key}") for key, value in _document(file).items()}
    return found


def _merged(folders: list[Traversable | Path]) -> tuple[Offer, ...]:
    """Offers of all folders; a later folder's price of an instance on a term replaces those of earlier folders."""
    kept: list[Offer] = []
    for folder in folders:
        fresh = list(_offers(folder))
        known = {(o.provider, o.instance, o.term) for o in fresh}
        kept = [o for o in kept if (o.provider, o.instance, o.term) not in known] + fresh
    return tuple(kept)


def _offers(folder: Traversable | Path) -> Iterator[Offer]:
    file = folder / "offers.toml"
    if not file.is_file():
        return
    document = _document(file)
    entries = document.get("offer", [])
    if set(document) - {"offer"} or not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        msg = f"{file}: only [[offer]] tables are wanted"
        raise InputError(msg)
    for i, entry in enumerate(entries):
        where = f"{file}: offer {i + 1}"
        values = {"node": None, **entry}
        price = values.pop("usd_per_node_hour", None)
        if price is None or not values.get("source"):
            msg = f"{where}: {'usd_per_node_hour' if price is None else 'source'} is missing"
            raise InputError(msg)
        values["price"] = _validated(PricePerNodeHour, {"usd": price}, where)
        yield _validated(Offer, values, where)
