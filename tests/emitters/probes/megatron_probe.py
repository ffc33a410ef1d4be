# mypy: ignore-errors
"""Give emitted arguments to Megatron's own parser, checks and configuration; prints one line a plan.

Run by the interpreter that holds torch and megatron-core 0.19: it stands in for an H100, which is asked for its kind.
"""

from __future__ import annotations

import json
import os
import sys
import typing
from types import SimpleNamespace

import torch
import typing_extensions

typing.override = getattr(typing, "override", typing_extensions.override)  # type: ignore[attr-defined]
H100 = SimpleNamespace(major=9, minor=0, name="NVIDIA H100 80GB HBM3", total_memory=80 << 30, multi_processor_count=132)
torch.cuda.get_device_properties = lambda *_: H100
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.current_device = lambda: 0
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 8

import megatron.core.models.common.embeddings.rope_utils as rope  # noqa: E402 - after the stand-in
from megatron.training.arguments import (  # noqa: E402 - after the stand-in
    core_transformer_config_from_args,
    parse_args,
    validate_args,
)

rope.fused_apply_rotary_pos_emb = lambda *_: None  # transformer engine's kernel, which a CPU has not


def judge(case: dict[str, typing.Any]) -> str:
    """What Megatron says of one plan's arguments."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(case["world"]))
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    os.environ.update(case["environment"])
    sys.argv = ["pretrain_gpt.py", *case["arguments"]]
    try:
        arguments = parse_args()
        validate_args(arguments)
        core_transformer_config_from_args(arguments)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is its answer
        return f"{type(error).__name__}: {error}"
    return f"dp {arguments.data_parallel_size}"


if __name__ == "__main__":
    answers = {case["name"]: judge(case) for case in json.load(sys.stdin)}
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
