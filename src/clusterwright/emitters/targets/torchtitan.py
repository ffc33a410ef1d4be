"""torchtitan: recipe (0.3) or TOML (0.2), launcher, and the rank map."""

from __future__ import annotations

from clusterwright.emitters.launch import of_framework
from clusterwright.emitters.programs.program import KEYS_NEEDED
from clusterwright.emitters.target import Target

TARGET = Target(
    "torchtitan",
    "recipe (a Python function) for torchtitan 0.3 or TOML for 0.2, and launcher, with the rank map",
    KEYS_NEEDED,
    ("lr", "torchtitan_version", "dscp"),
    of_framework("torchtitan"),
)
