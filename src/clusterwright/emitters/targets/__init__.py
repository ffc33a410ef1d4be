"""The targets, one file each."""

from clusterwright.emitters.targets import (
    deepspeed,
    dstack,
    frr,
    fsdp,
    jobset,
    kuberay,
    kueue,
    megatron,
    mig,
    mpi,
    nccl,
    pytorchjob,
    skypilot,
    slurm,
    sonic,
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
    kuberay.TARGET,
    slurm.TARGET,
    skypilot.TARGET,
    dstack.TARGET,
    megatron.TARGET,
    torchtitan.TARGET,
    deepspeed.TARGET,
    fsdp.TARGET,
    nccl.TARGET,
    mpi.TARGET,
    mig.TARGET,
    frr.TARGET,
    sonic.TARGET,
)
"""Every target, in the order they are listed."""
