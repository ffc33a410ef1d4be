"""The documentation builds without a warning, and says everything once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)


def test_the_documentation_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees")]
    result = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path / "html")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COVERAGE_PROCESS_START": "", "COVERAGE_PROCESS_CONFIG": ""},
    )
    assert (0, "") == (result.returncode, result.stderr)
    assert (tmp_path / "html" / "index.html").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_has_one_title(page: Path) -> None:
    prose = re.sub(r"^(```+|:::+).*?^\1\s*$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert 1 == len(re.findall(r"^# \S", prose, flags=re.MULTILINE))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_link_to_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    local = [link for link in links if not link.startswith(("http:", "https:", "mailto:"))]
    assert [] == [link for link in local if not (page.parent / link).exists()]
