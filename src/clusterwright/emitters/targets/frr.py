"""FRR: one routing configuration a switch of the designed spine-leaf network; BGP without addresses on the links."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.network import DSCP, MTU_BYTES, PRIORITY
from clusterwright.emitters.target import Target
from clusterwright.emitters.writing import comment
from clusterwright.hardware import FabricKind

if TYPE_CHECKING:
    from clusterwright.emitters.job import Job

ETHERNET = (FabricKind.ROCE, FabricKind.TCP)
TIERS = 2
LAST_PRIVATE_16_BIT = 65534
"""RFC 6996, section 5."""


def write(job: Job) -> Bundle:
    """A folder for each switch."""
    refused = _refused(job)
    if refused:
        return Bundle({}, refused)
    fabric, links = job.chosen.fabric, _links(job)
    hosts, loopbacks = _addresses(job)
    base = int(str(job.need("asn")))
    files = {}
    for leaf in range(1, fabric.leaf + 1):
        uplinks = {
            link * fabric.spine + spine: f"spine-{spine}"
            for link in range(links)
            for spine in range(1, fabric.spine + 1)
        }
        files[f"leaf-{leaf}/frr.conf"] = _switch(
            job, f"leaf-{leaf}", base + leaf, loopbacks[leaf - 1], uplinks, hosts[leaf - 1]
        )
    for spine in range(1, fabric.spine + 1):
        downlinks = {
            link * fabric.leaf + leaf: f"leaf-{leaf}" for link in range(links) for leaf in range(1, fabric.leaf + 1)
        }
        files[f"spine-{spine}/frr.conf"] = _switch(
            job, f"spine-{spine}", base, loopbacks[fabric.leaf + spine - 1], downlinks, None
        )
    return Bundle(files, _left())


def _cabled(job: Job) -> float:
    """Links between a leaf and a spine: what is left of the cables when the nodes have theirs."""
    fabric = job.chosen.fabric
    nodes = (job.nodes + job.chosen.spares) * job.node.nics
    return (fabric.cables - nodes) / max(fabric.leaf * fabric.spine, 1)


def _links(job: Job) -> int:
    return int(_cabled(job))


def _addresses(job: Job) -> tuple[list[ipaddress.IPv4Network], list[ipaddress.IPv4Address]]:
    """A /24 for the nodes of each leaf, from the start; loopbacks in the last ones."""
    fabric = job.chosen.fabric
    whole = ipaddress.ip_network(str(job.need("fabric_prefix")), strict=False)
    if not isinstance(whole, ipaddress.IPv4Network) or whole.prefixlen > 24:  # noqa: PLR2004 - a leaf takes a /24
        return [], []
    nets = list(whole.subnets(new_prefix=24))
    kept = -(-(fabric.leaf + fabric.spine) // 254)
    if len(nets) < fabric.leaf + kept:
        return [], []
    return nets[: fabric.leaf], [address for net in nets[-kept:] for address in net.hosts()][
        : fabric.leaf + fabric.spine
    ]


def _refused(job: Job) -> tuple[Unsupported, ...]:
    fabric = job.chosen.fabric
    if job.node.fabric not in ETHERNET:
        return (Unsupported("FRR", f"the nodes' network is {job.node.fabric.value}: its switches do not route IP"),)
    if fabric.tiers != TIERS or not fabric.spine:
        return (
            Unsupported("FRR", f"routing is written for leaves under spines; this network has {fabric.tiers} tiers"),
        )
    if _cabled(job) < 1 or _cabled(job) != _links(job):
        return (
            Unsupported("FRR", f"{fabric.cables} cables are no whole number of links between each leaf and each spine"),
        )
    if "asn" not in job.unset and (last := int(str(job.need("asn")))) <= LAST_PRIVATE_16_BIT < last + fabric.leaf:
        return (
            Unsupported(
                "AS numbers",
                f"{fabric.leaf} leaves from {last} run past {LAST_PRIVATE_16_BIT}, the last private one of 16 bits; begin lower or at 4200000000",
            ),
        )
    if "fabric_prefix" not in job.unset and not _addresses(job)[0]:
        return (
            Unsupported(
                "addresses",
                f"{job.need('fabric_prefix')} is too small for a /24 for each of {fabric.leaf} leaves, and loopbacks",
            ),
        )
    return ()


def _switch(
    job: Job,
    name: str,
    asn: int,
    loopback: ipaddress.IPv4Address,
    ports: dict[int, str],
    hosts: ipaddress.IPv4Network | None,
) -> str:
    prefix, bridge = job.need("port_prefix"), job.need("host_interface")
    head = (
        f"{name} of {job.chosen.fabric.leaf} leaves and {job.chosen.fabric.spine} spines [chosen.fabric]\n"
        f"AS number: {job.need('asn').why}; spines share the first, each leaf has its own\n"
        f"ports: {prefix.why}; addresses: {job.need('fabric_prefix').why}"
    )
    lines = ["frr defaults datacenter", f"hostname {name}", "!", "interface lo", f" ip address {loopback}/32", "exit"]
    for number, peer in sorted(ports.items()):
        lines += [
            f"interface {prefix}{number}",
            f" description to {peer}",
            " ipv6 nd ra-interval 1",
            " no ipv6 nd suppress-ra",
            "exit",
        ]
    if hosts is not None:
        lines += [
            f"! the gateway of this leaf's nodes: {bridge.why}",
            f"interface {bridge}",
            f" ip address {hosts[1]}/24",
            "exit",
        ]
    lines += [
        "!", f"router bgp {asn}", f" bgp router-id {loopback}",
        " ! paths through different spines have different AS numbers of the same length: use them all",
        " bgp bestpath as-path multipath-relax",
        " ! a dead neighbour is left after 3 s; a cut link at once",
        " timers bgp 1 3", " neighbor FABRIC peer-group", " neighbor FABRIC remote-as external", " neighbor FABRIC timers connect 1",
        *(f" neighbor {prefix}{number} interface peer-group FABRIC" for number in sorted(ports)),
        " address-family ipv4 unicast", f"  network {loopback}/32",
        *([f"  network {hosts}"] if hosts is not None else []),
        f"  maximum-paths {min(len(ports), 256)}", " exit-address-family", "exit",
    ]  # fmt: skip
    return comment(head, "!") + "\n".join(lines) + "\n"


def _left() -> tuple[Unsupported, ...]:
    return (
        Unsupported(
            "MTU of the ports",
            f"FRR routes and sets no MTU: give every port {MTU_BYTES} bytes in the switch's own configuration",
        ),
        Unsupported(
            "lossless class",
            f"FRR does no queueing: DSCP {DSCP} to priority {PRIORITY} with PFC and ECN is set in the switch's own configuration",
        ),
        Unsupported("addresses of the nodes", "nodes take theirs from the leaf's /24, in the site's own way"),
    )


TARGET = Target(
    "frr",
    "frr.conf of every switch of a two-tier Ethernet network: unnumbered BGP, all paths in use",
    ("asn", "port_prefix", "host_interface", "fabric_prefix"),
    (),
    write,
)
