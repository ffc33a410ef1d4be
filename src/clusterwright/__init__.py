"""Which GPU cluster, and how do I run on it?

The public names live in `clusterwright.api` and are loaded when they are first used, so that importing costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clusterwright.api import (
        WorkloadFile,
        calibrate,
        catalogue,
        compare,
        design,
        diagnose,
        emit,
        estimate,
        explain,
        fabric,
        facility_of,
        failure_rates,
        goodput,
        load_workload,
        mix,
        read_calibration,
        schedule,
        targets,
        validate,
    )

__version__ = "0.1.0"
__all__ = [
    "WorkloadFile",
    "calibrate",
    "catalogue",
    "compare",
    "design",
    "diagnose",
    "emit",
    "estimate",
    "explain",
    "fabric",
    "facility_of",
    "failure_rates",
    "goodput",
    "load_workload",
    "mix",
    "read_calibration",
    "schedule",
    "targets",
    "validate",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the API offers under this name
    """A public name of `clusterwright.api`, loaded now."""
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, for completion."""
    return [*__all__, "__version__"]
