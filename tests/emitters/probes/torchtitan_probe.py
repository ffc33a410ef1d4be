# mypy: ignore-errors
"""Give an emitted recipe to torchtitan's own ConfigManager; the recipe lies on PYTHONPATH."""

from __future__ import annotations

import json
import sys

from torchtitan.config import ConfigManager

if __name__ == "__main__":
    read = ConfigManager().parse_args(["--module", "recipe", "--config", "run"]).parallelism
    answer = {
        "tp": read.tensor_parallel_degree,
        "cp": read.context_parallel_degree,
        "pp": read.pipeline_parallel_degree,
        "ep": read.expert_parallel_degree,
        "dp": read.data_parallel_shard_degree * read.data_parallel_replicate_degree,
    }
    sys.stdout.write("\nANSWERS " + json.dumps(answer) + "\n")
