"""The documentation builds without a warning, and says everything once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)


def test_every_page_is_built_without_a_warning(built: Path) -> None:
    missing = [p for p in PAGES if not (built / p.relative_to(ROOT / "docs").with_suffix(".html")).exists()]
    assert [] == missing


def test_no_mark_is_left_unfilled(built: Path) -> None:
    assert [] == [p for p in built.rglob("*.html") if "<!-- filled:" in p.read_text("utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_has_one_title(page: Path) -> None:
    prose = re.sub(r"^(```+|:::+).*?^\1\s*$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert 1 == len(re.findall(r"^# \S", prose, flags=re.MULTILINE))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_link_to_a_page_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    local = [link for link in links if not link.startswith(("http:", "https:", "mailto:"))]
    assert [] == [link for link in local if not (page.parent / link).exists()]
