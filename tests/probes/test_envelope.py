"""Places and times are read from the frames that programs put around a message."""

from __future__ import annotations

import pytest

from clusterwright.probes.envelope import normal_pci, time_of, where
from clusterwright.probes.nvidia import xid_line


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"Jan 05 04:10:00 gpu-a7 kernel: NVRM: x", {"node": "gpu-a7"}),
        (b"2026-01-05T04:10:00.1+01:00 gpu-a7 slurmd[1]: x", {"node": "gpu-a7"}),
        (b"gpu-a7:12:34 [3] NCCL WARN x", {"node": "gpu-a7"}),
        (b"[2026-01-05 04:10:00] gpu-a7:12:34 [3] NCCL WARN x", {"node": "gpu-a7"}),
        (b"gpu-a7 kernel: mlx5_core 0000:9a:00.0: x", {"node": "gpu-a7", "port": "0000:9a:00.0"}),
        (b"kernel: [1.2] NVRM: Xid (PCI:0000:5E:00): 1", {"accelerator": "0000:5e:00.0"}),
        (b"[rank12]: RuntimeError", {"rank": "12"}),
        (b"Connect to 10.1.2.3<4000> failed", {"peer": "10.1.2.3"}),
        (b"NET/IB : mlx5_4:1 Got async event", {"port": "mlx5_4"}),
        (b"mlx5_core: health compromised", {}),
        (b"error: something", {}),
    ],
)
def test_the_place_that_a_line_names(line: bytes, named: dict[str, str]) -> None:
    assert where(line).named() == named


def test_one_address_has_one_spelling() -> None:
    assert {normal_pci(text) for text in ("00000000:5E:00.0", "0000:5e:00", "5e:00.0")} == {"0000:5e:00.0"}


def test_a_zone_is_taken_off() -> None:
    assert time_of(b"2026-01-05T05:10:00+01:00 x") == time_of(b"2026-01-05T04:10:00Z x")


def test_a_line_without_time_has_none() -> None:
    assert time_of(b"NCCL WARN x") == (None, "")


def test_an_xid_line_gives_code_severity_link_and_what_came_before() -> None:
    said = xid_line(b"NVRM: Xid (PCI:0000:5e:00): 45, pid=5, Ch 1 caused by previous Xid 149")
    assert said is not None
    assert (said.code, said.previous, said.severity) == (45, 149, "")
    fatal = xid_line(b"NVRM: Xid (PCI:0000:5e:00): 149, NETIR Fatal XC0 i0 Link 7 (0x1)")
    assert fatal is not None
    assert (fatal.severity, fatal.link) == ("fatal", "7")
