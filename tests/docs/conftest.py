"""The documentation, built once for all tests of it."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of HTML pages; a warning while it is built is an error."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "trees")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COV")}
    done = subprocess.run(
        [*command, str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return folder / "html"


def text_of(page: Path) -> str:
    """What a reader sees of a page."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


def headings_of(page: Path) -> list[str]:
    """The headings of a page."""
    found = re.findall(r"<h[1-6]>(.*?)<a class=\"headerlink\"", page.read_text("utf-8"), flags=re.DOTALL)
    return [html.unescape(re.sub(r"<[^>]+>", "", heading)) for heading in found]
