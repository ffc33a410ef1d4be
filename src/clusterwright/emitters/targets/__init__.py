"""The targets, one file each."""

from clusterwright.emitters.targets import jobset, kueue, megatron, nccl, pytorchjob, slurm, trainjob, volcano

TARGETS = (
    volcano.TARGET,
    kueue.TARGET,
    jobset.TARGET,
    trainjob.TARGET,
    pytorchjob.TARGET,
    slurm.TARGET,
    megatron.TARGET,
    nccl.TARGET,
)
"""Every target, in the order they are listed."""
