"""How each emitted file is read back: by its own language, with every value where it belongs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

from tests.emitters.schemas import load_all

if TYPE_CHECKING:
    from collections.abc import Mapping

LEFT_OVER = re.compile(r"\bNone\b|\bnan\b|\binf\b|\{%|TODO|FIXME|<[a-z_]+ object")
MEANT = "activation_checkpoint = None"
"""The one None that is a value of the target: torchtitan recomputes nothing."""
CORE = {"v1", "apps/v1", "batch/v1", "scheduling.k8s.io/v1", "policy/v1"}


def run(command: list[str], text: str) -> str:
    """What a program says of a text on its standard input; nothing when it accepts it."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip() if done.returncode else ""


def shell_faults(text: str) -> list[str]:
    """What bash and, where it is there, shellcheck say."""
    said = [run(["bash", "-n"], text)]
    if shutil.which("shellcheck"):
        said.append(run(["shellcheck", "-S", "warning", "-s", "bash", "-"], text))
    return [one for one in said if one]


def is_shell(name: str, text: str) -> bool:
    """Whether a file is a shell script."""
    return name.endswith((".sh", ".sbatch")) or text.startswith(("#!/bin/bash", "#!/usr/bin/env bash"))


def file_faults(name: str, text: str) -> list[str]:
    """What the language of a file refuses."""
    if not text.endswith("\n"):
        return ["no newline at its end"]
    if is_shell(name, text):
        return shell_faults(text)
    if name.endswith(".json"):
        json.loads(text)
    elif name.endswith(".toml"):
        tomllib.loads(text)
    elif name.endswith(".py"):
        compile(text, name, "exec")
    elif name.endswith((".yaml", ".yml")):
        return [fault for document in load_all(text) for fault in object_faults(document)]
    return []


def object_faults(document: dict[str, Any]) -> list[str]:
    """What Kubernetes refuses of a core object, and of shell text in any object."""
    if "kind" not in document or "apiVersion" not in document:
        return []
    found = []
    if document["kind"] == "ConfigMap":
        for name, text in document["data"].items():
            found += file_faults(name, text)
    if document["apiVersion"] in CORE:
        import kubernetes_validate

        try:
            kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        except kubernetes_validate.ValidationError as error:
            found.append(str(error).splitlines()[0])
    return found


def megatron_arguments(script: str) -> dict[str, str | None]:
    """Options of the ``arguments`` array as bash itself expands it."""
    array = script[script.index("arguments=(") : script.index("\n)\n") + 3]
    script = f"set -u; TOKENIZER=t CHECKPOINT_DIR=c prefixes=(a b)\n{array}printf '%s\\n' \"${{arguments[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    found: dict[str, str | None] = {}
    for word in lines:
        if word.startswith("--"):
            found[word] = None
        else:
            name = list(found)[-1]
            found[name] = word if found[name] is None else f"{found[name]} {word}"
    return found


def sbatch_options(script: str) -> dict[str, str]:
    """Options of the ``#SBATCH`` lines."""
    words = [word for line in re.findall(r"^#SBATCH (.*)$", script, re.MULTILINE) for word in shlex.split(line)]
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def all_faults(files: Mapping[str, str]) -> list[str]:
    """Every fault of every file, with its name."""
    found = [f"{name}: {fault}" for name, text in files.items() for fault in file_faults(name, text)]
    written = {name: text.replace(MEANT, "") for name, text in files.items()}
    return found + [f"{name}: {match[0]}" for name, text in written.items() if (match := LEFT_OVER.search(text))]
