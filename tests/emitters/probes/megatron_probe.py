# mypy: ignore-errors
"""Give emitted arguments to Megatron's own parser, checks and configuration; prints one line a plan.

Run by the interpreter that holds torch and megatron-core 0.19.
"""

from __future__ import annotations

import json
import os
import sys
import typing

import stand_ins  # noqa: F401 - first: a make-believe H100

# isort: split
import megatron.core.models.common.embeddings.rope_utils as rope
from megatron.training.arguments import (
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
