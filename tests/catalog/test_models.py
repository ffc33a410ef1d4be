"""Every shipped model: what its shape adds up to is what its makers published."""

from __future__ import annotations

import pytest

from clusterwright.catalog import load
from clusterwright.model import Model

MODELS = load().models
# Published only as a number of one or two digits, too coarse to hold a shape to.
COARSE = {"falcon-180b", "megatron-1.7b", "megatron-3.6b", "nemotron-h-56b", "qwen3-0.6b"}
SPOKEN = [
    "llama-7b",
    "llama-2-7b",
    "llama-2-13b",
    "llama-2-70b",
    "llama-3-8b",
    "llama-3-70b",
    "llama-3.1-8b",
    "llama-3.1-70b",
    "llama-3.1-405b",
    "llama-3.2-1b",
    "llama-3.2-3b",
    "llama-3.3-70b",
    "llama-4-scout",
    "llama-4-maverick",
    "mistral-7b",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "qwen2.5-0.5b",
    "qwen2.5-7b",
    "qwen2.5-32b",
    "qwen2.5-72b",
    "qwen3-8b",
    "qwen3-32b",
    "qwen3-30b-a3b",
    "qwen3-235b-a22b",
    "deepseek-v2",
    "deepseek-v2-lite",
    "deepseek-v3",
    "deepseek-r1",
    "kimi-k2",
    "gpt-oss-20b",
    "gpt-oss-120b",
    "gemma-2-9b",
    "gemma-2-27b",
    "gemma-3-27b",
    "phi-3-mini",
    "phi-4",
    "falcon-7b",
    "falcon-40b",
    "falcon-180b",
    "mpt-7b",
    "mpt-30b",
    "bloom-176b",
    "gpt-j-6b",
    "gpt-neox-20b",
    "gpt-3-125m",
    "gpt-3-175b",
    "megatron-22b",
    "megatron-530b",
    "megatron-1t",
    "nemotron-4-15b",
    "nemotron-4-340b",
    "nemotron-h-56b",
    "grok-1",
]


@pytest.mark.parametrize("name", sorted(set(MODELS) - COARSE))
def test_the_shape_adds_up_to_the_published_count(name: str) -> None:
    model = MODELS[name]
    assert model.published_parameters is not None
    assert pytest.approx(model.published_parameters, rel=0.005) == model.parameters


@pytest.mark.parametrize("name", sorted(COARSE))
def test_a_coarsely_published_model_is_as_large_as_its_name_says(name: str) -> None:
    assert MODELS[name].published_parameters is None
    said = float(name.rsplit("-", maxsplit=1)[-1].removesuffix("b")) * 1e9
    assert pytest.approx(said, rel=0.03) == MODELS[name].parameters


def test_the_models_people_speak_of_are_there() -> None:
    assert [] == [name for name in SPOKEN if name not in MODELS]


def test_a_file_bears_the_name_of_its_model() -> None:
    assert {name: name for name in MODELS} == {name: model.name for name, model in MODELS.items()}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_names_a_public_source(name: str) -> None:
    assert all(source.startswith("https://") for source in MODELS[name].sources)
    assert MODELS[name].sources


@pytest.mark.parametrize(
    ("name", "active", "tolerance"),
    [  # what the makers say that one token meets
        ("mixtral-8x7b", 12.9e9, 0.005),
        ("mixtral-8x22b", 39.1e9, 0.005),
        ("deepseek-v3", 37e9, 0.02),
        ("deepseek-v2", 21e9, 0.02),
        ("kimi-k2", 32e9, 0.03),
        ("qwen3-30b-a3b", 3.3e9, 0.02),
        ("qwen3-235b-a22b", 22e9, 0.01),
        ("qwen3-coder-480b-a35b", 35e9, 0.02),
        ("llama-4-scout", 17e9, 0.02),
        ("llama-4-maverick", 17e9, 0.02),
        ("dbrx", 36e9, 0.02),
        ("olmoe-1b-7b", 1.3e9, 0.02),
        ("phi-3.5-moe", 6.6e9, 0.01),
        ("nemotron-3-nano-30b-a3b", 3.6e9, 0.01),
    ],
)
def test_one_token_meets_as_many_parameters_as_the_makers_say(name: str, active: float, tolerance: float) -> None:
    assert pytest.approx(active, rel=tolerance) == MODELS[name].active_parameters


def test_gemma_attends_to_a_window_in_every_layer_but_each_sixth() -> None:
    windows = [
        block.mixer.window
        for block in MODELS["gemma-3-27b"].blocks
        for _ in range(block.count)
        if block.mixer
        if block.mixer.kind == "attention"
    ]
    assert [0 if (layer + 1) % 6 == 0 else 1024 for layer in range(62)] == windows


def test_interleaved_layers_are_few_kinds() -> None:
    model = MODELS["llama-4-maverick"]
    assert 48 == len(model.blocks)
    assert [(24, "dense", 8192), (12, "experts", 8192), (12, "experts", 0)] == [
        (block.count, block.feed and block.feed.kind, block.mixer.window)
        for block in model.kinds
        if block.mixer and block.mixer.kind == "attention"
    ]


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_kinds_of_layers_hold_the_parameters_of_all_layers(name: str) -> None:
    model = MODELS[name]
    assert model.layers == sum(block.count for block in model.kinds)
    assert model.parameters == Model.model_validate({**model.model_dump(), "blocks": model.kinds}).parameters
