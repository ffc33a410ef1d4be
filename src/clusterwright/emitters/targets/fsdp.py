"""Plain torch: a device mesh for FSDP2 or HSDP as a module, and the launcher of the program that uses it."""

from __future__ import annotations

from clusterwright.emitters.launch import of_framework
from clusterwright.emitters.programs.program import KEYS_NEEDED
from clusterwright.emitters.target import Target

TARGET = Target(
    "fsdp",
    "device mesh and FSDP2 wrapping for plain torch, and a launcher for your training program",
    KEYS_NEEDED,
    ("lr", "program", "dscp"),
    of_framework("fsdp"),
)
