"""The emitted frr.conf on a real FRR: two spines and four leaves in network namespaces."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusterwright.emitters import emit
from clusterwright.hardware import FabricKind
from tests.emitters.plans import SWITCHES, ethernet_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from clusterwright.plan import Plan

READER = pytest.mark.reader("FRR: bgpd and zebra of 6 switches, vtysh", "frr")
DAEMONS = Path("/usr/lib/frr")
LEAVES, SPINES = 4, 2
"""Of `ethernet_plan`."""
NAMES = [*(f"leaf-{i}" for i in range(1, LEAVES + 1)), *(f"spine-{i}" for i in range(1, SPINES + 1))]


@pytest.fixture(scope="module")
def files() -> Mapping[str, str]:
    return emit(ethernet_plan(), "frr", SWITCHES).files


def absent() -> None:
    """Skip where there is no FRR; in CI that is a failure."""
    why = ""
    if not (DAEMONS / "bgpd").exists() or shutil.which("ip") is None or shutil.which("vtysh") is None:
        why = "FRR or iproute2 is not installed (Debian: frr iproute2)"
    elif os.geteuid() != 0:
        why = "root is needed for network namespaces"
    if why and os.environ.get("CLUSTERWRIGHT_CI") == "1":
        pytest.fail(why)
    if why:
        pytest.skip(why)


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


def until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def space(name: str) -> str:
    return f"cw{os.getpid()}-{name}"  # another run may be on this machine


@pytest.fixture(scope="module")
def network(files: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    absent()
    root = tmp_path_factory.mktemp("frr")
    for folder in (root, *root.parents):  # the daemons run as another user
        if folder.stat().st_mode & 0o001 == 0:
            folder.chmod(0o755)
    daemons: list[int] = []
    try:
        _wire()
        for name in NAMES:
            daemons += _route(root / name, name, files[f"{name}/frr.conf"])
        yield root
    finally:
        for pid in daemons:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", space(name)], capture_output=True, check=False)


def _wire() -> None:
    for name in NAMES:
        ip("netns", "add", space(name))
        ip("-n", space(name), "link", "set", "lo", "up")
        keys = ("net.ipv4.ip_forward=1", "net.ipv4.fib_multipath_hash_policy=1", "net.ipv6.conf.all.forwarding=1")
        subprocess.run(["ip", "netns", "exec", space(name), "sysctl", "-qw", *keys], check=True)
    for leaf in range(1, LEAVES + 1):
        for spine in range(1, SPINES + 1):
            ends = ((f"leaf-{leaf}", f"swp{spine}"), (f"spine-{spine}", f"swp{leaf}"))
            (a, port_a), (b, port_b) = ends
            ip("link", "add", port_a, "netns", space(a), "type", "veth", "peer", "name", port_b, "netns", space(b))
            for name, port in ends:
                ip("-n", space(name), "link", "set", port, "mtu", "9216", "up")
        ip("-n", space(f"leaf-{leaf}"), "link", "add", "hosts", "type", "bridge")
        ip("-n", space(f"leaf-{leaf}"), "link", "set", "hosts", "mtu", "9000", "up")


def _route(folder: Path, name: str, text: str) -> list[int]:
    folder.mkdir()
    (folder / "frr.conf").write_text(text, encoding="utf-8")
    (folder / "vtysh.conf").touch()
    for path in (folder, folder / "frr.conf", folder / "vtysh.conf"):
        shutil.chown(path, "frr", "frr")
    found = []
    for daemon in ("zebra", "bgpd"):
        where = [
            "-N", space(name), "--vty_socket", str(folder), "-z", str(folder / "zserv.api"),
            "-i", str(folder / f"{daemon}.pid"),
            "-f", str(folder / "frr.conf"), "-A", "127.0.0.1", "-u", "frr", "-g", "frr",
        ]  # fmt: skip
        subprocess.run(
            ["ip", "netns", "exec", space(name), str(DAEMONS / daemon), "-d", *where], check=True, capture_output=True
        )
        assert until((folder / f"{daemon}.pid").exists, 5)
        found.append(int((folder / f"{daemon}.pid").read_text("utf-8")))
    return found


def shown(folder: Path, command: str) -> str:
    """What a switch shows; the kernel of FRR 8.4 on veth keeps one path after a flap, so the session is looked at."""
    words = ["vtysh", "--vty_socket", str(folder), "-c", command]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def paths(leaf: int, to: int) -> set[str]:
    shown = ip("-n", space(f"leaf-{leaf}"), "route", "show", f"10.20.{to - 1}.0/24")
    return set(re.findall(r"dev (swp\d+)", shown))


def ping(size: int, to: int, *, times: int = 1) -> bool:
    data = str(size - 28)
    command = ["ip", "netns", "exec", space("leaf-1"), "ping", "-q", "-c", str(times), "-i", "0.05", "-W", "1"]
    words = [*command, "-M", "do", "-s", data, "-I", "10.20.0.1", f"10.20.{to - 1}.1"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@READER
def test_frr_itself_accepts_every_configuration(files: Mapping[str, str], tmp_path: Path) -> None:
    absent()
    assert {f"{name}/frr.conf" for name in NAMES} == {name for name in files if name != "MANIFEST.json"}
    for name, text in files.items():
        if name.endswith("frr.conf"):
            (tmp_path / "frr.conf").write_text(text, encoding="utf-8")
            words = ["vtysh", "-C", "-f", str(tmp_path / "frr.conf")]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert (name, 0) == (name, done.returncode), done.stdout + done.stderr


@READER
def test_every_leaf_reaches_every_other_through_all_spines(network: Path) -> None:
    pairs = [(a, b) for a in range(1, LEAVES + 1) for b in range(1, LEAVES + 1) if a != b]
    assert until(lambda: all(paths(a, b) == {"swp1", "swp2"} for a, b in pairs)), {p: paths(*p) for p in pairs}
    assert network.exists()


@READER
def test_large_packets_pass_and_a_small_link_is_found(network: Path) -> None:
    assert network.exists()
    assert until(lambda: paths(1, 2) == {"swp1", "swp2"})
    assert until(lambda: ping(9000, 2), 10)
    try:
        for port in ("swp1", "swp2"):
            ip("-n", space("leaf-1"), "link", "set", port, "mtu", "1500")
        assert not ping(9000, 2)
        assert until(lambda: ping(1500, 2), 10)
    finally:
        for port in ("swp1", "swp2"):
            ip("-n", space("leaf-1"), "link", "set", port, "mtu", "9216")


@READER
def test_a_cut_link_is_left_and_its_neighbour_is_met_again(network: Path) -> None:
    assert network.exists()
    assert until(lambda: paths(1, 2) == {"swp1", "swp2"})
    ip("-n", space("leaf-1"), "link", "set", "swp1", "down")
    assert until(lambda: paths(1, 2) == {"swp2"}, 10)
    assert until(lambda: ping(9000, 2, times=5), 10)
    ip("-n", space("leaf-1"), "link", "set", "swp1", "up")
    assert until(lambda: "BGP state = Established" in shown(network / "leaf-1", "show bgp neighbors swp1"), 30)


@pytest.mark.parametrize(
    ("plan", "site", "word"),
    [
        (ethernet_plan(fabric=FabricKind.INFINIBAND), SWITCHES, "infiniband"),
        (ethernet_plan(leaf=600), {**SWITCHES, "fabric_prefix": "10.0.0.0/8"}, "65534"),
        (ethernet_plan(), {**SWITCHES, "fabric_prefix": "10.20.0.0/23"}, "too small"),
    ],
)
def test_a_network_that_cannot_be_routed_so_is_said(plan: Plan, site: dict[str, object], word: str) -> None:
    bundle = emit(plan, "frr", site)
    assert {} == bundle.files
    assert word in bundle.unsupported[0].why


def test_several_links_between_two_switches_are_all_used() -> None:
    files, leaves = emit(ethernet_plan(links=2), "frr", SWITCHES).files, ["leaf-1", "leaf-2", "leaf-3", "leaf-4"]
    assert ["1", "2", "3", "4"] == re.findall(r"neighbor swp(\d+) interface", files["leaf-1/frr.conf"])
    assert leaves * 2 == re.findall(r"description to (\S+)", files["spine-1/frr.conf"])
