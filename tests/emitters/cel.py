"""The CEL rules of a CustomResourceDefinition (x-kubernetes-validations), evaluated as the API server does on creation.

Defaults are filled in first, as there. A rule over ``oldSelf`` is of updates and is left out: nothing is there yet.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

import celpy
from celpy.adapter import json_to_cel

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = celpy.Environment()
"""Made here, since making one changes the interpreter's recursion limit, which hypothesis refuses in a test."""


def faults(schema: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """What the rules of a schema refuse of an object: where, and in the rule's own words."""
    filled = defaulted(schema, copy.deepcopy(document))
    return [f"{place}: {message}" for place, holds, message in _verdicts(schema, filled, "$") if not holds]


def rules_met(schema: dict[str, Any], document: dict[str, Any]) -> int:
    """How many rules have a value to judge in an object."""
    return sum(1 for _ in _verdicts(schema, defaulted(schema, copy.deepcopy(document)), "$"))


def defaulted(schema: dict[str, Any], value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value with the schema's defaults, from the outside inwards."""
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name not in value and "default" in inner:
                value[name] = copy.deepcopy(inner["default"])
    for inner, member, _ in _members(schema, value):
        defaulted(inner, member)
    return value


def _members(schema: dict[str, Any], value: object) -> Iterator[tuple[dict[str, Any], Any, str]]:
    """Schema, value and name of everything directly inside a value."""
    if isinstance(value, dict):
        extra = schema.get("additionalProperties")
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, extra)
            if isinstance(inner, dict):
                yield inner, member, f".{name}"
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, member in enumerate(value):
            yield schema["items"], member, f"[{index}]"


def _verdicts(schema: dict[str, Any], value: Any, place: str) -> Iterator[tuple[str, bool, str]]:  # noqa: ANN401
    for rule in schema.get("x-kubernetes-validations", []):
        if "oldSelf" not in rule["rule"]:
            holds = bool(_program(rule["rule"]).evaluate({"self": json_to_cel(value)}))
            yield place, holds, rule.get("message", rule["rule"])
    for inner, member, name in _members(schema, value):
        yield from _verdicts(inner, member, place + name)


@cache
def _program(rule: str) -> Any:  # noqa: ANN401 - cel-python ships no types
    return ENVIRONMENT.program(ENVIRONMENT.compile(rule))
