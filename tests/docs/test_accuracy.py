"""The accuracy page says what the shipped runs give today."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_accuracy_page_is_what_its_script_writes() -> None:
    specification = importlib.util.spec_from_file_location("accuracy", DOCS / "accuracy.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert (DOCS / "accuracy.md").read_text(encoding="utf-8") == module.page()
