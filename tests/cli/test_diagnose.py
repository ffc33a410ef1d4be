"""The verb on the command line: exit codes, one JSON document, twenty lines for a phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from clusterwright.cli import main
from clusterwright.cli.diagnose import Meter

if TYPE_CHECKING:
    from pathlib import Path

Run = Callable[..., tuple[int, str, str]]

FELL_OFF = "Jan 05 04:10:00 gpu-a7 kernel: NVRM: Xid (PCI:0000:5e:00): 79, pid=9, GPU has fallen off the bus.\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["diagnose", *map(str, arguments)])
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


def test_a_fault_is_exit_code_1_and_one_json_document(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(FELL_OFF)
    code, out, _ = run(log, "--format", "json")
    answer = json.loads(out)
    assert (code, answer["verdict"]) == (1, "fault")
    assert answer["findings"][0]["where"] == {"node": "gpu-a7", "accelerator": "0000:5e:00.0"}
    assert answer["findings"][0]["evidence"][0]["line"] == 1


def test_health_is_exit_code_0(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "smi.log"
    log.write_text("        Pending                           : No\n")
    assert run(log, "--format", "json")[0] == 0


def test_an_empty_file_is_unknown_and_says_what_to_collect(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "empty.log"
    log.write_text("")
    code, out, _ = run(log)
    assert code == 1
    assert out.startswith("UNKNOWN")
    assert "collect next" in out


def test_a_missing_file_is_named_with_exit_code_2(run: Run, tmp_path: Path) -> None:
    code, out, err = run(tmp_path / "gone.log")
    assert (code, out) == (2, "")
    assert "gone.log" in err


def test_no_file_is_exit_code_2(run: Run) -> None:
    assert run()[0] == 2


def test_the_text_fits_a_phone_and_explain_shows_all(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "many.log"
    log.write_text("".join(FELL_OFF.replace("gpu-a7", f"gpu-{node}") for node in range(30)))
    text = run(log)[1]
    assert len(text.splitlines()) <= 20
    assert len(run(log, "--explain")[1].splitlines()) > 20


def test_markdown_has_a_heading_and_the_lines_as_code(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(FELL_OFF)
    out = run(log, "--format", "markdown")[1]
    assert out.startswith("## Diagnosis: fault")
    assert "```text" in out


def test_control_characters_of_a_log_never_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(FELL_OFF.replace("pid=9", "\x1b[31mpid=9\x07"))
    assert "\x1b" not in run(log)[1]


TIMEOUT = (
    "[rank{}]:[E105 04:20:0{}.5 ProcessGroupNCCL.cpp:607] [Rank {}] Watchdog caught collective operation timeout: x\n"
)


def test_the_chain_ends_with_the_lines_of_all_files_on_one_clock(run: Run, tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text(FELL_OFF)
    (tmp_path / "job.log").write_text(TIMEOUT.format(3, 2, 3) + TIMEOUT.format(1, 1, 1))
    _, out, _ = run(tmp_path, "--explain")
    moments = out[out.index("timeline:") :].splitlines()[1:]
    assert [line.split()[1:4] for line in moments] == [
        ["04:10:00.0", "1.", "kern.log:1"], ["04:20:01.5", "~", "job.log:2"], ["04:20:02.5", "~", "job.log:1"],
    ]  # fmt: skip
    assert "Timeline (UTC" in run(tmp_path, "--format", "markdown")[1]


def test_the_meter_is_silent_at_first_and_then_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    meter = Meter(total=4_000_000)
    meter(1_000_000)
    assert capsys.readouterr().err == ""
    meter.began_s -= 10
    meter(1_000_000)
    assert "read 2 of 4 MB" in capsys.readouterr().err
    meter.clear()
    assert capsys.readouterr().err.endswith("\r")
