"""What a training program is started with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterwright.emitters.bundle import Setting, Unsupported

HERE = 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"'
"""A shell line that finds the folder of the launcher."""
KEYS_NEEDED = ("data_dir", "checkpoint_dir", "tokenizer", "interface")
KEYS_TAKEN = ("lr", "rotary_base", "program", "torchtitan_version", "dscp")
"""Of every framework; a target that starts one of them alone takes what that one reads."""


@dataclass(frozen=True)
class Program:
    """A program to be started on every rank."""

    framework: str
    path: str
    """Of the program, or its name as a Python module; a shell text that may expand variables."""
    arguments: tuple[Setting, ...]
    environment: tuple[Setting, ...]
    module: bool = False
    """Whether ``path`` names a Python module instead of a file."""
    prepare: str = ""
    """Shell lines that run before it."""
    finished: str = ""
    """A shell test that holds when the run has no step left to do."""
    files: dict[str, str] = field(default_factory=dict)
    """Files it reads, beside the launcher."""
    unsupported: tuple[Unsupported, ...] = ()
