# mypy: ignore-errors
"""Ask Megatron-Core itself with whom a rank talks, in a make-believe world of as many ranks."""

from __future__ import annotations

import json
import sys

import stand_ins  # noqa: F401 - first: typing.override on Python 3.11

# isort: split
import torch.distributed
from megatron.core import parallel_state as state
from torch.testing._internal.distributed.fake_pg import FakeStore


def neighbours(case: dict[str, int]) -> dict[str, list[int]]:
    """Ranks of each group that a rank is in, in their order."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"], world_size=case["world"])
    state.initialize_model_parallel(
        tensor_model_parallel_size=case["tp"],
        pipeline_model_parallel_size=case["pp"],
        context_parallel_size=case["cp"],
        expert_model_parallel_size=case["ep"],
        expert_tensor_parallel_size=1,
        create_gloo_process_groups=False,
    )
    groups = {
        "tp": state.get_tensor_model_parallel_group(),
        "cp": state.get_context_parallel_group(),
        "dp": state.get_data_parallel_group(),
        "pp": state.get_pipeline_model_parallel_group(),
        "ep": state.get_expert_model_parallel_group(),
    }
    found = {name: torch.distributed.get_process_group_ranks(group) for name, group in groups.items()}
    state.destroy_model_parallel()
    torch.distributed.destroy_process_group()
    return found


if __name__ == "__main__":
    answers = [neighbours(case) for case in json.load(sys.stdin)]
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
