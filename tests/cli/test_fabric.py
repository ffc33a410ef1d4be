"""``clusterwright fabric`` as scripts use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterwright import cli

ROOT = Path(__file__).parents[2]
USUAL = ["fabric", "--nodes=127", "--nics=8", "--nic-gbps=400", "--radix=64"]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    assert isinstance(left.value.code, int)
    return left.value.code


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert 0 == run(*arguments, "--format", "json")
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_the_document_has_the_keys_that_scripts_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *USUAL)
    expected = {
        "leaf": 32, "spine": 16, "core": 0, "switches": 48, "tiers": 2, "node_leaf_cables": 1016,
        "leaf_spine_cables": 1024, "spine_core_cables": 0, "max_nodes": 256,
    }  # fmt: skip
    assert expected == {key: found[key] for key in expected}
    assert found["capex_usd"] > 0
    assert found["power_w"] > 0


def test_planes_multiply_what_is_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *USUAL, "--planes=2")
    assert (48, 96) == (found["switches"], found["planes_switches"])
    assert 2 * found["capex_usd"] == found["planes_capex_usd"]


def test_the_words_for_people_name_the_rule_and_the_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(*USUAL, "--planes", "2")
    text = capsys.readouterr().out
    assert "shared-spine" in text
    assert "https://" in text
    assert "96 switches" in text


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ("--radix=0", "radix"),
        ("--radix=many", "radix"),
        ("--nodes=1.5", "nodes"),
        ("--nics=-8", "nics"),
        ("--nic-gbps=nan", "nic-gbps"),
        ("--nic-gbps=inf", "nic-gbps"),
        ("--oversubscription=0", "oversubscription"),
        ("--oversubscription=0.001", "oversubscription"),
        ("--topology=ring", "shared-spine"),
        ("--plot=picture.jpeg", "svg"),
    ],
)
def test_wrong_input_is_one_line_that_names_the_option(
    capsys: pytest.CaptureFixture[str], change: str, word: str
) -> None:
    assert 2 == run(*USUAL, change)
    told = capsys.readouterr()
    assert "" == told.out
    assert word in told.err
    assert 1 == len(told.err.strip().splitlines())


def test_more_nodes_than_any_network_holds_are_bad_news(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == run(*USUAL, "--nodes=100000")
    assert "do not fit" in capsys.readouterr().err


def test_picture_and_cable_list_are_written_together(tmp_path: Path) -> None:
    picture, cables = tmp_path / "fabric.svg", tmp_path / "cables.csv"
    assert 0 == run(*USUAL, "--plot", str(picture), "--cables", str(cables))
    assert picture.read_text("utf-8").startswith("<svg")
    assert 1 + 1016 + 1024 == len(cables.read_text("utf-8").splitlines())


def test_nothing_is_written_where_one_file_cannot_be(tmp_path: Path) -> None:
    picture = tmp_path / "fabric.svg"
    assert 2 == run(*USUAL, "--plot", str(picture), "--cables", str(tmp_path))
    assert not picture.exists()


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of the shipped example."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    example = ROOT / "examples" / "llama-3.1-70b" / "workload.toml"
    assert 0 == run("plan", str(example), "--out", str(path))
    return path


def test_a_plan_gives_the_nodes_and_gets_the_network_that_its_job_needs(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = document(capsys, "fabric", "--plan", str(plan))
    chosen = json.loads(plan.read_text("utf-8"))["chosen"]
    assert chosen["nodes"] + chosen["spares"] == found["nodes"]
    assert chosen["fabric"]["leaf"] == found["leaf"]
    assert chosen["fabric"]["spine"] == found["spine"]
    assert ["infiniband", "roce", "efa", "tcp"] == [row["fabric"] for row in found["smallest_adequate"]]
    assert 84 == len(found["networks"])
    assert found["site"]["it_power_w"] >= chosen["estimate"]["power_w"]
    assert found["site"]["site_power_w"] == pytest.approx(1.54 * found["site"]["it_power_w"])
    assert ["compute", "storage", "management"] == [n["purpose"] for n in found["cluster_networks"]]
    assert 0 == run("fabric", "--plan", str(plan))
    assert "what the job of the plan needs" in capsys.readouterr().out


def test_goodput_takes_the_job_from_a_plan_and_agrees_with_it(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "goodput", "--plan", str(plan))
    chosen = json.loads(plan.read_text("utf-8"))["chosen"]
    assert chosen["estimate"]["goodput"] == pytest.approx(found["goodput"], abs=1e-3)
    assert chosen["storage"]["checkpoint_bytes"] == found["checkpoint_bytes"]


def test_without_a_plan_each_missing_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run("fabric", "--nodes=4", "--nics=8", "--nic-gbps=400")
    assert "--radix" in capsys.readouterr().err


def test_a_rack_map_fills_racks_by_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racks = tmp_path / "racks.csv"
    assert 0 == run(*USUAL, "--rack-map", str(racks), "--node-kw=10.2", "--rack-kw=40")
    rows = racks.read_text("utf-8").splitlines()
    assert ["node,rack,place", "node0,rack0,0", "node1,rack0,1", "node2,rack0,2", "node3,rack1,0"] == rows[:5]
    assert "node126,rack42,0" == rows[-1]
    capsys.readouterr()
    assert 2 == run(*USUAL, "--rack-map", str(racks), "--node-kw=50")
    assert "--rack-kw" in capsys.readouterr().err
    assert 2 == run(*USUAL, "--rack-map", str(racks))
    assert "--node-kw" in capsys.readouterr().err


def test_the_published_storage_network_of_127_nodes_comes_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *USUAL, "--storage-nics=2", "--storage-leaves=4")["storage_fabric"]
    # RA-11333-001 V11, table 7: 16 switches; table 8: 494 cables of nodes and between switches, 48 of storage.
    assert (16, 494, 48) == (
        found["switches"], found["node_leaf_cables"] + found["leaf_spine_cables"], found["device_leaf_cables"],
    )  # fmt: skip


def test_the_parts_add_up_to_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *USUAL)
    assert found["capex_usd"] == pytest.approx(sum(line["usd"] for line in found["capex_parts"]))
    assert 1016 + 1020 == pytest.approx(found["transceivers"], abs=6)


def test_the_picture_shows_the_whole_cluster_where_there_is_more_than_one_network(tmp_path: Path) -> None:
    picture = tmp_path / "cluster.svg"
    assert 0 == run(*USUAL, "--storage-nics=2", "--plot", str(picture))
    assert "management" in picture.read_text("utf-8")


@pytest.mark.parametrize("extra", [(), ("--storage-nics=2",)])
def test_everything_for_people_fits_a_hundred_columns(
    capsys: pytest.CaptureFixture[str], extra: tuple[str, ...], plan: Path
) -> None:
    for arguments in ([*USUAL, *extra], ["fabric", "--plan", str(plan), *extra]):
        assert 0 == run(*arguments)
        text = capsys.readouterr().out
        assert [] == [line for line in text.splitlines() if len(line) > 100 and "://" not in line]


def test_a_storage_network_is_designed_apart(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, *USUAL, "--storage-nics=2")
    assert 48 == found["switches"]
    assert 2 * 127 == found["storage_fabric"]["node_leaf_cables"]
    assert 0 == run(*USUAL, "--storage-nics=2")
    assert f"{found['storage_fabric']['switches']} switches" in capsys.readouterr().out


OWN = """
[model]
name = "llama-3.1-8b"
[training]
tokens = "1B"
sequence_length = 8192
global_batch = 512
[cluster]
node = "{node}"
nodes = {nodes}
oversubscription = 2.0
"""


def planned(tmp_path: Path, node: str, nodes: int) -> Path:
    (tmp_path / "workload.toml").write_text(OWN.format(node=node, nodes=nodes), encoding="utf-8")
    assert 0 == run("plan", str(tmp_path / "workload.toml"), "--out", str(tmp_path / "plan.json"))
    return tmp_path / "plan.json"


def test_the_network_of_a_plan_is_oversubscribed_as_its_cluster_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(tmp_path, "dgx-h100", 4)
    capsys.readouterr()
    found = document(capsys, "fabric", "--plan", str(plan))
    assert 2.0 == found["oversubscription"]
    assert found["cluster_networks"][0]["design"]["leaf_spine_cables"] == found["leaf_spine_cables"]
    assert 1.0 == document(capsys, "fabric", "--plan", str(plan), "--oversubscription=1")["oversubscription"]


def test_a_plan_on_one_node_needs_no_network_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = planned(tmp_path, "dgx-h100", 1)
    capsys.readouterr()
    assert 0 == run("fabric", "--plan", str(plan))
    assert "no network; it runs on one node" in capsys.readouterr().out
