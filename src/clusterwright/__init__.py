"""Which GPU cluster, and how do I run on it?

The public names live in `clusterwright.api` and are loaded when they are first used, so that importing costs nothing.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the API offers under this name
    """A public name of `clusterwright.api`; a submodule is left to Python's own import."""
    known = not name.startswith(("_", "pytest_")) and find_spec(f"{__name__}.{name}") is None
    if known and find_spec(f"{__name__}.api") is not None:
        api = importlib.import_module(f"{__name__}.api")
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
