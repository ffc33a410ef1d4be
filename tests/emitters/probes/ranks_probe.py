# mypy: ignore-errors
"""Ask Megatron-Core itself where a rank stands, in a make-believe world of as many ranks."""

from __future__ import annotations

import json
import sys
import typing

import torch
import torch.distributed
import typing_extensions
from torch.testing._internal.distributed.fake_pg import FakeStore

typing.override = getattr(typing, "override", typing_extensions.override)

from megatron.core import parallel_state as state  # noqa: E402 - after the stand-in


def stand(case: dict[str, int]) -> list[int]:
    """Coordinates tp, cp, dp, pp of a rank."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=case["rank"], world_size=case["world"])
    state.initialize_model_parallel(
        tensor_model_parallel_size=case["tp"],
        pipeline_model_parallel_size=case["pp"],
        context_parallel_size=case["cp"],
        create_gloo_process_groups=False,
    )
    found = [
        state.get_tensor_model_parallel_rank(),
        state.get_context_parallel_rank(),
        state.get_data_parallel_rank(),
        state.get_pipeline_model_parallel_rank(),
    ]
    state.destroy_model_parallel()
    torch.distributed.destroy_process_group()
    return found


if __name__ == "__main__":
    answers = [stand(case) for case in json.load(sys.stdin)]
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
