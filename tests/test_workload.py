"""The document that people write: every fault at once, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.errors import InputError
from clusterwright.workload import config_path, load_workload

EXAMPLES = Path(__file__).parents[1] / "examples"
GOOD = """
[model]
name = "llama-3.1-70b"
[training]
tokens = "1.5T"
sequence_length = 8192
global_batch = "4M tokens"
"""


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workload")


def faults(folder: Path, text: str, *overrides: str) -> str:
    """What is said of a document."""
    path = folder / "w.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as told:
        load_workload(path, overrides=overrides)
    return str(told.value).replace(str(path), "w.toml")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/workload.toml")), ids=lambda p: p.parent.name)
def test_an_example_is_a_good_workload(path: Path) -> None:
    workload, _ = load_workload(path)
    assert workload.training
    assert workload.model.name or config_path(workload.model, path).exists()


def test_a_batch_in_tokens_is_whole_sequences(folder: Path) -> None:
    (folder / "w.toml").write_text(GOOD, encoding="utf-8")
    training = load_workload(folder / "w.toml")[0].training
    assert training is not None
    assert (488, 375217) == (training.batch_sequences, training.steps)


def test_samples_may_be_packed(folder: Path) -> None:
    (folder / "w.toml").write_text(GOOD + "sample_length = 300\n", encoding="utf-8")
    packed = load_workload(folder / "w.toml")[0].training
    assert packed is not None
    assert 300 == packed.sample_length


def test_five_faults_are_told_at_once(folder: Path) -> None:
    said = faults(
        folder,
        """
        [model]
        name = "llama-3.1-70b"
        [training]
        tokns = "1.5T"
        sequence_length = -1
        global_batch = 512
        precision = "bf17"
        [constraints]
        deadline = "60 fortnights"
        [prefer]
        objective = "speed"
        """,
    )
    assert said.startswith("w.toml: ")
    assert [] == [
        wanted
        for wanted in (
            "[training] unknown key 'tokns'; did you mean tokens?",
            "[training] tokens is missing",
            "[training] sequence_length",
            "[training] precision = 'bf17' is not one of 'bf16'",
            "did you mean bf16?",
            "[constraints] deadline: '60 fortnights' has the unknown unit 'fortnights'",
            "[prefer] objective = 'speed'",
        )
        if wanted not in said
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model", "w.toml: not valid TOML"),
        ("[model]\nname = 'a'\n", "a [training] or a [serving] section is wanted"),
        (GOOD + "sample_length = 0\n", "[training] sample_length"),
        (GOOD + "sample_lenght = 300\n", "did you mean sample_length?"),
        (GOOD + "[constraint]\ndeadline = '1 day'\n", "unknown section [constraint]; did you mean constraints?"),
        (GOOD.replace("name", "config = 'c.json'\nname"), "give either name (of the catalogue) or config"),
        (GOOD.replace('"4M tokens"', "0"), "global_batch: 0 is not a whole number of sequences"),
        (GOOD.replace('"4M tokens"', '"4M words"'), "unknown unit 'M words'"),
        (GOOD.replace('"1.5T"', "true"), "True is not a count"),
        (GOOD.replace('"1.5T"', "inf"), "must be a finite count of at least 1"),
        (GOOD + "[constraints]\nbudget = '-1 USD'\n", "'-1 USD' must be greater than zero"),
        (GOOD + "[constraints]\ndeadline = 30\n", "30 has no unit; write for instance '30 days'"),
        (GOOD + "[constraints]\nterms = ['leased']\n", "is not one of"),
    ],
)
def test_a_fault_is_told_with_its_place(folder: Path, text: str, said: str) -> None:
    assert said in faults(folder, text)


def test_an_override_replaces_what_the_file_says(folder: Path) -> None:
    (folder / "w.toml").write_text(GOOD, encoding="utf-8")
    overrides = ("site.queue=research", "training.sequence_length=4096", 'constraints.accelerators=["h100-sxm"]')
    workload, document = load_workload(folder / "w.toml", overrides=overrides)
    assert workload.training is not None
    assert ("research", 4096) == (workload.site.queue, workload.training.sequence_length)
    assert ("h100-sxm",) == workload.constraints.accelerators
    assert {"queue": "research"} == document["site"]


@pytest.mark.parametrize("override", ["queue=research", "site.queue", "=x"])
def test_a_malformed_override_is_refused(folder: Path, override: str) -> None:
    assert "write section.key=value" in faults(folder, GOOD, override)


@given(value=st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=8), st.none()))
@pytest.mark.parametrize("key", ["tokens", "sequence_length", "global_batch", "precision"])
def test_any_value_is_accepted_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(GOOD, encoding="utf-8")
    said = str(path)
    try:
        load_workload(path, overrides=(f"training.{key}={value}",))
    except InputError as error:
        said = str(error)
    assert said.startswith(str(path))
