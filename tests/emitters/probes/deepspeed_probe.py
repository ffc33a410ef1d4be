# mypy: ignore-errors
"""Give an emitted ds_config.json to DeepSpeed's own reader, in a make-believe world of as many ranks."""

from __future__ import annotations

import json
import sys

import deepspeed.comm
import torch.distributed
from deepspeed.runtime.config import DeepSpeedConfig
from torch.testing._internal.distributed.fake_pg import FakeStore

if __name__ == "__main__":
    case = json.load(sys.stdin)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=case["world"])
    deepspeed.comm.init_distributed("fake", auto_mpi_discovery=False, verbose=False)
    grid = type("Grid", (), {"get_data_parallel_world_size": lambda _: case["dp"]})()
    read = DeepSpeedConfig(case["config"], mpu=grid)
    answer = [read.world_size, read.train_batch_size, read.gradient_accumulation_steps, read.zero_optimization_stage]
    sys.stdout.write("\nANSWERS " + json.dumps(answer) + "\n")
