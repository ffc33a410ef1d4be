"""Output of many in one file: what pdsh, srun and their like put before every line, and whose line it is."""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterwright.probes.reading import CONTEXT_LINES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clusterwright.health import Where
    from clusterwright.probes.reading import Line

MARK = "\n"
"""Between a file's name and the label of one of its speakers."""
SURE_LINES = 5
"""So many lines in a row must bear a label, before it is taken for one; of a shorter file all, and name hosts."""
FEW_LINES = 2
"""A file of fewer lines has no labels."""
LABEL = re.compile(rb"^ ?(?:(?P<node>[A-Za-z][\w.-]*?-?\d+)(?:: | \| )|(?P<rank>\d{1,7}): (?P<port>[\w.@-]+: <)?)")
DEVICE = re.compile(
    rb"(?:eth|en[ospx]|ib|mlx|nvme|sd|gpu|cuda|rank|pcie|nvidia|amdgpu|dm-|md|loop|bond|swp|veth|cpu|port|link|step|iter"
    rb"|epoch|channel|hl|card|tty|xid|test|line|stage|layer|trial|fold)",
    re.IGNORECASE,
)
"""Names that begin like this are no hosts."""


@dataclass(slots=True)
class Labels:
    """Decides for every file, by its first lines, whether they bear labels."""

    file: str = ""
    borne: bool | None = None
    """Whether the lines of the file bear labels; None while it is not decided."""
    held: list[Line] = field(default_factory=list)
    """The first lines of the file, until it is decided."""
    last: dict[str, deque[bytes]] = field(default_factory=dict)
    """The last lines of each speaker."""

    def split(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The same lines; one with a label loses it and is of its speaker's part of the file."""
        for line in lines:
            if line.file != self.file:
                yield from self._decide(borne=self._all_of_hosts())
                self.file, self.borne = line.file, None
            if self.borne is None:
                self.held.append(line)
                if label_of(line.raw) is None:
                    yield from self._decide(borne=False)
                elif len(self.held) >= SURE_LINES:
                    yield from self._decide(borne=True)
            else:
                yield self._without(line) if self.borne else line
        yield from self._decide(borne=self._all_of_hosts())

    def _all_of_hosts(self) -> bool:
        """Whether a file that ended early names a host before every line."""
        labels = [label_of(line.raw) for line in self.held]
        return len(labels) >= FEW_LINES and all(label and not label[0].startswith("rank") for label in labels)

    def _decide(self, *, borne: bool) -> Iterator[Line]:
        held, self.held, self.borne = self.held, [], borne
        for line in held:
            yield self._without(line) if borne else line

    def _without(self, line: Line) -> Line:
        label = label_of(line.raw)
        if label is None:
            return line
        name, end = label
        before = tuple(other[found[1] :] for other in line.before if (found := label_of(other)) and found[0] == name)
        file = f"{line.file}{MARK}{name}"
        kept = self.last.setdefault(file, deque(maxlen=CONTEXT_LINES))
        last = before if len(before) >= len(kept) else tuple(kept)
        kept.append(line.raw[end:])
        return dataclasses.replace(line, file=file, raw=line.raw[end:], piece=b"\n".join(last), last=())


def label_of(raw: bytes) -> tuple[str, int] | None:
    """The label of a line and where the rest begins.

    >>> label_of(b"node3: Killed"), label_of(b"12: step 4"), label_of(b"eth0: Link is down"), label_of(b"2: eth0: <UP>")
    (('node3', 7), ('rank12', 4), None, None)
    """
    match = LABEL.match(raw)
    if match is None or match["port"] or (match["node"] and DEVICE.match(match["node"])):
        return None
    return (match["node"].decode() if match["node"] else f"rank{int(match['rank'])}"), match.end()


def file_of(name: str) -> str:
    r"""The file, without the label of a speaker.

    >>> file_of("all.log\nnode3"), file_of("all.log")
    ('all.log', 'all.log')
    """
    return name.partition(MARK)[0]


def label_in(name: str) -> str | None:
    r"""The label that a file's name bears.

    >>> label_in("all.log\nnode3"), label_in("all.log")
    ('node3', None)
    """
    return name.partition(MARK)[2] or None


def named(place: Where, file: str) -> Where:
    """The place with the host of the label, where the line itself names none."""
    label = label_in(file)
    if label is None or place.node is not None or label.startswith("rank"):
        return place
    return place.model_copy(update={"node": label})
