"""Names of accelerators as the tools that rent them write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

CHIPS = {
    "v100-16gb": "V100",
    "v100-32gb": "V100-32GB",
    "a10": "A10",
    "a100-40gb-sxm": "A100",
    "a100-40gb-pcie": "A100",
    "a100-80gb-sxm": "A100-80GB",
    "a100-80gb-pcie": "A100-80GB",
    "h100-sxm": "H100",
    "h100-pcie": "H100",
    "h100-nvl": "H100-NVL",
    "h200-sxm": "H200",
    "gh200": "GH200",
    "b200-sxm": "B200",
    "b300": "B300",
    "gb200": "GB200",
    "gb300": "GB300",
    "l4": "L4",
    "l40s": "L40S",
    "rtx-4090": "RTX4090",
    "rtx-a6000": "RTXA6000",
    "mi300x": "MI300X",
}
"""The plan's name, and that of SkyPilot (`sky show-gpus -a`)."""


def chip_name(job: Job) -> str | None:
    """The accelerator as SkyPilot calls it; none when it is not known."""
    return CHIPS.get(job.chosen.accelerator)
