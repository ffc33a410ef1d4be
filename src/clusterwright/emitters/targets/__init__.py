"""The targets, one file each."""

from clusterwright.emitters.targets import (
    deepspeed,
    jobset,
    kueue,
    megatron,
    nccl,
    pytorchjob,
    slurm,
    torchtitan,
    trainjob,
    volcano,
)

TARGETS = (
    volcano.TARGET,
    kueue.TARGET,
    jobset.TARGET,
    trainjob.TARGET,
    pytorchjob.TARGET,
    slurm.TARGET,
    megatron.TARGET,
    torchtitan.TARGET,
    deepspeed.TARGET,
    nccl.TARGET,
)
"""Every target, in the order they are listed."""
