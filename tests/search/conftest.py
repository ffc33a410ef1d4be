"""A small job on few accelerators: what a search may be compared with by trying everything."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from clusterwright import catalog
from clusterwright.catalog.cluster_parts import load_fabric_parts, load_failure_rates
from clusterwright.model import Attention, Block, FeedForward, Model
from clusterwright.search.design import Known, Wish
from clusterwright.workload import Workload

TODAY = date(2026, 11, 30)


def model(layers: int) -> Model:
    """A model of so many layers of 218 million parameters."""
    layer = Block(count=layers, mixer=Attention(heads=32, kv_heads=8, head_size=128), feed=FeedForward(ffn=14336))
    return Model(name="small", hidden=4096, vocab=32000, blocks=(layer,))


SMALL = model(8)


@pytest.fixture(scope="session")
def known() -> Known:
    """The shipped catalogue."""
    return Known(catalog.load(), load_fabric_parts(), load_failure_rates())


def wish(*, model: Model = SMALL, pins: dict[str, int | str] | None = None, **sections: dict[str, Any]) -> Wish:
    """A wish for the small job; sections replace or extend lines of the document."""
    document: dict[str, dict[str, Any]] = {
        "model": {"name": "small"},
        "training": {"tokens": "20B", "sequence_length": 8192, "global_batch": 16, "framework": "megatron"},
        "constraints": {"accelerators": ["h100-sxm"], "max_accelerators": 16},
        "prefer": {"objective": "cost"},
    }
    for name, lines in sections.items():
        document.setdefault(name, {}).update(lines)
        document[name] = {k: v for k, v in document[name].items() if v is not None}
    return Wish(Workload.model_validate(document), model, document, TODAY, pins or {})
