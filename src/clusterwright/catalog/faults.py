"""The knowledge of faults: TOML on disk -> `Knowledge`."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources

from pydantic import ValidationError

from clusterwright.errors import InputError
from clusterwright.knowledge import Fault, Knowledge, Threshold, Xid


@functools.lru_cache(maxsize=1)
def load_faults() -> Knowledge:
    """Every fault, Xid and threshold that ships.

    >>> next(xid.action for xid in load_faults().xids if xid.code == 79)
    'reboot-node'

    Raises:
        InputError: an entry is wrong; names the file.
    """
    faults: list[Fault] = []
    xids: list[Xid] = []
    thresholds: list[Threshold] = []
    folder = resources.files("clusterwright.catalog")
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if not (file.name.startswith("faults-") and file.name.endswith(".toml")):
            continue
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        try:
            faults += [Fault.model_validate(entry) for entry in document.get("fault", ())]
            xids += [Xid.model_validate(entry) for entry in document.get("xid", ())]
            thresholds += [Threshold.model_validate(entry) for entry in document.get("threshold", ())]
        except ValidationError as error:
            msg = f"{file.name}: {error.errors()[0]['loc']}: {error.errors()[0]['msg']}"
            raise InputError(msg) from None
    return Knowledge(faults=tuple(faults), xids=tuple(xids), thresholds=tuple(thresholds))
