"""A drawing becomes the file that was asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clusterwright.drawing.picture import picture
from clusterwright.errors import InputError

SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 2"><rect width="4" height="2" fill="#f00"/></svg>'


def test_svg_is_written_as_it_is() -> None:
    assert SVG == picture(SVG, Path("a.svg"))


def test_png_is_a_png_of_the_shape_of_the_drawing() -> None:
    made = picture(SVG, Path("a.png"))
    assert isinstance(made, bytes)
    assert b"\x89PNG\r\n\x1a\n" == made[:8]
    assert (1600, 800) == (int.from_bytes(made[16:20], "big"), int.from_bytes(made[20:24], "big"))


def test_another_suffix_is_refused() -> None:
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        picture(SVG, Path("a.jpeg"))


def test_without_the_renderer_png_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match="figures"):
        picture(SVG, Path("a.png"))
