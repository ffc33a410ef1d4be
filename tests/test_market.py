"""Prices of nodes and of accelerators can not be mixed up."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from clusterwright.market import Offer, PricePerAcceleratorHour, PricePerNodeHour


@given(st.floats(min_value=0.01, max_value=1e4), st.integers(min_value=1, max_value=72))
def test_a_price_there_and_back_is_the_same(usd: float, accelerators: int) -> None:
    price = PricePerAcceleratorHour(usd=usd)
    assert usd == pytest.approx(price.per_node(accelerators).per_accelerator(accelerators).usd)


@pytest.mark.parametrize("usd", [0.0, -1.0, float("inf")])
def test_nothing_is_free(usd: float) -> None:
    with pytest.raises(ValidationError):
        PricePerNodeHour(usd=usd)


def test_an_offer_knows_the_price_of_one_accelerator_of_its_node() -> None:
    offer = Offer(
        provider="example", node="dgx-h100", instance="8x", accelerator="h100-sxm", accelerators=8, term="on-demand",
        price=PricePerNodeHour(usd=24.0), seen=date(2026, 9, 1),
    )  # fmt: skip
    assert PricePerAcceleratorHour(usd=3.0) == offer.per_accelerator


def test_a_price_of_an_accelerator_is_no_price_of_a_node() -> None:
    with pytest.raises(ValidationError):
        Offer(
            provider="example", node="dgx-h100", instance="8x", accelerator="h100-sxm", accelerators=8,
            term="on-demand", price=PricePerAcceleratorHour(usd=3.0), seen=date(2026, 9, 1),
        )  # fmt: skip
