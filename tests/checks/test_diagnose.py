"""What a diagnosis says of whole incidents: the root first, echoes beneath, unknown where the text does not tell."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis

KNOWLEDGE = load_faults()
TIMEOUT = (
    "[rank{0}]:[E ProcessGroupNCCL.cpp:607] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=40, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
)
FELL_OFF = "Jan 05 04:10:00 gpu-a7 kernel: NVRM: Xid (PCI:0000:5e:00): 79, pid=9, GPU has fallen off the bus.\n"


def answer(*texts: str | bytes) -> Diagnosis:
    return diagnose([io.BytesIO(t if isinstance(t, bytes) else t.encode()) for t in texts], KNOWLEDGE)


def test_a_timeout_alone_is_unknown_and_takes_no_node_away() -> None:
    said = answer(TIMEOUT.format(0) + TIMEOUT.format(5))
    assert (said.verdict, said.findings[0].action, said.findings[0].confidence) == ("unknown", "investigate", "unknown")


def test_a_kernel_error_of_one_node_beats_the_timeouts_of_all_ranks() -> None:
    said = answer(TIMEOUT.format(0) + TIMEOUT.format(5), FELL_OFF)
    first = said.findings[0]
    assert (said.verdict, first.action, first.where.node, first.where.accelerator) == (
        "fault", "reboot-node", "gpu-a7", "0000:5e:00.0",
    )  # fmt: skip
    assert len(first.echoes) >= 2


def test_the_answer_does_not_depend_on_the_order_of_the_files() -> None:
    one, other = answer(TIMEOUT.format(0), FELL_OFF), answer(FELL_OFF, TIMEOUT.format(0))
    assert one.findings[0].cause == other.findings[0].cause


def test_a_process_killed_by_the_kernel_is_named_before_its_exit_code() -> None:
    said = answer(
        "ERROR:torch.distributed.elastic: failed (exitcode: -9) local_rank: 2 (pid: 77) of binary: python\n",
        "node-b2 kernel: Out of memory: Killed process 77 (python3) total-vm:900000kB\n",
    )
    assert (said.findings[0].action, said.findings[0].where.node) == ("fix-config", "node-b2")


def test_full_shared_memory_is_configuration_and_never_hardware() -> None:
    said = answer("node-b2:7:9 [1] shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device\n")
    assert {finding.action for finding in said.findings} == {"fix-config"}
    assert said.findings[0].scope == "config"


def test_the_word_nonfatal_outranks_the_number_of_the_code() -> None:
    line = "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT {} XC0 i0 Link 02 (0x1 0x2)\n"
    assert answer(line.format("Fatal")).findings[0].action == "reset-accelerator"
    nonfatal = answer(line.format("Nonfatal"))
    assert (nonfatal.verdict, nonfatal.findings[0].action) == ("unknown", "investigate")


def test_the_recovery_action_of_the_driver_is_obeyed() -> None:
    line = "NVRM: Xid (PCI:0000:5e:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"
    assert answer(line).findings[0].action == "reboot-node"
    both = answer("NVRM: Xid (PCI:0000:5e:00): 119, pid=1, Timeout waiting for RPC from GSP0!\n" + line)
    assert (len(both.findings), both.findings[0].action) == (1, "reboot-node")


def test_teardown_lines_point_at_the_error_before_them() -> None:
    line = "NVRM: Xid (PCI:0000:{}:00): 45, pid=5, Ch 00000001 caused by previous Xid {}\n"
    said = answer(line.format("1a", 145) + line.format("5e", 149) + line.format("9c", 145))
    assert said.findings[0].where.accelerator == "0000:5e:00.0"


def test_an_address_three_lines_up_names_the_accelerator() -> None:
    said = answer(
        "[ 10.1] NVRM: The NVIDIA GPU 0000:5e:00.0\n NVRM: (PCI ID: 10de:2330) installed in this system has\n"
        " NVRM: fallen off the bus and is not responding to commands.\n"
    )
    assert said.findings[0].where.accelerator == "0000:5e:00.0"


def test_the_software_power_cap_is_normal_and_a_power_brake_is_not() -> None:
    reasons = "        SW Power Cap                : {}\n            HW Power Brake Slowdown : {}\n"
    assert answer(reasons.format("Active", "Not Active")).verdict == "healthy"
    assert answer(reasons.format("Not Active", "Active")).verdict == "fault"


def test_all_links_down_of_one_board_is_asked_after_and_one_link_down_is_a_fault() -> None:
    line = "|                           | GPU 2's NvLink link {} is currently down       |\n"
    assert answer("".join(line.format(link) for link in range(12))).findings[0].action == "investigate"
    assert answer(line.format(3)).findings[0].action == "reset-accelerator"


def test_every_node_of_a_fleet_report_is_named() -> None:
    said = answer(
        "gpu-01 | Healthy\ngpu-02 | ERROR: nhc: Health check failed: check_nccl: low\n"
        "gpu-03 | ERROR: nhc: Health check failed: check_ib: no link\n"
    )
    assert {finding.where.node for finding in said.findings} == {"gpu-02", "gpu-03"}


def test_ranks_that_are_ahead_are_called_innocent() -> None:
    said = answer(
        "  14 ranks have launched up to operation 90\n  2 ranks have launched up to operation 91\n"
        "  Rank 3 -- GPU 3 managed by process 5 on node 10.1.2.3\n"
    )
    assert "ahead and innocent" in said.findings[0].because


def test_a_port_slower_than_its_siblings_is_asked_after() -> None:
    port = "CA 'mlx5_{}'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {}\n"
    said = answer(port.format(0, 400) + port.format(1, 400) + port.format(2, 100))
    assert (said.findings[0].where.port, said.findings[0].action) == ("mlx5_2", "investigate")
    assert answer(port.format(0, 400) + port.format(1, 400)).verdict == "healthy"


def test_an_accelerator_with_fewer_links_than_its_siblings_is_named() -> None:
    def gpu(index: int, links: int) -> str:
        head = f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index})\n"
        return head + "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(links))

    assert answer(gpu(0, 18) + gpu(1, 18) + gpu(2, 17)).findings[0].where.accelerator == "2"
    assert answer(gpu(0, 18) + gpu(1, 18) + gpu(2, 18)).verdict == "healthy"


def test_a_rank_at_an_earlier_collective_is_told_and_still_nothing_is_claimed() -> None:
    said = answer("".join(TIMEOUT.format(rank) for rank in range(4)) + TIMEOUT.format(6).replace("Num=40", "Num=38"))
    assert said.verdict == "unknown"
    assert any("rank 6 timed out at collective 38" in finding.because for finding in said.findings)


def test_a_query_of_nvidia_smi_is_read_by_its_header() -> None:
    head = "index, temperature.gpu, remapped_rows.pending, remapped_rows.failure\n"
    assert answer(head + "0, 34, No, No\n1, 36, No, No\n").verdict == "healthy"
    said = answer(head + "0, 34, No, No\n1, 36, No, Yes\n").findings[0]
    assert (said.where.accelerator, said.action) == ("1", "drain-and-replace")


def test_a_bus_bandwidth_that_may_be_slow_is_not_called_healthy_without_an_expectation() -> None:
    row = (
        "  1073741824     268435456     float     sum      -1   9306.7    {}    {}      0   9291.5    {}   {}      0\n"
    )
    assert answer(row.format(20.1, 38.2, 20.1, 38.2)).verdict == "unknown"
    assert answer(row.format(250.0, 480.0, 250.0, 480.0)).verdict == "healthy"


def test_nothing_read_is_unknown_and_never_healthy() -> None:
    assert answer("").verdict == "unknown"
    assert answer("hello\n").verdict == "unknown"


def test_healthy_needs_output_that_was_recognised() -> None:
    said = answer("        Remapping Failure Occurred        : No\n        Pending                           : No\n")
    assert (said.verdict, said.findings, said.read) == ("healthy", (), ("nvidia-smi -q",))


def test_what_other_programs_say_in_passing_is_no_finding() -> None:
    said = answer(
        "Jan 05 04:10:00 gpu-a7 sshd[7]: Connection closed by 10.1.2.3 port 5555 [preauth]\n"
        "Jan 05 04:10:00 gpu-a7 kubelet[7]: Readiness probe failed: dial tcp 10.1.2.3:80: connect: connection refused\n"
    )
    assert said.findings == ()


def test_ordinary_logs_of_many_kinds_give_no_finding() -> None:
    lines = [
        "Jan 05 04:{:02d}:00 gpu-a7 systemd[1]: Started Session {} of user root.",
        "Jan 05 04:{:02d}:00 gpu-a7 sshd[{}]: Accepted publickey for root from 10.1.2.3 port 5555",
        "2026-01-05 04:{:02d}:00 INFO step {} loss 2.31 grad norm 0.4 lr 1.0e-4 tokens/s 400000",
        "Jan 05 04:{:02d}:00 gpu-a7 kernel: [{}.1] IPv6: ADDRCONF(NETDEV_CHANGE): eth2: link becomes ready",
        "gpu-a7:{}:{} [0] NCCL INFO Channel 00/16 : 0 1 2 3 4 5 6 7",
    ]
    text = "\n".join(line.format(index % 60, index) for index in range(4000) for line in lines)
    assert answer(text).findings == ()


@given(st.binary(max_size=4000))
@settings(max_examples=60, deadline=None)
def test_no_bytes_whatever_break_it(noise: bytes) -> None:
    said = answer(noise)
    assert said.verdict in {"unknown", "healthy", "fault"}


@given(st.binary(max_size=2000).map(lambda noise: noise.replace(b"\n", b" ")))
@settings(max_examples=40, deadline=None)
def test_a_fault_among_noise_is_found(noise: bytes) -> None:
    if noise.startswith((b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")):
        return
    said = answer(b"x" + noise + b"\n" + FELL_OFF.encode() + noise)
    assert said.findings[0].action == "reboot-node"
