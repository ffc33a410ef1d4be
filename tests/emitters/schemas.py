"""CustomResourceDefinitions as JSON Schema that refuses unknown fields, as the API server does under strict validation.

The folder of CRD files is named by ``CLUSTERWRIGHT_CRDS``. They are public: config/crd of volcano-sh/volcano,
config/components/crd/bases of kubernetes-sigs/kueue and kubernetes-sigs/jobset, manifests/base/crds of kubeflow/trainer
(and of its release-1.9 for PyTorchJob), ray-operator/config/crd/bases of ray-project/kuberay.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.emitters import cel

WHY = "CLUSTERWRIGHT_CRDS names no folder; the schemas are public, see the head of tests/emitters/schemas.py"
_KEPT = ("enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "multipleOf", "maxProperties")
_META = {"type": "object", "required": ["name"]}


class Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it: a bare ``=`` is text, the same key twice is an error."""


def _mapping(loader: Loader, tree: yaml.MappingNode) -> dict[str, Any]:
    names = [loader.construct_object(key, deep=True) for key, _ in tree.value]
    if len(set(names)) < len(names):
        raise yaml.constructor.ConstructorError(None, None, "a key twice", tree.start_mark)
    return {name: loader.construct_object(value, deep=True) for name, (_, value) in zip(names, tree.value, strict=True)}


Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
Loader.add_constructor("tag:yaml.org,2002:value", lambda _, tree: str(tree.value))


def load_all(text: str) -> list[dict[str, Any]]:
    """Every document of a YAML text."""
    return [document for document in yaml.load_all(text, Loader=Loader) if document is not None]


def folder() -> Path:
    """The CRD files, or the reason to skip; in CI their absence is a failure."""
    name = os.environ.get("CLUSTERWRIGHT_CRDS", "")
    if name and any(Path(name).rglob("*.yaml")):
        return Path(name)
    if os.environ.get("CLUSTERWRIGHT_CI") == "1":
        pytest.fail(WHY)
    pytest.skip(WHY)


@cache
def _versions(root: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found = {}
    for path in sorted(root.rglob("*.yaml")):
        for crd in load_all(path.read_text("utf-8")):
            if crd.get("kind") != "CustomResourceDefinition":
                continue
            spec = crd["spec"]
            for version in spec["versions"]:
                if version.get("served", True):
                    key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                    found[key] = version["schema"]["openAPIV3Schema"]
    return found


def schema_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """The schema of an object's kind; none where the kind is not served."""
    return _versions(folder()).get((document["apiVersion"], document["kind"]))


def faults(document: dict[str, Any]) -> list[str]:
    """What the API server would refuse of a custom resource: by its schema, then by the schema's CEL rules."""
    schema = schema_of(document)
    if schema is None:
        return [f"no {document['apiVersion']} {document['kind']} is served"]
    strict = _strict(schema)
    strict["properties"] = {**strict["properties"], "apiVersion": {}, "kind": {}, "metadata": _META}
    found = [f"{e.json_path}: {e.message[:200]}" for e in Draft202012Validator(strict).iter_errors(document)]
    return found or cel.faults(schema, document)


def _strict(schema: dict[str, Any], *, closed: bool = True) -> dict[str, Any]:
    out = {key: schema[key] for key in _KEPT if key in schema}
    if schema.get("x-kubernetes-int-or-string"):
        out["type"] = ["integer", "string"]
    elif "type" in schema:
        out["type"] = schema["type"]
    properties = schema.get("properties", {})
    if properties:
        out["properties"] = {name: _strict(inner, closed=closed) for name, inner in properties.items()}
    out["required"] = [name for name in schema.get("required", []) if "default" not in properties.get(name, {})]
    if isinstance(schema.get("items"), dict):
        out["items"] = _strict(schema["items"], closed=closed)
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        out["additionalProperties"] = _strict(extra, closed=closed)
    elif closed and extra is None and schema.get("type") == "object":
        out["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    for key in ("allOf", "anyOf", "oneOf"):
        if key in schema and not schema.get("x-kubernetes-int-or-string"):
            out[key] = [_strict(inner, closed=False) for inner in schema[key]]
    return out
