"""MIG: a mig-parted configuration for a job that is smaller than one accelerator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Noted, Unsupported
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import yaml_text

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

PROFILES = {
    "h100-sxm": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "h200-sxm": {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "7g.141gb": 1},
}
"""Profile and how many of it one accelerator holds (NVIDIA/mig-parted, examples/config-default.yaml at bd7160f4;
H200: the NVIDIA MIG user guide, https://docs.nvidia.com/datacenter/tesla/mig-user-guide/)."""


def write(job: Job) -> Bundle:
    """The configuration and the profile that holds the job."""
    if job.chosen.accelerators > 1:
        why = "parts of an accelerator have no NVLink between them and NCCL cannot span them: never for a job of several accelerators"
        return Bundle({}, (Unsupported("MIG", why),))
    known = PROFILES.get(job.chosen.accelerator, {})
    need = job.chosen.estimate.memory_bytes
    fits = [name for name in known if _memory(name) >= need]
    if not fits:
        return Bundle({}, (Unsupported("MIG", f"no known part of {job.chosen.accelerator} holds {need / 1e9:.1f} GB"),))
    profile = min(fits, key=lambda name: (_memory(name), int(name.split("g.")[0])))
    head = (
        f"The smallest part that holds {need / 1e9:.1f} GB [chosen.estimate.memory_bytes].\n"
        f"nvidia-mig-parted apply -f mig-parted.yaml -c all-{profile}; under the GPU operator: label nvidia.com/mig.config=all-{profile}"
    )
    config = {
        "devices": "all",
        "mig-enabled": True,
        "mig-devices": {profile: Noted(known[profile], "as many as one accelerator holds")},
    }
    slower = Unsupported(
        "speed", "the estimate is of the whole accelerator; a part has a share of its multiprocessors and bandwidth"
    )
    return Bundle(
        {"mig-parted.yaml": yaml_text([{"version": "v1", "mig-configs": {f"all-{profile}": [config]}}], head=head)},
        (slower,),
    )


def _memory(profile: str) -> float:
    """Memory of a profile by its name [B].

    >>> _memory("1g.10gb")
    10000000000.0
    """
    return float(profile.split(".")[1].removesuffix("gb")) * 1e9


TARGET = Target("mig", "mig-parted configuration for a job smaller than one accelerator", (), (), write)
