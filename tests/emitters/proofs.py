"""Which real program read which target's files, with what result, in what time: a table from the test run itself.

A test says so by ``@pytest.mark.reader(program, *targets)``; without targets they are the test's own parameter. With
``CLUSTERWRIGHT_PROOFS=write`` the table in the documentation is written anew (``make proofs``).
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "targets.md"
BEGIN, END = "<!-- proofs -->\n", "<!-- /proofs -->\n"


@dataclass
class Readings:
    """What the tests of one program on one target came to."""

    outcomes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def result(self) -> str:
        """In a word or two."""
        ran = [outcome for outcome in self.outcomes if outcome != "skipped"]
        if not ran:
            return "not run"
        return "accepted" if set(ran) == {"passed"} else "refused"


class Proofs:
    """A plugin that keeps the outcomes."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], Readings] = defaultdict(Readings)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note on each test what it proves, so that its reports tell."""
        for item in items:
            for mark in item.iter_markers("reader"):
                program, *targets = mark.args
                parameters = getattr(item, "callspec", None)
                for target in targets or [parameters.params["target"] if parameters else ""]:
                    item.user_properties.append(("reader", (target, program)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the time of each part of a test, and its outcome."""
        for name, value in report.user_properties:
            if name == "reader" and isinstance(value, tuple):
                entry = self.found[value[0], value[1]]
                entry.seconds += report.duration
                if report.when == "call" or report.outcome != "passed":
                    entry.outcomes.append(report.outcome)

    def pytest_sessionfinish(self) -> None:
        """Write the table where it was asked for."""
        if os.environ.get("CLUSTERWRIGHT_PROOFS") == "write":
            text = PAGE.read_text("utf-8")
            head, rest = text.split(BEGIN)
            PAGE.write_text(f"{head}{BEGIN}{self.table()}{END}{rest.split(END)[1]}", encoding="utf-8")

    def table(self) -> str:
        """The table in Markdown, by target."""
        from clusterwright.emitters import targets

        lines = ["| target | read by | result | tests | time [s] |", "|---|---|---|---|---|"]
        for target in (t.name for t in targets()):
            rows = sorted((program, entry) for (name, program), entry in self.found.items() if name == target)
            for program, entry in rows:
                many = len([o for o in entry.outcomes if o != "skipped"])
                lines.append(f"| `{target}` | {program} | {entry.result} | {many} | {entry.seconds:.1f} |")
            if not rows:
                lines.append(f"| `{target}` | nothing here | not run | 0 | |")
        return "\n".join(lines) + "\n"
