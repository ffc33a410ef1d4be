"""``clusterwright goodput`` as scripts use it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterwright import cli


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["goodput", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert 0 == run(*arguments, "--format=json")
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_the_run_of_16384_stops_eight_times_a_day_and_is_useful_for_more_than_nine_tenths(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = document(
        capsys, "--accelerators=16384", "--checkpoint-bytes=5.29e12", "--write-bytes-per-s=2e12", "--mode=sync"
    )
    assert found["failures_per_day"] == pytest.approx(419 / 54, rel=0.01)
    assert found["goodput"] > 0.9
    assert found["spares"] > 0
    low, high = found["monte_carlo"]["interval"]
    assert low <= found["goodput"] <= high


def test_what_is_given_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(
        capsys, "--accelerators=1000", "--mtbf-hours-per-accelerator=24000", "--checkpoint-bytes=6e12",
        "--write-bytes-per-s=1e11", "--mode=sync", "--interval-s=1800", "--repair-hours=48",
    )  # fmt: skip
    assert found["failures_per_day"] == pytest.approx(1.0)
    assert 60.0 == found["checkpoint_stall_s"]
    assert 1800.0 == found["checkpoint_interval_s"]
    assert [] == found["warnings"]


def test_storage_that_was_measured_fast_enough_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--accelerators=1024", "--checkpoint-bytes=912e9")
    rates = [system["write_bytes_per_s"] for system in found["storage"]["deliverers"]]
    assert rates
    assert min(rates) >= found["storage"]["sync_write_bytes_per_s"]
    assert 0 == run("--accelerators=1024", "--checkpoint-bytes=1e16")
    assert "nowhere that was measured" in capsys.readouterr().out


def test_without_accelerators_the_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run("--mode=sync")
    assert "--accelerators" in capsys.readouterr().err


def test_each_improvement_has_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--accelerators=16384", "--usd-per-accelerator-hour=2", "--mode=sync")
    assert 6 == len(found["worth"])
    assert all(row["usd_per_day"] >= 0 for row in found["worth"])


def test_an_interval_shorter_than_the_write_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--accelerators=64", "--write-bytes-per-s=1e9", "--interval-s=60")
    assert any("takes longer than 60 s" in warning for warning in found["warnings"])


def test_a_job_that_does_nothing_but_fail_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("--accelerators=10000000", "--usd-per-accelerator-hour=2")
    assert "most of the time is lost" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("--accelerators=0", "accelerators"),
        ("--accelerators=1000000000", "accelerators"),
        ("--checkpoint-bytes=-1", "checkpoint-bytes"),
        ("--write-bytes-per-s=0", "write-bytes-per-s"),
        ("--checkpoint-bytes=1e308", "checkpoint-bytes"),
        ("--restart-s=nan", "restart-s"),
        ("--mtbf-hours-per-accelerator=inf", "mtbf-hours-per-accelerator"),
        ("--mode=never", "mode"),
    ],
)
def test_wrong_input_is_one_line_that_names_the_option(
    capsys: pytest.CaptureFixture[str], change: str, word: str
) -> None:
    assert 2 == run("--accelerators=64", change)
    told = capsys.readouterr()
    assert "" == told.out
    assert word in told.err
    assert 1 == len(told.err.strip().splitlines())


def test_one_slow_accelerator_slows_the_whole_job(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--accelerators=384", "--slowest=0.95", "--usd-per-accelerator-hour=2")
    assert found["straggler"]["lost_usd_per_day"] == pytest.approx(0.05 * 384 * 24 * 2)
    assert 0.95 < found["straggler"]["synchronous_share"] < 0.951
    assert 0 == run("--accelerators=384", "--slowest=0.95")
    assert "straggler" in capsys.readouterr().out
    assert 2 == run("--accelerators=384", "--slowest=nan")
    assert 2 == run("--accelerators=384", "--slowest=1.5")


def test_a_mixture_runs_at_the_pace_of_its_slowest_kind(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--mix=h100-sxm=64", "--mix=a100-80gb-sxm=64", "--usd-per-accelerator-hour=2")
    found = document(capsys, *asked)
    assert 128 == found["accelerators"]
    fast, slow = (kind["flop_per_s"] for kind in found["mix"]["kinds"])
    assert fast > slow
    assert found["mix"]["synchronous_share"] == pytest.approx(2 * slow / (fast + slow))
    assert found["mix"]["lost_usd_per_day"] == pytest.approx((1 - 2 * slow / (fast + slow)) * 128 * 24 * 2)
    assert any("a100-80gb-sxm, sets the pace" in text for text in found["warnings"])
    assert any("h100-sxm alone are" in text for text in found["warnings"])


def test_one_kind_is_no_mixture(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--mix=h100-sxm=64")
    assert 1.0 == found["mix"]["synchronous_share"]
    assert not any("mix" in text for text in found["warnings"])


@pytest.mark.parametrize(("asked", "word"), [("--mix=h100-sxm", "ACCELERATOR=COUNT"), ("--mix=h100-sxn=8", "h100-sxm")])
def test_a_wrong_mixture_is_one_line(capsys: pytest.CaptureFixture[str], asked: str, word: str) -> None:
    assert 2 == run(asked)
    told = capsys.readouterr()
    assert word in told.err
    assert 1 == len(told.err.strip().splitlines())


def test_the_words_fit_a_hundred_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("--mix=h100-sxm=64", "--mix=a100-80gb-sxm=64", "--usd-per-accelerator-hour=2")
    text = capsys.readouterr().out
    assert [] == [line for line in text.splitlines() if len(line) > 100 and "://" not in line]


def test_a_checkpoint_has_the_bytes_of_what_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = [
        document(capsys, "--accelerators=64", "--parameters=8e9", f"--checkpoint-format={kind}")["checkpoint_bytes"]
        for kind in ("full", "weights-fp32", "weights-bf16")
    ]
    assert [12.9 * 8e9, 32e9, 16e9] == pytest.approx(sizes)


def test_text_is_read_by_anyone_and_images_by_few(capsys: pytest.CaptureFixture[str]) -> None:
    text = document(capsys, "--accelerators=64", "--samples-per-s=3e6", "--sample-bytes=4")["storage"]
    images = document(capsys, "--accelerators=64", "--samples-per-s=3e5", "--sample-bytes=2e6")["storage"]
    assert text["read_bytes_per_s"] == pytest.approx(12e6)
    assert len(text["readers"]) > len(images["readers"]) > 0
    assert min(s["read_bytes_per_s"] for s in images["readers"]) >= 6e11
    assert 0 == run("--accelerators=64", "--samples-per-s=3e5", "--sample-bytes=2e6")
    assert "600 GB/s must be read" in capsys.readouterr().out
    assert 2 == run("--accelerators=64", "--samples-per-s=3e5")
    assert "--sample-bytes" in capsys.readouterr().err


def test_the_causes_add_up_to_the_failures(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--accelerators=16384")
    assert found["failures_per_day"] == pytest.approx(sum(c["per_day"] for c in found["causes"]))
    assert found["causes"][0]["per_day"] >= found["causes"][-1]["per_day"]


def test_spares_have_their_price_and_their_worth(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "--accelerators=16384", "--usd-per-accelerator-hour=2")["spares_worth"]
    assert found["cost_usd_per_day"] == pytest.approx(found["spares"] * 8 * 24 * 2)
    assert found["saves_usd_per_day"] > 0
    assert found["goodput_without"] < 0.5
