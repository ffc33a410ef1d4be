"""Plans made by hand: what a plan of the tool looks like, without the search behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.emitters.plans import make_plan

if TYPE_CHECKING:
    from clusterwright.plan import Plan

collect_ignore = ["probes"]  # run by another interpreter


@pytest.fixture
def plan() -> Plan:
    """Llama 3.1 70B on 64 H100."""
    return make_plan()
