# mypy: ignore-errors
"""Give an emitted configuration to Megatron Bridge: its own classes, and all that it checks before a run starts.

Run by the interpreter that holds torch, transformers, megatron-core 0.19 and megatron-bridge 0.6.
"""

from __future__ import annotations

import json
import os
import sys
import typing

import stand_ins

stand_ins.stand_in("transformer_engine", "megatron.energon", "nvidia_resiliency_ext")
from megatron.bridge.training.config import runtime_config_update  # noqa: E402 - after the stand-ins


def judge(case: dict[str, typing.Any]) -> object:
    """Degrees and batch as Megatron Bridge has them when it has checked the whole configuration."""
    os.environ.update(RANK="0", WORLD_SIZE=str(case["world"]), TOKENIZER="/t", CHECKPOINT_DIR="/c")
    os.environ.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    os.environ.update(case["environment"])
    names = {"__name__": "emitted"}
    try:
        exec(compile(case["program"], "pretrain.py", "exec"), names)  # noqa: S102 - the program under test
        read = names["configuration"](["/d/a", "/d/b"])
        runtime_config_update(read)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is its answer
        return f"{type(error).__name__}: {error}"
    model = read.model
    degrees = (
        model.tensor_model_parallel_size,
        model.context_parallel_size,
        model.pipeline_model_parallel_size,
        model.expert_model_parallel_size,
        read.data_parallel_size,
    )
    shape = (model.num_layers, model.hidden_size, model.num_attention_heads, model.num_moe_experts or 0)
    return [*degrees, *shape, read.train.global_batch_size, read.dataset.blend[0]]


if __name__ == "__main__":
    answers = {case["name"]: judge(case) for case in json.load(sys.stdin)}
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
