"""A dump of the flight recorder is read, and nothing in it is run."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.probes.recorder import dump_of, looks_like_dump

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=300))
def test_no_bytes_whatever_break_it(data: bytes) -> None:
    looks_like_dump(data)
    dump_of(b"\x80\x04" + data, "rank_0")
    dump_of(data, "rank_0")


@given(st.dictionaries(st.sampled_from(["entries", "pg_config", "pg_status", "version"]), PLAIN, max_size=4))
def test_no_document_whatever_breaks_it(told: dict[str, Any]) -> None:
    dump_of(json.dumps(told).encode(), "rank_0")
    dump_of(pickle.dumps(told), "rank_0")


@pytest.mark.parametrize(
    ("name", "rank"),
    [("nccl_trace_rank_12", 12), ("dumps/fr/rank3.json", 3), ("comm_lib_trace_rank_0", 0), ("dump", None)],
)
def test_the_digits_at_the_end_of_the_name_are_the_rank(name: str, rank: int | None) -> None:
    dump = dump_of(b'{"entries": []}', name)
    assert dump is not None
    assert dump.rank == rank


def test_a_log_is_no_dump() -> None:
    assert not looks_like_dump(b'{"level": "info", "msg": "step 1"}\n')
