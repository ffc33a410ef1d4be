"""The targets, one file each."""

from clusterwright.emitters.targets import megatron, slurm, volcano

TARGETS = (volcano.TARGET, slurm.TARGET, megatron.TARGET)
"""Every target, in the order they are listed."""
