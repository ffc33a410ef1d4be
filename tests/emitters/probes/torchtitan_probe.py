# mypy: ignore-errors
"""Give emitted recipes (0.3) or TOML files (0.2) to torchtitan's own ConfigManager, a folder each."""

from __future__ import annotations

import json
import sys

from torchtitan.config import ConfigManager


def read(folder: str, arguments: list[str]) -> dict[str, int]:
    """Degrees as torchtitan has them."""
    sys.path.insert(0, folder)
    found = ConfigManager().parse_args(arguments).parallelism
    sys.path.remove(folder)
    sys.modules.pop("recipe", None)
    return {
        "tp": found.tensor_parallel_degree,
        "cp": found.context_parallel_degree,
        "pp": found.pipeline_parallel_degree,
        "ep": found.expert_parallel_degree,
        "dp": found.data_parallel_shard_degree * found.data_parallel_replicate_degree,
    }


if __name__ == "__main__":
    answers = [read(*case) for case in json.load(sys.stdin)]
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
