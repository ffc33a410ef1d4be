"""What one layout would do, and why a layout cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from clusterwright.errors import InputError
from clusterwright.search.question import Answer, Asked, ask
from tests.search.conftest import wish

if TYPE_CHECKING:
    from clusterwright.search.design import Known


def answer(known: Known, *, training: dict[str, Any] | None = None, **layout: Any) -> Answer:  # noqa: ANN401 - the fields of Asked
    asked = {"accelerator": "h100-sxm", "accelerators": 32, "tp": 2, "pp": 4, "recompute": "full", **layout}
    return ask(Asked(**asked), wish(training=training or {}), known)


def part(found: Answer, name: str) -> float:
    term = found.terms.find(name)
    assert term is not None
    return term.value


def test_a_zero_bubble_schedule_shortens_the_bubble_and_nothing_else(known: Known) -> None:
    plain, zero = answer(known), answer(known, schedule="zero-bubble")
    assert 0 < part(zero, "pipeline bubble") < part(plain, "pipeline bubble")
    assert part(zero, "matrix products") == part(plain, "matrix products")
    bubbles = [found.terms.find("pipeline bubble") for found in (plain, zero)]
    assert ["pipeline.one_forward_one_backward", "pipeline.zero_bubble"] == [b.source for b in bubbles if b]
    assert zero.candidate.layout.schedule == "zero-bubble"


def test_tensor_parallelism_over_nodes_is_slow_but_no_fault(known: Known) -> None:
    inside, outside = answer(known, tp=8, pp=1), answer(known, tp=16, pp=1)
    name = "tensor-parallel communication"
    assert part(outside, name) > part(inside, name)


@pytest.mark.parametrize(
    ("layout", "training", "words"),
    [
        ({"pp": 1, "schedule": "zero-bubble"}, {}, ["zero-bubble needs pp > 1"]),
        ({}, {"framework": "fsdp"}, ["splits the batch alone (tp = 2, pp = 4)"]),
        ({"sharding": "distopt"}, {"framework": "torchtitan"}, ["optimizer alone (sharding = distopt)"]),
        ({"precision": "nvfp4"}, {}, ["h100-sxm has no products in fp4"]),
        ({"tp": 3}, {}, ["tp does not divide the heads", "--accelerators 32: tp x cp x pp = 3 x 1 x 4"]),
    ],
)
def test_what_cannot_be_is_named(
    known: Known, layout: dict[str, Any], training: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        answer(known, training=training, **layout)
    for word in words:
        assert word in str(caught.value)


def test_accelerators_that_do_not_divide_are_no_fault_of_the_batch(known: Known) -> None:
    with pytest.raises(InputError) as caught:
        answer(known, accelerators=44, tp=2, pp=4)
    assert "global_batch" not in str(caught.value)
