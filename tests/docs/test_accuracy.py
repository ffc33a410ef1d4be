"""The accuracy page and its figures say what the shipped runs give today."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_accuracy_page_and_its_figures_are_what_the_script_writes() -> None:
    specification = importlib.util.spec_from_file_location("accuracy", DOCS / "accuracy.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    written = module.written()
    assert {"accuracy.md", "accuracy-step.svg", "accuracy-memory.svg"} == {path.name for path in written}
    stale = [path.name for path, text in written.items() if not path.exists() or path.read_text("utf-8") != text]
    assert stale == [], "write them again: python docs/accuracy.py"
