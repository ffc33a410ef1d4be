"""The targets, one file each."""

from clusterwright.emitters.targets import (
    deepspeed,
    dstack,
    jobset,
    kueue,
    megatron,
    mpi,
    nccl,
    pytorchjob,
    skypilot,
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
    skypilot.TARGET,
    dstack.TARGET,
    megatron.TARGET,
    torchtitan.TARGET,
    deepspeed.TARGET,
    nccl.TARGET,
    mpi.TARGET,
)
"""Every target, in the order they are listed."""
