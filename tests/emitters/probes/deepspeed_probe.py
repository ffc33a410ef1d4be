# mypy: ignore-errors
"""Give emitted files ds_config.json to DeepSpeed's own reader, in a make-believe world of as many ranks."""

from __future__ import annotations

import json
import sys

import deepspeed.comm
import torch.distributed
from deepspeed.runtime.config import DeepSpeedConfig
from torch.testing._internal.distributed.fake_pg import FakeStore


def read(case: dict[str, object]) -> list[int]:
    """Replicas, batch, micro-batches and stage as DeepSpeed has them."""
    grid = type("Grid", (), {"get_data_parallel_world_size": lambda _: case["dp"]})()
    found = DeepSpeedConfig(case["config"], mpu=grid)
    return [found.world_size, found.train_batch_size, found.gradient_accumulation_steps, found.zero_optimization_stage]


if __name__ == "__main__":
    question = json.load(sys.stdin)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=question["world"])
    deepspeed.comm.init_distributed("fake", auto_mpi_discovery=False, verbose=False)
    answers = [read(case) for case in question["cases"]]
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
