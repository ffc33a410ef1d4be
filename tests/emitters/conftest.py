"""Plans made by hand: what a plan of the tool looks like, without the search behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.emitters.plans import make_plan
from tests.emitters.proofs import Proofs

if TYPE_CHECKING:
    from clusterwright.plan import Plan

collect_ignore = ["probes"]  # run by another interpreter


def pytest_configure(config: pytest.Config) -> None:
    """Keep which program read which target."""
    config.pluginmanager.register(Proofs())


@pytest.fixture
def plan() -> Plan:
    """Llama 3.1 70B on 64 H100."""
    return make_plan()
