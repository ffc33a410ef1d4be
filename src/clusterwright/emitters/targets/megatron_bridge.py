"""Megatron Bridge: a program with its whole configuration, its launcher, and the rank map."""

from __future__ import annotations

from clusterwright.emitters.launch import of_framework
from clusterwright.emitters.programs.program import KEYS_NEEDED
from clusterwright.emitters.target import Target

TARGET = Target(
    "megatron-bridge",
    "Megatron Bridge 0.6 program with its whole configuration, and launcher, with the rank map",
    KEYS_NEEDED,
    ("lr", "rotary_base", "dscp"),
    of_framework("megatron-bridge"),
)
