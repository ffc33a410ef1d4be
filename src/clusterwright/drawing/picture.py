"""A drawing as the file that was asked for: SVG as it is, PNG by the `resvg` renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 1600
"""Of a PNG. [pixels]"""


def picture(svg: str, path: Path) -> str | bytes:
    """What to write to ``path``: by its suffix the SVG itself or a PNG of it.

    Raises:
        InputError: another suffix, or no renderer for PNG here.
    """
    if path.suffix == ".svg":
        return svg
    if path.suffix != ".png":
        raise InputError(f"{path}: drawings are written as .svg or .png")
    try:
        import resvg_py  # noqa: PLC0415 - an optional part
    except ImportError:
        raise InputError(f"{path}: PNG needs `pip install clusterwright[figures]`; .svg needs nothing") from None
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=WIDTH))
