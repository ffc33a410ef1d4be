from __future__ import annotations

import hashlib
import json

import pytest

from clusterwright.emitters import emit, targets
from clusterwright.emitters.door import MANIFEST, MissingKeysError
from clusterwright.emitters.keys import KEYS, checked
from clusterwright.errors import InputError
from clusterwright.hardware import FabricKind
from clusterwright.layout import Layout
from tests.emitters.plans import SITE, fitting, make_plan, node

NAMES = [target.name for target in targets()]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_plan_gives_the_same_bytes(name: str) -> None:
    (plan, given), (again, _) = fitting(name), fitting(name)
    assert {} != emit(plan, name, given).files
    assert emit(plan, name, given) == emit(again, name, given)


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_holds_the_hash_of_plan_and_files(name: str) -> None:
    plan, given = fitting(name)
    bundle = emit(plan, name, given)
    manifest = json.loads(bundle.files[MANIFEST])
    assert hashlib.sha256(plan.to_json().encode()).hexdigest() == manifest["plan"]["sha256"]
    hashes = {n: {"sha256": hashlib.sha256(t.encode()).hexdigest()} for n, t in bundle.files.items() if n != MANIFEST}
    assert hashes == manifest["files"]
    assert [{"what": u.what, "why": u.why} for u in bundle.unsupported] == manifest["unsupported"]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_that_a_target_cannot_run_gives_no_file_and_says_why(name: str) -> None:
    bundle = emit(make_plan(serving=True), name)
    assert bundle.files or bundle.unsupported
    assert all(gap.what and gap.why for gap in bundle.unsupported)


@pytest.mark.parametrize("name", [t.name for t in targets() if t.needs])
def test_missing_keys_are_all_named_and_nothing_is_written(name: str) -> None:
    target = next(t for t in targets() if t.name == name)
    plan, _ = fitting(name, site=False)
    with pytest.raises(MissingKeysError) as caught:
        emit(plan, name)
    assert target.needs == caught.value.keys
    assert [] == [key for key in target.needs if key not in str(caught.value)]
    assert 1 == caught.value.exit_code


@pytest.mark.parametrize("name", [t.name for t in targets() if t.needs])
def test_keys_left_unset_are_marked_in_the_files_and_announced(name: str) -> None:
    target = next(t for t in targets() if t.name == name)
    plan, _ = fitting(name, site=False)
    bundle = emit(plan, name, allow_unset=True)
    text = "".join(bundle.files.values())
    assert [f"site.{key}" for key in target.needs] == [gap.what for gap in bundle.unsupported][: len(target.needs)]
    assert [] == [key for key in target.needs if f"give {key} in [site]" not in text]


def test_network_keys_are_wanted_only_where_there_is_such_a_network() -> None:
    site = {k: v for k, v in SITE.items() if not k.startswith("rdma")}
    with pytest.raises(MissingKeysError, match="rdma_resource, rdma_per_node"):
        emit(make_plan(site=site), "volcano")
    assert {} != emit(make_plan(site=site, hardware=node(FabricKind.TCP)), "volcano").files
    del site["interface"]
    assert {} != emit(make_plan(Layout(tp=8, global_batch=32), site=site), "volcano").files


def test_an_unknown_target_is_told_the_nearest() -> None:
    with pytest.raises(InputError, match="volcano"):
        emit(make_plan(), "volcanx")


def test_a_key_that_the_target_does_not_read_is_told_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean queue"):
        emit(make_plan(), "volcano", {"queu": "x"})


def test_a_value_given_by_hand_wins_over_the_plan() -> None:
    text = emit(make_plan(), "volcano", {"queue": "night"}).files["job.yaml"]
    assert "queue: night  # queue of Volcano or Kueue [--set queue]" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("queue", "a b"),
        ("queue", "a\nb: c"),
        ("namespace", "Training"),
        ("rdma_resource", "hca"),
        ("rdma_per_node", "0"),
        ("rdma_per_node", "eight"),
        ("interface", "eth0; rm -rf /"),
        ("data_dir", "data"),
        ("data_dir", "/data $(id)"),
        ("checkpoint_dir", "/a'b"),
        ("tokenizer", "x`id`"),
        ("image", "a image"),
        ("hosts", "a,,b"),
        ("hosts", ["a", "a"]),
        ("lr", "fast"),
        ("dscp", "64"),
        ("time_limit", "soon"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_key(key: str, value: object) -> None:
    with pytest.raises(InputError, match=key):
        checked(key, value, where="site")


@pytest.mark.parametrize("name", NAMES)
def test_every_key_of_a_target_is_known_and_a_needed_one_has_a_mark_for_when_it_is_unset(name: str) -> None:
    target = next(t for t in targets() if t.name == name)
    assert [] == [key for key in (*target.needs, *target.takes) if key not in KEYS]
    assert [] == [key for key in target.needs if KEYS[key].unset == ""]
    assert len({*target.needs, *target.takes}) == len(target.needs) + len(target.takes)
