"""``clusterwright diagnose``: logs in, the cause out, or an honest "unknown"."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from clusterwright.health import Diagnosis, Evidence, Finding

KEPT_LINES = 20
"""What a phone shows at once."""
WIDTH = 100


@click.command("diagnose")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--plan", "plan_file", help="The plan that the job runs on: what was expected of it.")
@click.option("--explain", is_flag=True, help="Show the chain from the lines to the verdict.")
@click.option("--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
def command(files: tuple[str, ...], plan_file: str | None, explain: bool, style: str) -> int:
    """Read logs (files, folders, .gz, or - for standard input) and name the cause, or say unknown."""
    from clusterwright.api import diagnose

    answer = diagnose(files, plan_file)
    for line in answer.unreadable:
        print(f"warning: {line}", file=sys.stderr)
    if style == "json":
        print(json.dumps(document(answer), allow_nan=False))
    else:
        said = markdown(answer) if style == "markdown" else text(answer, explain=explain)
        coding = sys.stdout.encoding or "utf-8"
        print(said.encode(coding, "replace").decode(coding))
    return 0 if answer.verdict == "healthy" else 1


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
    for index, finding in enumerate(answer.findings if explain else answer.findings[:3], 1):
        lines += [
            f"{index}. {finding.cause}",
            f"   where:  {_where(finding)}",
            f"   do:     {finding.action}  ({finding.confidence})",
        ]
        lines += [f"   why:    {finding.because}"] if index == 1 or explain else []
        kept = finding.evidence if explain else finding.evidence[: 2 if index == 1 else 1]
        lines += [f"   > {_at(one)} {one.text}" for one in kept]
        if explain:
            lines += [f"   ~ {_at(one)} {one.text}  (echo)" for one in finding.echoes] + [
                f"   source: {finding.source}"
            ] * bool(finding.source)
        elif finding.echoes:
            lines.append(f"   and {len(finding.echoes)} lines that only echo it")
    hidden = len(answer.findings) - 3
    if hidden > 0 and not explain:
        lines.append(f"and {hidden} findings more: --explain")
    if answer.verdict == "unknown":
        lines += ["collect next:", *(f"   - {what}" for what in answer.collect)]
    return (
        "\n".join(lines)
        if explain
        else "\n".join(line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in lines[:KEPT_LINES])
    )


def markdown(answer: Diagnosis) -> str:
    """For an incident: headings, the lines as code, the echoes counted."""
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
            *(f"   {_at(one)} {one.text}" for one in finding.evidence),
            "   ```",
            "",
        ]
        lines += [f"   {len(finding.echoes)} lines only echo it.", ""] if finding.echoes else []
    lines += ["To collect next:", "", *(f"- {what}" for what in answer.collect)] if answer.collect else []
    return "\n".join(lines).rstrip()


def _where(finding: Finding) -> str:
    return ", ".join(f"{key} {value}" for key, value in finding.where.named().items()) or "the text names no place"


def _at(evidence: Evidence) -> str:
    return f"{evidence.file.rsplit('/', 1)[-1]}:{evidence.line}"
