"""The page beside other tools counts the runs that all of them can express."""

from __future__ import annotations

import importlib.util
import re
import sys
from importlib.resources import as_file, files
from pathlib import Path

from clusterwright.catalog import load
from clusterwright.validation import validate

ROOT = Path(__file__).parents[2]


def test_the_page_counts_the_shipped_runs_that_every_tool_can_express() -> None:
    specification = importlib.util.spec_from_file_location("peers", ROOT / "calibration" / "peers.py")
    assert specification is not None
    assert specification.loader is not None
    module = sys.modules["peers"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    with as_file(files("clusterwright.catalog") / "measurements" / "training.csv") as table:
        rows = module.rows_of(validate([table], load()).scored)
    text = (ROOT / "docs" / "peers.md").read_text("utf-8")
    stated = re.search(r"^([\d,]+) of the shipped runs", text, re.MULTILINE)
    refused = re.search(r"(\d+) more of that kind were refused", text)
    counted = [int(n) for n in re.findall(r"^\| \w+ \| \w+ \| (\d+) \|", text, re.MULTILINE)]
    assert stated is not None
    assert refused is not None
    assert int(stated[1].replace(",", "")) == sum(counted) == len(rows) - int(refused[1])
