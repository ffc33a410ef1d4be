# mypy: ignore-errors
"""Let torch itself share a small network as emitted modules say, in a make-believe world of as many ranks."""

from __future__ import annotations

import json
import sys

import torch
from torch.testing._internal.distributed.fake_pg import FakeStore


class Network(torch.nn.Module):
    """Three layers and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))
        self.head = torch.nn.Linear(width, width)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Layer after layer."""
        for layer in self.layers:
            value = layer(value)
        return self.head(value)


def share(program: str, width: int) -> dict[str, object]:
    """The mesh, and what one rank keeps of a weight."""
    names = {"__name__": "emitted"}
    exec(compile(program, "plan_fsdp.py", "exec"), names)  # noqa: S102 - the program under test
    over = names["mesh"]("cpu")
    network = Network(width)
    shared = names["shard"](network, network.layers, over)
    (rows,) = {weight.to_local().shape[0] for weight in shared.parameters() if weight.dim() > 1}
    return {"mesh": list(over.mesh.shape), "names": list(over.mesh_dim_names), "rows": rows}


if __name__ == "__main__":
    case = json.load(sys.stdin)
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=case["world"])
    answers = [share(program, case["width"]) for program in case["programs"]]
    sys.stdout.write("\nANSWERS " + json.dumps(answers) + "\n")
