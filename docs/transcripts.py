"""Run what the pages show, and write down what the tool printed: `make transcripts`.

In a block of ``console``, a line that begins with ``$`` is a command, and what follows is its output. A block without
any output stays without; an output that ends with ``...`` keeps its length. A block of ``toml`` that begins with the
name of a file in a comment is that file.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```toml\n# (\S+\.toml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def steps(block: str) -> list[tuple[str, list[str]]]:
    """The commands of a block, each with the lines under it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def run(command: str, folder: Path) -> list[str]:
    """What a command prints, in a terminal of 100 columns."""
    words = shlex.split(command)
    if words[0] != "clusterwright":
        return []
    done = subprocess.run(
        [sys.executable, "-m", "clusterwright.cli", *words[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: {done.stderr}")
    return [line.rstrip() for line in (done.stdout or done.stderr).strip("\n").splitlines()]


def prepare(page: Path, folder: Path) -> None:
    """Put the examples, and the files that a page writes down, into a folder."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    if " incidents/" in page.read_text("utf-8"):
        shutil.copytree(ROOT / "tests" / "checks" / "incidents", folder / "incidents")
    for name, text in FILE.findall(page.read_text("utf-8")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def renew(page: Path) -> None:
    """Write the page anew, with the outputs of today."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(page, folder)

        def block(match: re.Match[str]) -> str:
            lines: list[str] = []
            for command, shown in steps(match[1]):
                printed = run(command, folder)
                if shown and shown[-1].strip() == "...":
                    printed = [*printed[: len(shown) - 1], "..."]
                lines += [f"$ {command}", *(printed if shown else [])]
            return "\n".join(lines) + "\n"

        page.write_text(BLOCK.sub(block, page.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or PAGES:
        renew(Path(each))
