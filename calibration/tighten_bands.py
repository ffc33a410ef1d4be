"""Tighten the bands that `clusterwright validate` holds the shipped runs to: ``python calibration/tighten_bands.py``.

A band whose error fell is lowered to it, new sources and families are added; none is ever loosened or dropped. Who must
loosen one edits src/clusterwright/validation/bands.toml by hand, and says why in the same commit.
"""

from __future__ import annotations

from pathlib import Path

from clusterwright import validation
from clusterwright.catalog import load
from clusterwright.files import write_text_atomically
from clusterwright.validation import bands

FILE = Path(__file__).parent.parent / "src" / "clusterwright" / "validation" / bands.FILE


def main() -> None:
    """Rewrite the file, and say what still does not hold."""
    board = validation.validate_shipped(load())
    write_text_atomically(FILE, bands.tighten(FILE.read_text(encoding="utf-8"), bands.figures(board)))
    for broken in board.worsened or ():
        print(f"still too high: {broken}")


if __name__ == "__main__":
    main()
