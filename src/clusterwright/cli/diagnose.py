"""``clusterwright diagnose``: logs in, the cause out, or an honest "unknown"."""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis, Evidence, Finding

KEPT_LINES = 20
"""What a phone shows at once."""
WIDTH = 100
WHY_LINES = 4
PATIENCE_S = 2.0
"""Nobody needs to be told of less."""
TELL_EVERY_S = 0.5
MOMENTS = 2
"""Fewer are no timeline."""
KEPT_MOMENTS = 30
"""Lines of a timeline."""


@click.command("diagnose")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--plan", "plan_file", help="The plan that the job runs on: what was expected of it.")
@click.option("--explain", is_flag=True, help="Show the chain from the lines to the verdict.")
@click.option("--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(files: tuple[str, ...], plan_file: str | None, explain: bool, style: str) -> int:
    """Read logs (files, folders, .gz, or - for standard input) and name the cause, or say unknown."""
    from clusterwright.api import diagnose

    meter = Meter(sum(_size(file) for file in files)) if sys.stderr.isatty() else None
    answer = diagnose(files, plan_file, progress=meter)
    if meter is not None:
        meter.clear()
    for line in answer.unreadable:
        print(f"warning: {line}", file=sys.stderr)
    if style == "json":
        print(json.dumps(document(answer), allow_nan=False))
    else:
        said = markdown(answer) if style == "markdown" else text(answer, explain=explain)
        coding = sys.stdout.encoding or "utf-8"
        print(said.encode(coding, "replace").decode(coding))
    return 0 if answer.verdict == "healthy" else 1


@dataclass(slots=True)
class Meter:
    """How far the reading has come, told from two seconds on."""

    total: int
    read: int = 0
    began_s: float = field(default_factory=time.monotonic)
    told_s: float = 0.0

    def __call__(self, more: int) -> None:
        """So many bytes more have been read."""
        self.read += more
        now = time.monotonic()
        if now - self.began_s >= PATIENCE_S and now - self.told_s >= TELL_EVERY_S:
            self.told_s = now
            share = f" of {self.total / 1e6:,.0f}" if self.total >= self.read else ""
            rate = self.read / 1e6 / (now - self.began_s)
            print(f"\rread {self.read / 1e6:,.0f}{share} MB, {rate:,.0f} MB/s ", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the line as it was."""
        if self.told_s:
            print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)


def _size(file: str) -> int:
    """Bytes of a file or folder, compressed as it is; 0 where it cannot be told."""
    path = Path(file)
    try:
        parts = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
        return sum(one.stat().st_size for one in parts)
    except OSError:
        return 0


def document(answer: Diagnosis) -> dict[str, Any]:
    """The answer as JSON keys that outside programs rely on."""
    return {
        "verdict": answer.verdict,
        "findings": [_finding(finding) for finding in answer.findings],
        "read": list(answer.read),
        "collect": list(answer.collect),
        "bytes_read_bytes": answer.bytes_read,
        "unreadable": list(answer.unreadable),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    keys = finding.model_dump(
        include={"health", "cause", "scope", "action", "confidence", "because", "count", "source"}
    )
    return keys | {
        "where": finding.where.named(),
        "evidence": [{"file": one.file, "line": one.line, "text": one.text} for one in finding.evidence],
        "echoes": [{"file": one.file, "line": one.line} for one in finding.echoes],
    }


def text(answer: Diagnosis, *, explain: bool = False) -> str:
    """At most twenty lines; with ``explain`` all of them."""
    lines = [f"{answer.verdict.upper()}" + (f"  (read: {', '.join(answer.read)})" if answer.read else "")]
    shared = _shared(answer)
    for index, finding in enumerate(answer.findings if explain else answer.findings[:3], 1):
        lines += [
            f"{index}. {finding.cause}",
            f"   where:  {_where(finding)}",
            f"   do:     {finding.action}  ({finding.confidence})",
        ]
        if explain:
            lines += [f"   why:    {finding.because}", *_chain(finding, shared)]
            continue
        lines += _wrapped(finding.because) if index == 1 else []
        lines += [f"   > {_at(one, shared)} {one.text}" for one in finding.evidence[: 2 if index == 1 else 1]]
        lines += [f"   and {len(finding.echoes)} lines that only echo it"] * bool(finding.echoes)
    hidden = len(answer.findings) - 3
    if hidden > 0 and not explain:
        lines.append(f"and {hidden} findings more: --explain")
    if answer.verdict == "unknown":
        lines += ["collect next:", *(f"   - {what}" for what in answer.collect)]
    if explain:
        return "\n".join(
            [*lines, *(["timeline:"] if (moments := timeline(answer)) else []), *(f"   {one}" for one in moments)]
        )
    return "\n".join(line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in lines[:KEPT_LINES])


def _chain(finding: Finding, shared: str) -> list[str]:
    """Every line, every echo, the source."""
    return [
        *(f"   > {_at(one, shared)} {one.text}" for one in finding.evidence),
        *(f"   ~ {_at(one, shared)} {one.text}  (echo)" for one in finding.echoes),
        *[f"   source: {finding.source}"] * bool(finding.source),
    ]


def _wrapped(because: str) -> list[str]:
    """The reason on a few lines of the width of the report."""
    return textwrap.wrap(
        because, WIDTH, initial_indent="   why:    ", subsequent_indent=" " * 11, max_lines=WHY_LINES, placeholder="..."
    )


def timeline(answer: Diagnosis) -> list[str]:
    """The lines of all findings and echoes in the order of one clock, each with its moment (UTC).

    Lines without a time that can be compared are left out.
    """
    from clusterwright.checks.timeline import Timeline, clock_text

    shared = _shared(answer)
    told = {
        (one.file, one.line): (f"{index}.", one)
        for index, finding in enumerate(answer.findings, 1)
        for one in finding.evidence
    }
    echoes = [one for finding in answer.findings for one in finding.echoes]
    told = {(one.file, one.line): ("~ ", one) for one in echoes} | told
    clocks = Timeline.of(one for _, one in told.values())
    moments = sorted((at, mark, one.line, one) for mark, one in told.values() if (at := clocks.at(one)) is not None)
    if len(moments) < MOMENTS:
        return []
    return [
        f"{clock_text(at)} {mark} {_at(one, shared)} {one.text[:WIDTH]}" for at, mark, _, one in moments[:KEPT_MOMENTS]
    ]


def markdown(answer: Diagnosis) -> str:
    """For an incident: headings, the lines as code, the echoes counted."""
    shared = _shared(answer)
    lines = [f"## Diagnosis: {answer.verdict}", ""]
    for index, finding in enumerate(answer.findings, 1):
        lines += [
            f"{index}. **{finding.cause}**",
            "",
            f"   - where: {_where(finding)}",
            f"   - do now: `{finding.action}` (confidence: {finding.confidence})",
            f"   - because: {finding.because}",
            "",
            "   ```text",
            *(f"   {_at(one, shared)} {one.text}" for one in finding.evidence),
            "   ```",
            "",
        ]
        lines += [f"   {len(finding.echoes)} lines only echo it.", ""] if finding.echoes else []
    if moments := timeline(answer):
        lines += ["Timeline (UTC; the number is the finding, ~ an echo):", "", "```text", *moments, "```", ""]
    lines += ["To collect next:", "", *(f"- {what}" for what in answer.collect)] if answer.collect else []
    return "\n".join(lines).rstrip()


def _where(finding: Finding) -> str:
    return ", ".join(f"{key} {value}" for key, value in finding.where.named().items()) or "the text names no place"


def _shared(answer: Diagnosis) -> str:
    """The folder that all files lie in: what is left of their names tells them apart."""
    files = {one.file for finding in answer.findings for one in (*finding.evidence, *finding.echoes)}
    if len(files) <= 1 or len({Path(file).is_absolute() for file in files}) > 1:
        return str(Path(next(iter(files), "")).parent)
    return os.path.commonpath([str(Path(file).parent) for file in files])


def _at(evidence: Evidence, shared: str) -> str:
    file = Path(evidence.file)
    return f"{file.relative_to(shared) if file.is_relative_to(shared) else file.name}:{evidence.line}"
