"""What the files of one job say together, and when they say nothing."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.catalog.faults import load_faults
from clusterwright.checks.diagnose import diagnose

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis, Finding

KNOWLEDGE = load_faults()
TIMEOUT = (
    "[rank{}]: RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 9000ms for recv operation"
)
CLOSED = "[rank{}]: RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.5.0.{}]:40000."


class Named(io.BytesIO):
    """A stream that has a file's name."""

    def __init__(self, name: str, lines: list[str]) -> None:
        super().__init__(("\n".join(lines) + "\n").encode())
        self.name = name


def answer(files: dict[str, list[str]]) -> Diagnosis:
    return diagnose([Named(name, lines) for name, lines in files.items()], KNOWLEDGE)


def first(files: dict[str, list[str]]) -> Finding | None:
    return next(iter(answer(files).findings), None)


def steps(rank: int, last: int, *, compute: float = 0.2, comm: float = 0.1) -> list[str]:
    node = f"cn-{rank // 2}"
    return [
        f"2026-02-03 04:05:{step:02d},000 {node} rank {rank} INFO step {step}/99 loss 2.1 time 0.4 s "
        f"(compute {compute} s, comm {comm} s)"
        for step in range(1, last + 1)
    ]


def logs(lines: dict[int, list[str]]) -> dict[str, list[str]]:
    return {f"job/cn-{rank // 2}/rank{rank}.log": said for rank, said in lines.items()}


def test_the_rank_that_is_silent_while_others_time_out_is_missing() -> None:
    said = first(logs({rank: steps(rank, 8) + [TIMEOUT.format(rank)] * (rank != 5) for rank in range(8)}))
    assert said is not None
    assert (said.where.node, said.where.rank, said.action) == ("cn-2", "5", "investigate")
    assert "printed nothing after step 8 while 7 others" in said.because


def test_ranks_that_never_print_steps_are_not_called_silent() -> None:
    files = logs({rank: [TIMEOUT.format(rank)] for rank in range(1, 8)}) | logs({0: steps(0, 8)})
    assert answer(files).verdict == "unknown"


WATCHDOG = (
    "[rank{0}]:[E321 02:07:08.4 ProcessGroupNCCL.cpp:1664] [PG ID 0 PG GUID 0 Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=90, OpType=ALLREDUCE), last enqueued NCCL work: {1}, last completed"
)


