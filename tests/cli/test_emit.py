"""``clusterwright emit`` and ``targets`` as scripts use them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from clusterwright import cli
from clusterwright.emitters import targets
from tests.emitters.plans import SITE, make_plan

if TYPE_CHECKING:
    from pathlib import Path


def run(verb: str, *arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([verb, *map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return kept(tmp_path / "plan.json", SITE)


def kept(path: Path, site: dict[str, Any]) -> Path:
    path.write_text(make_plan(site=site).to_json(), encoding="utf-8")
    return path


def below(folder: Path) -> list[str]:
    """Every file and folder, by its path."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_the_files_are_those_that_are_named_and_a_second_run_replaces_them_by_the_same_bytes(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert 0 == run("emit", plan, "--target=slurm", f"--out={out}", "--format=json")
    found = json.loads(capsys.readouterr().out)
    assert below(out) == found["files"]
    assert all(gap["what"] and gap["why"] for gap in found["unsupported"])
    before = {name: (out / name).read_bytes() for name in found["files"]}
    (out / "job.sbatch").write_text("mine", encoding="utf-8")
    assert 0 == run("emit", plan, "--target=slurm", f"--out={out}")
    assert before == {name: (out / name).read_bytes() for name in below(out)}


def test_neither_the_machine_nor_the_folder_is_in_the_files(plan: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert 0 == run("emit", plan, "--target=megatron", f"--out={tmp_path / name}")
    for name in below(tmp_path / "one"):
        text = (tmp_path / "one" / name).read_text("utf-8")
        assert text == (tmp_path / "two" / name).read_text("utf-8")
        assert [] == [word for word in (str(tmp_path), os.uname().nodename) if word in text and len(word) > 3]


def test_missing_keys_are_all_named_and_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, plan = tmp_path / "out", kept(tmp_path / "plan.json", {"partition": "gpu"})
    assert 1 == run("emit", plan, "--target=slurm", f"--out={out}", "--format=json")
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    wanted = ["account", "data_dir", "checkpoint_dir", "tokenizer", "interface"]
    assert wanted == found["missing"]
    assert [] == found["files"]
    assert [] == [key for key in wanted if key not in shown.err]
    assert not out.exists()


def test_with_allow_unset_the_gaps_are_marked_and_announced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, plan = tmp_path / "out", kept(tmp_path / "plan.json", {})
    assert 0 == run("emit", plan, "--target=volcano", f"--out={out}", "--allow-unset", "--format=json")
    found = json.loads(capsys.readouterr().out)
    said = {gap["what"].removeprefix("site.") for gap in found["unsupported"] if gap["what"].startswith("site.")}
    assert set(next(t for t in targets() if t.name == "volcano").needs) == said
    text = (out / "job.yaml").read_text("utf-8")
    assert [] == [key for key in said if f"give {key} in [site]" not in text]


def test_set_wins_over_the_plan_and_is_kept_in_the_manifest(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert 0 == run(
        "emit", plan, "--target=slurm", f"--out={out}", "--set=partition=night", "--set", "site.account=one"
    )
    text = (out / "job.sbatch").read_text("utf-8")
    assert "#SBATCH --partition=night\n" in text
    assert "#SBATCH --account=one\n" in text
    assert {"account": "one", "partition": "night"} == json.loads((out / "MANIFEST.json").read_text("utf-8"))["set"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target=slrum",), ("slrum", "did you mean slurm")),
        (("--target=slurm", "--set=partiton=x"), ("partiton", "did you mean partition")),
        (("--target=slurm", "--set=queue=x"), ("queue", "no such key")),
        (("--target=slurm", "--set=partition"), ("partition", "key=value")),
        (("--target=slurm", "--set=partition=a b"), ("partition", "'a b'")),
        (("--target=slurm", "--set=time_limit=soon"), ("time_limit", "7-00:00:00")),
        (("--target=megatron", "--set=torchtitan_version=0.2"), ("torchtitan_version", "no such key")),
        (("--target=torchtitan", "--set=torchtitan_version=1"), ("torchtitan_version", "0.2")),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert 2 == run("emit", plan, *arguments, f"--out={tmp_path / 'out'}")
    shown = capsys.readouterr()
    assert "" == shown.out
    assert [] == [word for word in words if word not in shown.err]
    assert ["plan.json"] == below(tmp_path)


def test_a_destination_in_the_way_leaves_all_others_untouched(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "launch.sh" / "mine").mkdir(parents=True)
    (out / "job.sbatch").write_text("mine", encoding="utf-8")
    before = below(tmp_path)
    assert 2 == run("emit", plan, "--target=slurm", f"--out={out}")
    assert "launch.sh" in capsys.readouterr().err
    assert before == below(tmp_path)
    assert "mine" == (out / "job.sbatch").read_text("utf-8")


def test_a_folder_that_is_a_file_and_a_full_disk_are_said(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    assert 2 == run("emit", plan, "--target=slurm", f"--out={tmp_path / 'file' / 'out'}")
    assert "file" in capsys.readouterr().err

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clusterwright.files.tempfile.mkstemp", full)
    assert 2 == run("emit", plan, "--target=slurm", f"--out={tmp_path / 'out'}")
    assert "No space left on device" in capsys.readouterr().err
    assert ["file", "plan.json"] == below(tmp_path)


@pytest.mark.parametrize(
    ("text", "word"),
    [("", "plan.json"), ("{", "plan.json"), ("[]", "plan.json"), ('{"version": 99}', "99"), (None, "no such file")],
)
def test_a_plan_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, word: str
) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert 2 == run("emit", path, "--target=slurm", f"--out={tmp_path / 'out'}")
    assert word in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_target_that_does_not_apply_says_why_and_writes_nothing(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == run("emit", plan, "--target=mig", f"--out={tmp_path / 'out'}", "--format=json")
    found = json.loads(capsys.readouterr().out)
    assert [] == found["files"]
    assert ["MIG"] == [gap["what"] for gap in found["unsupported"]]
    assert not (tmp_path / "out").exists()


def test_every_target_is_listed_with_what_it_covers_and_the_keys_it_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("targets", "--format=json")
    listed = json.loads(capsys.readouterr().out)["targets"]
    assert [t.name for t in targets()] == [row["name"] for row in listed]
    assert all(row["covers"] for row in listed)
    assert 0 == run("targets")
    text = capsys.readouterr().out
    assert [] == [key for row in listed for key in (*row["needs"], *row["takes"]) if f"  {key} " not in text]
