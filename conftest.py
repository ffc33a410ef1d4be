"""What holds for every test: nothing is skipped in CI, and how many examples the property tests try."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Generator

# No deadlines: a test never judges by the clock. `make soak` and `make fuzz` choose the larger profiles.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.register_profile("soak", parent=settings.get_profile("default"), max_examples=2000)
settings.register_profile("fuzz", parent=settings.get_profile("default"), max_examples=5000)
settings.load_profile("ci" if os.environ.get("CLUSTERWRIGHT_CI") else "default")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests of a heavy library for which no interpreter is named; in CI `.ci/libraries` has said why not."""
    left_out = []
    for item in items:
        mark = item.get_closest_marker("interpreter")
        if mark and not os.environ.get(mark.args[0]):
            item.add_marker(pytest.mark.skip(reason=f"{mark.args[0]} names no interpreter; .ci/libraries makes one"))
            left_out.append(item)
    if left_out and os.environ.get("CLUSTERWRIGHT_CI"):
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _refuse_a_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CLUSTERWRIGHT_CI") and report.skipped and not hasattr(report, "wasxfail"):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where everything must run: {why}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped in CI has failed."""
    report = yield
    _refuse_a_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A test file that is skipped in CI has failed."""
    report = yield
    _refuse_a_skip(report)
    return report
