"""DeepSpeed: ds_config.json with its reasons, and a launcher for your training program."""

from __future__ import annotations

from clusterwright.emitters.launch import of_framework
from clusterwright.emitters.programs.program import KEYS_NEEDED
from clusterwright.emitters.target import Target

TARGET = Target(
    "deepspeed",
    "ds_config.json with its reasons, and a launcher for your training program",
    KEYS_NEEDED,
    ("lr", "program", "dscp"),
    of_framework("deepspeed"),
)
