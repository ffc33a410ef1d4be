# mypy: ignore-errors
"""What the probes of Megatron put in place of a GPU and of libraries that need one; importing it does it.

It stands in for an H100, which is asked for its kind, and for Transformer Engine and a few more libraries of CUDA that
Megatron Bridge imports: a module that holds empty classes.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import typing
from types import SimpleNamespace

import torch
import typing_extensions

typing.override = getattr(typing, "override", typing_extensions.override)
H100 = SimpleNamespace(major=9, minor=0, name="NVIDIA H100 80GB HBM3", total_memory=80 << 30, multi_processor_count=132)
torch.cuda.get_device_properties = lambda *_: H100
torch.cuda.get_device_capability = lambda *_: (9, 0)
torch.cuda.current_device = lambda: 0
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 8


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules that are not there, below some names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """A module for everything below the names."""
        del path, target
        known = any(name == one or name.startswith(f"{one}.") for one in self.names)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Modules within it by small letters, empty classes by capital ones."""
        module = types.ModuleType(spec.name)
        module.__version__ = "2.17.0"

        def member(name: str) -> object:
            if name.startswith("__"):
                raise AttributeError(name)
            if name[0].islower():
                return importlib.import_module(f"{spec.name}.{name}")
            return type(name, (torch.nn.Module,), {"__module__": spec.name})

        module.__getattr__ = member
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def stand_in(*names: str) -> None:
    """Stand in for these modules."""
    sys.meta_path.insert(0, Absent(*names))
