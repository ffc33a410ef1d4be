"""Build the catalogue's models from public configs: each shape is read by the product's own reader.

    python calibration/build_models.py CONFIGS

``CONFIGS`` is a folder of public config.json files, named as in published_models.toml beside this program, which holds
the other shapes itself, and for each model its sources and its published parameter count. Writes
src/clusterwright/catalog/models/, one file a model, and prints those whose count is not within 0.5% of the published.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from pathlib import Path
from typing import Any

import tomlkit

from clusterwright.files import write_text_atomically
from clusterwright.huggingface import model_of
from clusterwright.model import Model

TABLE = Path(__file__).parent / "published_models.toml"
MODELS = Path(__file__).parent.parent / "src" / "clusterwright" / "catalog" / "models"
TOLERANCE = 0.005


def main() -> None:
    """Write every model of the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", type=Path)
    folder = parser.parse_args().configs
    for name, entry in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        model = read(name, entry, folder)
        published = model.published_parameters
        if published and abs(model.parameters / published - 1) > TOLERANCE:
            print(f"{name}: {model.parameters} computed, {published:.0f} published")
        write_text_atomically(MODELS / f"{name}.toml", written(model))


def read(name: str, entry: dict[str, Any], folder: Path) -> Model:
    """One model of the table."""
    facts = {"published_parameters": entry.get("published"), "sources": tuple(entry["sources"])}
    if "shape" in entry:
        return Model.model_validate({"name": name, **entry["shape"], **facts})
    config = entry.get("config") or json.loads((folder / entry["file"]).read_text(encoding="utf-8"))
    return model_of(config, name, entry.get("file", name)).model_copy(update=facts)


def written(model: Model) -> str:
    """The model as TOML; what has its usual value is left out."""
    values = model.model_dump(exclude_defaults=True, exclude={"blocks", "sources"})
    values["sources"] = list(model.sources)
    document = tomlkit.document()
    for key, value in values.items():
        document.add(key, _number(value))
    blocks = tomlkit.aot()
    for block in model.blocks:
        table = tomlkit.table()
        for key, value in block.model_dump(exclude_defaults=True).items():
            part = getattr(block, key)
            table.add(key, _inline({"kind": part.kind, **value}) if isinstance(value, dict) else value)
        blocks.append(table)
    document.add("blocks", blocks)
    return tomlkit.dumps(document)


def _number(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _inline(values: dict[str, Any]) -> tomlkit.items.InlineTable:
    table = tomlkit.inline_table()
    table.update(values)
    return table


if __name__ == "__main__":
    main()
