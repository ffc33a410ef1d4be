"""What the targets of tools that rent nodes share: accelerators by the tools' names, and how they write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.launch import SCRIPT, announced, launcher, program_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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


def rented(
    tool: str, own: Callable[[Job, str, tuple[str, ...]], dict[str, str]], providers: Iterable[str], storage: str
) -> Callable[[Job], Bundle]:
    """How the target of a tool that rents nodes writes: the tool's own files, the launcher and what it reads.

    Args:
        tool: Its name.
        own: The tool's files, of the job, the accelerator as the tool calls it, and the names of all other files.
        providers: Those of the catalogue that the tool can rent from.
        storage: What is left to the user of data and checkpoints.

    Returns:
        The target's ``write``.
    """

    def write(job: Job) -> Bundle:
        program, chip = program_of(job), CHIPS.get(job.chosen.accelerator)
        if isinstance(program, tuple):
            return Bundle({}, program)
        if chip is None:
            nameless = Unsupported(f"accelerator {job.chosen.accelerator}", f"{tool}'s name of it is not known here")
            return Bundle({}, (nameless,))
        shared = {SCRIPT: launcher(job, program), **program.files}
        gaps = (*announced(job, program), Unsupported("data and checkpoints", storage), *_of_the_offer(job))
        return Bundle({**own(job, chip, tuple(shared)), **shared}, gaps)

    def _of_the_offer(job: Job) -> list[Unsupported]:
        offer, found = job.chosen.offer, []
        if offer.provider not in providers:
            why = f"none that {tool} rents from; it tries every one that you have"
            found.append(Unsupported(f"provider {offer.provider}", why))
        if offer.term not in ("on-demand", "spot"):
            why = f"a reservation is named by its own number, in {tool}'s own way"
            found.append(Unsupported(f"term = {offer.term}", why))
        return found

    return write
