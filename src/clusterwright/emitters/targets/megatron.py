"""Megatron-LM: a launcher with all arguments, and the rank map."""

from __future__ import annotations

from clusterwright.emitters.launch import of_framework
from clusterwright.emitters.programs.program import KEYS_NEEDED
from clusterwright.emitters.target import Target

TARGET = Target(
    "megatron",
    "Megatron-LM arguments and launcher (core 0.19, 0.20), with the rank map",
    KEYS_NEEDED,
    ("lr", "rotary_base", "program", "dscp"),
    of_framework("megatron"),
)
