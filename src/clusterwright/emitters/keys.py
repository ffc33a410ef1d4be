"""The keys that only the user knows, or may change: what each means and what a right value looks like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusterwright.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_WORD = r"[A-Za-z0-9_^=,][A-Za-z0-9_.:^=,@+-]*"
_PATH = r"/[^\s'\"\\$`!*?<>|&;(){}\[\]#~\x00-\x1f\x7f]*"
_PLAIN = r"[^\s'\"\\$`!*?<>|&;(){}\[\]#~\x00-\x1f\x7f]+"


@dataclass(frozen=True)
class Key:
    """A key, the form of its value, and the word that stands in for it when it is left unset."""

    about: str
    form: str = _PLAIN
    example: str = ""
    unset: str | int = ""
    whole: bool = False
    """Whether the value is a positive whole number."""


KEYS: dict[str, Key] = {
    "image": Key("container image, by digest", example="registry.example/train@sha256:...", unset="unset.invalid/image"),
    "namespace": Key("Kubernetes namespace", _LABEL, "training", "unset-namespace"),
    "queue": Key("queue of Volcano or Kueue", r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", "training", "unset-queue"),
    "partition": Key("Slurm partition", _WORD, "gpu", "unset_partition"),
    "account": Key("Slurm account", _WORD, "research", "unset_account"),
    "rdma_resource": Key(
        "extended resource as the cluster's RDMA device plugin names it", r"[a-z0-9.-]+/[A-Za-z0-9_.-]+", "rdma/hca", "unset.invalid/rdma"
    ),
    "rdma_per_node": Key("how many of rdma_resource a node has", example="8", unset=1, whole=True),
    "interface": Key("network interface of the first contact between nodes", _WORD, "eth0", "unset0"),
    "data_dir": Key("folder of the tokenized data, where the job runs", _PATH, "/data", "/unset/data_dir"),
    "checkpoint_dir": Key("folder of the checkpoints, where the job runs", _PATH, "/checkpoints", "/unset/checkpoint_dir"),
    "tokenizer": Key("tokenizer: a folder, or a name on Hugging Face", example="/data/tokenizer", unset="/unset/tokenizer"),
    "data_claim": Key("PersistentVolumeClaim of data_dir; without it data_dir is a hostPath", _LABEL, "datasets"),
    "checkpoint_claim": Key("PersistentVolumeClaim of checkpoint_dir; without it a hostPath", _LABEL, "checkpoints"),
    "hosts": Key("names of the nodes, in the order of the racks", r"[A-Za-z0-9][A-Za-z0-9.-]*", '["gpu1", "gpu2"]'),
    "asn": Key("first private AS number of the fabric", example="65000", unset=64512, whole=True),
    "port_prefix": Key("what a switch calls its ports, before their number", r"[A-Za-z][A-Za-z0-9/_-]{0,11}", "swp", "unset"),
    "switch_ports": Key("ports of a switch, comma between them", r"[A-Za-z][A-Za-z0-9/._-]*(,[A-Za-z][A-Za-z0-9/._-]*)*", "Ethernet0,Ethernet8", "unset0"),
    "host_interface": Key("bridge or VLAN interface of a leaf's ports to the nodes", r"[A-Za-z][A-Za-z0-9._-]{0,14}", "hosts", "unset-hosts"),
    "fabric_prefix": Key("IPv4 network that leaves and loopbacks are numbered from", r"(\d{1,3}\.){3}\d{1,3}/\d{1,2}", "10.20.0.0/16", "192.0.2.0/16"),
    "lr": Key("peak learning rate", r"[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?", "1.5e-4"),
    "rotary_base": Key("base of the rotary position embedding", example="500000", whole=True),
    "program": Key("path of the training program in the image", _PATH, "/opt/Megatron-LM/pretrain_gpt.py"),
    "cpus_per_node": Key("processors a node gives to the job", example="96", whole=True),
    "memory_gib_per_node": Key("memory a node gives to the job [GiB]", example="1800", whole=True),
    "gpu_product": Key("value of the node label nvidia.com/gpu.product", _WORD, "NVIDIA-H100-80GB-HBM3"),
    "time_limit": Key("wall-clock limit of one Slurm job", r"(\d+-)?\d+(:\d+){0,2}", "7-00:00:00"),
    "slurm_version": Key("version of Slurm, major.minor", r"\d{2}\.\d{2}", "24.11"),
    "torchtitan_version": Key("version of torchtitan, major.minor; 0.3 when not given", r"0\.[23]", "0.2"),
    "dscp": Key("DSCP that the switches treat as lossless RoCE traffic", r"[0-5]?[0-9]|6[0-3]", "26"),
    "topology_labels": Key("node labels from block to rack, comma between them", r"[A-Za-z0-9./_,-]+", "example.com/block,example.com/rack"),
}  # fmt: skip


def checked(key: str, value: object, *, where: str) -> str | int | tuple[str, ...]:
    """The value of a key, refused when it cannot be right.

    >>> checked("rdma_per_node", "8", where="--set")
    8

    Raises:
        InputError: names the key, the value and an example.
    """
    known = KEYS[key]
    if key == "hosts":
        items = value if isinstance(value, (list, tuple)) else str(value).strip("[] ").split(",")
        hosts = tuple(str(item).strip(" '\"") for item in items)
        bad = next((h for h in hosts if not re.fullmatch(known.form, h)), None)
        if bad is not None or len(set(hosts)) < len(hosts):
            msg = f"{where}: hosts: {bad if bad is not None else 'a name twice'!r} is no list of host names; write for instance {known.example}"
            raise InputError(msg)
        return hosts
    text = str(value)
    if known.whole:
        if not re.fullmatch(r"[1-9][0-9]{0,11}", text):
            raise _wrong(key, text, where, "a whole number greater than zero")
        return int(text)
    if not re.fullmatch(known.form, text):
        raise _wrong(key, text, where, known.about)
    return text


def _wrong(key: str, text: str, where: str, wanted: str) -> InputError:
    return InputError(f"{where}: {key} = {text!r} is not {wanted}; write for instance {KEYS[key].example!r}")


def site_values(
    site: Mapping[str, object], overrides: Mapping[str, object]
) -> dict[str, tuple[str | int | tuple[str, ...], str]]:
    """Value and origin of every key that is given; ``--set`` wins over the workload's ``[site]``."""
    found: dict[str, tuple[str | int | tuple[str, ...], str]] = {}
    for values, where in ((site, "site"), (overrides, "--set")):
        for key, value in values.items():
            if key in KEYS and value not in (None, "", [], ()):
                found[key] = (checked(key, value, where=where), f"--set {key}" if where == "--set" else f"site.{key}")
    return found
