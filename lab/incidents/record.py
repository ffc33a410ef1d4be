"""Build incidents and keep their logs with a label: ``python record.py DIR [NAME...]`` (root; torch in this Python)."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from cluster import missing_programs
from job import TRAIN, clean
from scenarios import SCENARIOS, Label


def main() -> int:
    """Record what was asked for; 2 where this machine cannot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the records go, a folder for each")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SCENARIOS)}")
    said = parser.parse_args()
    lacking = missing_programs()
    if lacking or set(said.names) - set(SCENARIOS):
        print(f"lacking: {', '.join(lacking) or 'incidents of these names'}", file=sys.stderr)
        return 2
    for name in said.names or SCENARIOS:
        began = time.monotonic()
        records = said.folder / name / "logs"
        clean(records.parent)
        records.mkdir()
        with tempfile.TemporaryDirectory(prefix="incident-") as scratch:
            SCENARIOS[name].build(records, Path(scratch))
        rename(records)
        (records.parent / "label.toml").write_text(label_text(SCENARIOS[name].label))
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


def rename(records: Path) -> None:
    """Give the program and its Python the places that they have on any machine."""
    for file in records.rglob("*.*"):
        text = file.read_text(errors="surrogateescape")
        for place, name in ((TRAIN.parent, "/opt/job"), (Path(sys.prefix), "/opt/venv")):
            text = text.replace(str(place), name).replace(str(place)[1:], name[1:])
        file.write_text(text, errors="surrogateescape")


def label_text(label: Label) -> str:
    """The label as TOML."""
    import torch

    lines = [f'what = "{label.what}"', f'made = "{time.strftime("%Y-%m-%d")}, torch {torch.__version__}, gloo"']
    lines += [f'node = "{label.node}"', f'verdict = "{label.verdict}"']
    lines += [f"rank = {label.rank}"] if label.rank is not None else []
    for key in ("actions", "cause_words", "written"):
        lines.append(f"{key} = [{', '.join(chr(34) + text + chr(34) for text in getattr(label, key))}]")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