def test_a_rank_that_spoke_before_and_not_when_all_watchdogs_did_is_missing() -> None:
    start = "cn-{}:7:7 [0] NCCL INFO comm 0x55 rank {} nranks 8 cudaDev 0 - Init COMPLETE, world size 8"
    lines = {rank: [start.format(rank // 2, rank)] + [WATCHDOG.format(rank, 91)] * (rank != 6) for rank in range(8)}
    said = first(logs(lines))
    assert said is not None
    assert (said.where.node, said.where.rank) == ("cn-3", "6")


def test_the_rank_that_has_called_fewer_collectives_is_told_and_still_nothing_is_claimed() -> None:
    said = answer({"all.log": [WATCHDOG.format(rank, 90 if rank == 5 else 91) for rank in range(8)]})
    assert said.verdict == "unknown"
    assert any("rank 5 has called 90 collectives of group 0, most 91" in one.because for one in said.findings)


def test_a_rank_that_said_that_it_is_done_is_not_silent() -> None:
    files = logs({rank: [*steps(rank, 8), TIMEOUT.format(rank)] for rank in range(7)})
    files |= logs({7: [*steps(7, 8), "2026-02-03 04:06:00,000 cn-3 rank 7 INFO training done"]})
    assert answer(files).verdict == "unknown"


def test_silence_of_ranks_on_two_nodes_names_nobody() -> None:
    said = answer(logs({rank: steps(rank, 8) + [TIMEOUT.format(rank)] * (rank not in {1, 6}) for rank in range(8)}))
    assert said.verdict == "unknown"


def test_a_rank_far_ahead_of_those_that_wait_has_left_out_a_collective() -> None:
    said = first(logs({rank: [*steps(rank, 8), TIMEOUT.format(rank)] for rank in range(7)} | {7: steps(7, 50)}))
    assert said is not None
    assert (said.where.node, said.where.rank) == ("cn-3", "7")
    assert "went on to step 50" in said.because


def test_closed_connections_lead_to_the_node_that_says_nothing() -> None:
    files = logs({rank: [*steps(rank, 8), CLOSED.format(rank, 2 if rank < 6 else 0)] for rank in (0, 1, 2, 3, 6, 7)})
    files |= {f"job/cn-{node}/ip.txt": [f"    inet 10.5.0.{node}/24 scope global eth0"] for node in range(4)}
    said = first(files)
    assert said is not None
    assert (said.where.node, said.confidence) == ("cn-2", "likely")


def test_closed_connections_after_a_time_out_name_nobody() -> None:
    files = logs({rank: [*steps(rank, 8), CLOSED.format(rank, 2)] for rank in (0, 1, 2, 3)})
    files |= logs({6: [*steps(6, 8), TIMEOUT.format(6)]})
    assert answer(files).verdict == "unknown"


@pytest.mark.parametrize(("compute", "verdict"), [(0.25, "healthy"), (0.5, "unknown"), (2.0, "fault")])
def test_a_straggler_is_told_by_its_own_work(compute: float, verdict: str) -> None:
    said = answer(logs({rank: steps(rank, 9, compute=compute if rank == 3 else 0.2) for rank in range(8)}))
    assert said.verdict == verdict
    if verdict != "healthy":
        assert (said.findings[0].where.node, said.findings[0].where.rank) == ("cn-1", "3")


def test_waiting_long_is_no_straggling() -> None:
    assert (
        answer(logs({rank: steps(rank, 9, comm=9.0 if rank == 3 else 0.1) for rank in range(8)})).verdict == "healthy"
    )


def test_all_ranks_of_one_node_that_are_slow_name_the_node_alone() -> None:
    said = first(logs({rank: steps(rank, 9, compute=2.0 if rank in {4, 5} else 0.2) for rank in range(8)}))
    assert said is not None
    assert (said.where.node, said.where.rank) == ("cn-2", None)


@given(st.permutations(range(8)), st.sampled_from([0.1, 0.19, 0.2, 0.3]))
def test_no_order_of_files_and_no_small_difference_makes_a_straggler(order: list[int], compute: float) -> None:
    said = answer(logs({rank: steps(rank, 6, compute=compute if rank == 1 else 0.2) for rank in order}))
    assert said.findings == ()


LINK = "2026-02-03 04:05:00,000 cn-{} rank {} INFO link test rank {} -> rank {}: {} GB/s"


def links(speeds: dict[tuple[int, int], float]) -> dict[str, list[str]]:
    hosts = {f"job/cn-{rank // 2}/rank{rank}.log": steps(rank, 1) for rank in range(8)}
    for (source, target), speed in speeds.items():
        hosts[f"job/cn-{source // 2}/rank{source}.log"].append(LINK.format(source // 2, source, source, target, speed))
    return hosts


def test_the_node_at_one_end_of_every_slow_link_is_named() -> None:
    said = first(links({(1, 2): 20.0, (3, 4): 1.0, (5, 6): 1.1, (7, 0): 21.0}))
    assert said is not None
    assert (said.where.node, said.scope) == ("cn-2", "link")


def test_one_slow_link_has_two_ends_and_names_neither() -> None:
    said = first(links({(1, 2): 20.0, (3, 4): 1.0, (5, 6): 19.0, (7, 0): 21.0}))
    assert said is not None
    assert (said.where.node, said.confidence) == (None, "likely")
    assert "between cn-1 and cn-2" in said.because


def test_links_that_are_alike_are_no_finding() -> None:
    assert first(links({(1, 2): 20.0, (3, 4): 12.0, (5, 6): 15.0, (7, 0): 21.0})) is None


PORT = "{}: {}@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {} qdisc noqueue master fabric state UP mode DEFAULT"


@pytest.mark.parametrize(
    ("sizes", "named"), [((9000, 9000, 1500, 9000), "swp3"), ((9000, 1500), None), ((1500,) * 4, None)]
)
def test_a_port_with_a_smaller_mtu_than_its_siblings_is_named(sizes: tuple[int, ...], named: str | None) -> None:
    said = first({"leaf/ports.txt": [PORT.format(i, f"swp{i}", size) for i, size in enumerate(sizes, 1)]})
    assert (said.where.port if said is not None else None) == named


def test_the_management_port_of_every_node_may_have_another_mtu() -> None:
    line = "{}: {}: <BROADCAST,UP> mtu {} qdisc mq state UP group default"
    node = [line.format(2, "eth0", 1500), line.format(3, "ib0", 4092), line.format(4, "ib1", 4092)]
    assert first({f"out/node{index}/ip.txt": node for index in range(4)}) is None


def test_a_rank_with_another_version_than_all_others_is_named() -> None:
    lines = {rank: [*steps(rank, 2), f"[rank{rank}]: torch 2.{8 if rank == 6 else 9}.0+cu129"] for rank in range(8)}
    said = first(logs(lines))
    assert said is not None
    assert (said.where.node, said.where.rank, said.action) == ("cn-3", "6", "fix-config")


def test_a_node_with_another_nccl_than_all_others_is_named() -> None:
    line = "cn-{}:7:7 [0] NCCL INFO NCCL version 2.2{}.3+cuda12.9"
    said = first({"all.log": [line.format(node, 6 if node == 2 else 7) for node in range(4)]})
    assert said is not None
    assert (said.where.node, said.action) == ("cn-2", "fix-config")


def test_ranks_of_several_nodes_that_differ_name_nobody() -> None:
    lines = {rank: [*steps(rank, 2), f"[rank{rank}]: model of {rank % 3} parameters"] for rank in range(8)}
    assert first(logs(lines)) is None


def test_what_all_ranks_raise_is_no_matter_of_one_node() -> None:
    error = "[rank{}]: ValueError: vocab size 32000 is not divisible by 7"
    said = first(logs({rank: [*steps(rank, 2), error.format(rank)] for rank in range(8)}))
    assert said is not None
    assert (said.where.node, said.where.rank, said.action) == (None, None, "investigate")
    assert "printed by 8 ranks" in said.because


def test_the_table_of_torchrun_gives_host_and_rank() -> None:
    table = ["[0]:", "  time      : 2026-02-03_04:05:06", "  host      : cn-1", "  rank      : 3 (local_rank: 1)"]
    table += ["  exitcode  : -9 (pid: 88)  (SIGKILL)", "  error_file: <N/A>"]
    said = first({"a/out.log": table, "b/other.log": ["nothing to say"]})
    assert said is not None
    assert (said.where.node, said.where.rank) == ("cn-1", "3")


def test_a_signal_of_the_launcher_itself_is_an_echo() -> None:
    held = "W0203 04:05:07.1 6 torch/distributed/elastic/api.py:1047] Unable to shutdown process 88 via 15, "
    lines = [held + "forcefully exiting via 9", "  host      : cn-1", "  rank      : 3 (local_rank: 1)"]
    said = first({"a/out.log": [*lines, "  exitcode  : -9 (pid: 88)  (SIGKILL)"]})
    assert said is not None
    assert said.cause.startswith("a worker did not end when its launcher told it to")


@pytest.mark.parametrize(("late_s", "named"), [(40, "cn-2"), (3, None)])
def test_a_node_that_came_late_is_named_when_the_ranks_did_not_meet(late_s: int, named: str | None) -> None:
    start = "2026-02-03 04:05:{:02d},000 cn-{} rank {} INFO starting"
    wait = "torch.distributed.DistStoreError: Timed out after 9 seconds waiting for clients. 2/3 clients joined."
    files = {f"j/cn-{n}/rank{n}.log": [start.format(late_s if n == 2 else n, n, n), wait] for n in range(3)}
    said = first(files)
    assert said is not None
    assert said.where.node == named


def test_ranks_without_a_log_are_asked_for() -> None:
    hello = "2026-02-03 04:05:00,000 cn-0 rank {} INFO starting, world size 8"
    said = first(logs({rank: [hello.format(rank), TIMEOUT.format(rank)] for rank in (0, 1, 2, 3, 4, 5)}))
    assert said is not None
    assert "no output of ranks 6, 7 (of 8) was read" in said.because


def test_an_error_that_is_raised_while_another_is_handled_follows_from_it() -> None:
    lines = ["[rank2]: OSError: [Errno 28] No space left on device", "[rank2]: ", "[rank2]: Traceback:"]
    said = first(logs({2: [*steps(2, 3), *lines, "[rank2]: ValueError: the archive is not closed"]}))
    assert said is not None
    assert said.action == "fix-config"


def test_an_exception_that_nobody_knows_is_told_where_one_rank_alone_raises_it() -> None:
    lines = {rank: [*steps(rank, 3), TIMEOUT.format(rank)] for rank in range(8)}
    lines[5] = [
        *steps(5, 3),
        "Traceback (most recent call last):",
        "tokenizer.QuotaError: the vocabulary server says no",
    ]
    said = first(logs(lines))
    assert said is not None
    assert (said.where.node, said.where.rank, said.confidence) == ("cn-2", "5", "likely")
    assert "the vocabulary server says no" in said.because


def test_an_exception_that_ranks_of_several_nodes_raise_names_none_of_them() -> None:
    lines = {rank: [*steps(rank, 3), TIMEOUT.format(rank)] for rank in range(8)}
    for rank in (1, 6):
        lines[rank] = [*steps(rank, 3), "tokenizer.QuotaError: the vocabulary server says no"]
    assert answer(logs(lines)).verdict == "unknown"


def test_the_least_of_megatrons_report_is_named_where_it_is_far_under_the_most() -> None:
    line = "INFO:megatron.core.utils: MnRtt/Rnk: 1.0ms/0 | MnEtpt/Rnk: {}TF/5 | MxEtpt/Rnk: 297.30TF/15"
    slow, sound = first({"a.log": [line.format(150.0)]}), first({"a.log": [line.format(295.0)]})
    assert slow is not None
    assert (slow.where.rank, sound) == ("5", None)


PIECES = st.one_of(
    st.sampled_from([
        "[rank3]:", "rank 3 ", "Rank 12] ", "step 7/9 loss 2.1", " loss ", "time 0.5 s", "(compute 1 s)", "world size ",
        "8", "9" * 5000, "link test rank 1 -> rank 2: 3 GB/s", "host      : cn-1", "rank      : 3 (local_rank: 1)",
        "exitcode  : -9 (pid: 88)  (SIGKILL)", "(SIGTERM)", "inet 10.1.1.1/24 scope global",
        "ESTAB 0 0 10.1.1.1:1 10.1.1.2:2",
        "segs_out:4 retrans:0/9", "2: eth0: <UP> mtu 1500 state UP", "NCCL version 2.27.3", "model of 5 parameters",
        "last enqueued NCCL work: 5, last completed", "[PG ID 0 Rank 3]", "Timed out waiting 9ms for recv operation",
        "Connection closed by peer [10.1.1.2]:5", "MnEtpt/Rnk: 1.0TF/5 | MxEtpt/Rnk: 2.0TF/1",
        "cn-1: ", "cn-2:7:7 [0] NCCL",
        "Rank 3 is running collective: CollectiveFingerPrint(A, TensorDtypes=", "master cn-1", "training done",
    ]),
    st.text(max_size=9),
)  # fmt: skip
LINES = st.lists(st.lists(PIECES, max_size=5).map(" ".join), max_size=12)


@given(st.dictionaries(st.sampled_from(["a/cn-1/rank3.log", "a/cn-2.log", "b", "slurm.out"]), LINES, max_size=3))
def test_no_mixture_of_what_is_looked_for_breaks_it(files: dict[str, list[str]]) -> None:
    assert answer(files).verdict in {"fault", "healthy", "unknown"}
