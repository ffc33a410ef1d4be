"""Text with its comments: YAML, shell arrays and JSON's companion."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import yaml

from clusterwright.emitters.bundle import Noted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.emitters.bundle import Setting

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/_.@:-]*")
_SHELL_PLAIN = re.compile(r"[A-Za-z0-9_./@:%+-]+")


def yaml_text(documents: Iterable[Any], *, head: str) -> str:
    """YAML of one or more documents; a `Noted` value brings its why as a comment on its line."""
    parts = ["\n".join(_node(document, 0)) for document in documents]
    return comment(head) + "\n---\n".join(parts) + "\n"


def comment(text: str, mark: str = "#") -> str:
    """A text as comment lines."""
    return "".join(f"{mark} {line}".rstrip() + "\n" for line in text.splitlines())


def _node(node: Any, depth: int) -> list[str]:  # noqa: ANN401 - any YAML value
    pad = "  " * depth
    if isinstance(node, dict):
        return [line for key, value in node.items() for line in _entry(f"{pad}{_scalar(str(key))}:", value, depth)]
    lines: list[str] = []
    for item in node:
        if isinstance(item, (dict, list)) and item:
            inner = _node(item, depth + 1)
            lines += [f"{pad}- {inner[0].lstrip()}", *inner[1:]]
        else:
            lines += _entry(f"{pad}-", item, depth)
    return lines


def _entry(head: str, value: Any, depth: int) -> list[str]:  # noqa: ANN401 - any YAML value
    if isinstance(value, (dict, list)) and value:
        return [head, *_node(value, depth + 1)]
    plain, why = _parted(value)
    if isinstance(plain, str) and plain.endswith("\n"):
        pad = "  " * (depth + 1)
        return [f"{head} |{why}", *(f"{pad}{line}".rstrip() for line in plain[:-1].split("\n"))]
    return [f"{head} {_scalar(plain)}{why}"]


def _parted(value: Any) -> tuple[Any, str]:  # noqa: ANN401 - any YAML value
    if isinstance(value, Noted):
        return value.value, f"  # {value.why}" if value.why else ""
    return value, ""


def _scalar(value: Any) -> str:  # noqa: ANN401 - any YAML value
    if isinstance(value, str):
        return (
            value
            if _PLAIN.fullmatch(value) and yaml.safe_load(value) == value
            else json.dumps(value, ensure_ascii=False)
        )
    return json.dumps(value)


def shell_array(name: str, settings: Iterable[Setting]) -> str:
    """A bash array of options, one a line, each with its why."""
    return "\n".join([f"{name}=(", *(f"  {_option(s)}  # {s.why}" for s in settings), ")"]) + "\n"


def _option(setting: Setting) -> str:
    if setting.value is None:
        return setting.name
    return f"{setting.name} {setting.value if setting.raw else quoted(setting.value)}"


def quoted(text: str) -> str:
    """A word of the shell, quoted where it holds more than letters, digits and a few signs.

    >>> quoted("100,0,0")
    "'100,0,0'"
    """
    return text if _SHELL_PLAIN.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def shell_exports(settings: Iterable[Setting]) -> str:
    """``export`` lines, each with its why."""
    return "".join(f"export {s.name}={s.value if s.raw else quoted(s.value or '')}  # {s.why}\n" for s in settings)


def table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)]) + "\n"
