# ruff: noqa: E501 - a pattern is read better in one piece
"""Lines of a job of many ranks -> facts: who speaks, at which step, how long its parts took, who is where."""

from __future__ import annotations

import functools
import re
from pathlib import PurePath

from pydantic import Field

from clusterwright.noun import Noun
from clusterwright.probes.labels import label_in
from clusterwright.probes.patterns import groups, pattern

# Every line of a training log passes these: Python's own engine is ten times as fast on them as RE2 called from Python,
# and each of them looks at a bounded piece of a line, so that its time grows with the line alone.
STEP = re.compile(rb"\b(?:step|iter(?:ation)?)\b[ :=#]{0,9}(\d{1,12})", re.IGNORECASE)
RANK = re.compile(rb"\[(?:default)?rank ?(\d{1,7})\]|\bRank[ :](\d{1,7})\b|\brank[ :=](\d{1,7})\b", re.IGNORECASE)
SPEAKER = re.compile(r"\s{0,9}\[rank ?(\d{1,7})\]", re.IGNORECASE)
SYSLOG_HOST = re.compile(
    rb"\s{0,9}(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20}) ([A-Za-z0-9][\w.-]{0,99}) [\w.()/-]{1,99}(?:\[\d{1,9}\])?:"
)
NODE_OF_RANK = r"\d\d:\d\d:\d\d\S* (?P<node>[A-Za-z][\w.-]*\d) .*?\brank[ :=]?(?P<rank>\d{1,7})\b|^\s*(?:\[[^\]]*\]:?)?(?P<node2>[A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL INFO .*\brank (?P<rank2>\d{1,7}) n?ranks\b|Rank (?P<rank3>\d{1,7}) -- GPU \d+ managed by process \d+ on node (?P<node3>\S+)|\bRank=(?P<rank4>\d{1,7}) Node=(?P<node4>\S+) Score="
ADDRESS = r"^\s*inet (?P<address>\d+\.\d+\.\d+\.\d+)/\d+ .*(?:scope global|brd)|^(?P<address2>\d+\.\d+\.\d+\.\d+)\s+(?P<node2>[A-Za-z][\w.-]*)\s*$|NodeAddr=(?P<address3>\d+\.\d+\.\d+\.\d+) NodeHostName=(?P<node3>\S+)|(?P<node4>[A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL INFO Bootstrap ?: Using \S+?:(?P<address4>\d+\.\d+\.\d+\.\d+)<"
TABLE_HOST = r"^\s*(?:\[[^\]]*\]:)?\s*host\s*: (?P<node>\S+)"
TABLE_RANK = r"^\s*(?:\[[^\]]*\]:)?\s*rank\s*: (?P<rank>\d{1,7}) \(local_rank: (?P<local>\d+)\)"
SETTINGS = (
    ("parameters", ("parameters",), r"\bmodel of (?P<value>[\d,]{1,24}) parameters"),
    ("torch", ("torch ",), r"\btorch (?:version:? )?(?P<value>\d+\.\d+\.\d+\S*?)[,;)]?(?: |$)"),
    ("NCCL", ("nccl version",), r"\bNCCL version (?P<value>\d\S+)"),
    ("revision", ("revision", "commit"), r"\b(?:revision|commit)[ :=]+(?P<value>[0-9a-f]{7,40})\b"),
)
"""What every rank of a job has alike, by name: words of the line, and its pattern."""
THROUGHPUT = r"MnEtpt/Rnk: (?P<least>\d{1,9}(?:\.\d{1,9})?)TF/(?P<rank>\d{1,7}) \| MxEtpt/Rnk: (?P<most>\d{1,9}(?:\.\d{1,9})?)TF/\d+"
ENQUEUED = r"\[PG (?:ID )?(?P<group>\d+)[^\]]*?Rank (?P<rank>\d{1,7})\].*last enqueued (?:NCCL )?work: (?P<value>\d{1,12}), last completed"
FINGERPRINT = re.compile(r"Rank (\d{1,7}) is running collective: CollectiveFingerPrint\((.*?), TensorDtypes=")
TABLE_TERMINATED = r"exitcode\s*: -15 \(pid: \d+\)\s+\(SIGTERM\)"
NCCL_HOST = r"^\s*(?:\[[^\]]*\]:? ?)?(?P<node>[A-Za-z][\w.-]*):\d+:\d+ \[\d+\] NCCL"
LINK = r"\brank (?P<source>\d{1,7}) ?-+> ?(?:rank )?(?P<target>\d{1,7})\b.*?(?P<value>\d{1,9}(?:\.\d{1,9})?) ?GB/s"
WORLD = r"\bworld[ _]size[ :=]+(?P<value>\d{1,12})"
MASTER = r"\b(?:master(?:[ _]addr(?:ess)?)?|rdzv_endpoint)\s*[:= ]\s*(?P<value>[A-Za-z0-9][\w.-]*)"
ENDED = r"\b(?:train(?:ing)?|run|job) (?:is |has )?(?:done|completed?|finished)\b|\b(?:finished|completed?) training\b"
SOCKET = r"\bretrans:\d+/(?P<value>\d{1,12})"
SOCKET_SENT = r"\bsegs_out:(?P<value>\d{1,12})"
SOCKET_ENDS = r"^(?:tcp\s+)?ESTAB\s+\d+\s+\d+\s+\[?(?:::ffff:)?(?P<source>[\d.]+)\]?(?:%\S+)?:\d+\s+\[?(?:::ffff:)?(?P<target>[\d.]+)\]?:\d+"
PORT_MTU = r"^\s*\d+: (?P<port>[\w.-]+?)(?:@\S+)?: <\S*> mtu (?P<value>\d{1,12})\b.*?(?:\bmaster (?P<master>\S+))?(?: state| group|$)"
WORDS = (
    " loss",
    "(local_rank: ",
    "inet ",
    "nodeaddr=",
    "bootstrap : using",
    "world size",
    "world_size",
    " -> rank ",
    " done",
    "complete",
    "finished",
    "segs_out:",
    "> mtu ",
    "(sigterm)",
    "model of ",
    "nccl version",
    "revision",
    "commit",
    "master_addr",
    "rdzv_endpoint",
    "collectivefingerprint(",
    "mnetpt/rnk",
    " score=",
    "last enqueued",
    "torch 2.",
    "torch version",
)
"""Each line that is read here holds one."""
COMMON = frozenset({" loss", " done", "complete", "finished", "revision", "commit", "torch 2.", "torch version"})
WORDS_ALONE = tuple(word for word in WORDS if word not in COMMON)
"""Words of the prefilter. The common ones are looked for in the first and last lines alone: a run prints millions."""
UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0}
DURATION = re.compile(rb"(?<![\d.])(\d{1,9}(?:\.\d{1,9})?) ?(ms|secs?|seconds|s)\b")
DURATION_UNIT_FIRST = re.compile(rb" ?\((ms|s)\)[ :=]{1,9}(\d{1,9}(?:\.\d{1,9})?)")
NAME_BEFORE = re.compile(rb"([A-Za-z][A-Za-z_ -]*?)[ :=]*$")
NAME_BYTES = 48
"""So far before its value the name of a duration is looked for."""
RAISED = re.compile(rb"(?:\[\w+\]:?\s*)*(?:\d+: )?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|NotMet)(?:: |$)")
ROW = re.compile(r"\s*(?:\[[^\]]*\]:)?\s*(?:exitcode|error_file|traceback)\s*: ")
LOCAL = re.compile(r"^\[default(\d+)\]:|\blocal_rank: ?(\d+)")
FULL_RANK = re.compile(r"(?<!local_)\brank[ :=]+\d|\[rank ?\d+\]", re.IGNORECASE)
FILE_RANK = re.compile(r"(?:^|[_.-])rank[_-]?(\d{1,7})(?=[_.-]|$)")
FILE_NODE = re.compile(r"(?:^|[_.-])((?:node|host|worker|compute|cn|nid|ip)-?\d[\d-]*)(?=[_.-]|$)", re.IGNORECASE)
FOLDER_NODE = re.compile(r"[A-Za-z][A-Za-z_-]*\d+(?:[.-][\w-]+)*")


class Step(Noun):
    """What one line of a training log says."""

    step: int
    parts: dict[str, float] = Field(default_factory=dict)
    """Durations by name [s]."""


def rank_of(raw: bytes) -> str | None:
    """The rank that a line names as its speaker.

    >>> rank_of(b"[rank5]: RuntimeError: x"), rank_of(b"08:00:01 node3 rank 4 INFO"), rank_of(b"[default1]: x")
    ('5', '4', None)
    """
    match = RANK.search(raw)
    return None if match is None else str(int(match[match.lastindex or 0]))


def is_spoken_by(rank: str, text: str) -> bool:
    """Whether a line begins with the rank, as launchers mark what a rank itself prints.

    >>> is_spoken_by("96", "[rank96]: CUDA error"), is_spoken_by("96", "[rank5]: rank 96 is late")
    (True, False)
    """
    match = SPEAKER.match(text)
    return match is not None and str(int(match[1])) == rank


def node_of_nccl(raw: bytes) -> str | None:
    """The host that begins a line of NCCL.

    >>> node_of_nccl(b"gpu-07:88:99 [3] NCCL INFO NCCL version 2.27.3"), node_of_nccl(b"NCCL version 2.27.3")
    ('gpu-07', None)
    """
    match = pattern(NCCL_HOST).search(raw)
    return None if match is None else groups(match)["node"]


def step_of(raw: bytes) -> Step | None:
    """Step and durations of a line of a training log.

    >>> step_of(b"rank 3 step 7/9 loss 2.1 time 0.5 s (compute 0.4 s)").parts
    {'time': 0.5, 'compute': 0.4}
    >>> step_of(b" iteration 12/ 100 | elapsed time per iteration (ms): 1500.0 | lm loss: 2.0").parts
    {'elapsed time per iteration': 1.5}
    """
    match = STEP.search(raw)
    if match is None:
        return None
    parts = {}
    for found in DURATION.finditer(raw):
        if name := _name_before(raw, found.start()):
            parts[name] = float(found[1]) * UNITS[found[2].decode()]
    for found in DURATION_UNIT_FIRST.finditer(raw):
        if name := _name_before(raw, found.start()):
            parts[name] = float(found[2]) * UNITS[found[1].decode()]
    return Step(step=int(match[1]), parts=parts)


def _name_before(raw: bytes, end: int) -> str:
    """The words right before a value, as far as they are letters."""
    match = NAME_BEFORE.search(raw[max(0, end - NAME_BYTES) : end])
    return "" if match is None else match[1].decode().strip().lower()


def is_raised(raw: bytes) -> bool:
    """Whether a line is the end of a traceback: the name of an exception and what it says.

    >>> is_raised(b"[rank5]: RuntimeError: x"), is_raised(b"    raise ValueError(x)"), is_raised(b"torch.DistError: x")
    (True, False, True)
    """
    return RAISED.match(raw) is not None


def is_row(text: str) -> bool:
    """Whether a line is part of an entry of torchrun's table of failures, and does not name the rank itself.

    >>> is_row("  exitcode  : -9 (pid: 8)  (SIGKILL)"), is_row("[default0]: x")
    (True, False)
    """
    return ROW.match(text) is not None


def local_rank(text: str) -> str | None:
    """The rank on its node, where a line gives no other.

    >>> local_rank("failed (exitcode: -9) local_rank: 1 (pid: 8)"), local_rank("[default0]:KeyError: 3")
    ('1', '0')
    """
    match = LOCAL.search(text)
    if match is None or FULL_RANK.search(text):
        return None
    return match.group(1) or match.group(2)


@functools.lru_cache(maxsize=1024)
def rank_of_file(name: str) -> str | None:
    """The rank that a file's name gives.

    >>> rank_of_file("logs/node3/rank5.log"), rank_of_file("job.log")
    ('5', None)
    """
    match = FILE_RANK.search(label_in(name) or PurePath(name).name)
    return None if match is None else str(int(match.group(1)))


def node_of_file(name: str, known: set[str]) -> str | None:
    """The node that a file's path gives: one that is known, else the folder where it looks like a host's name.

    >>> (
    ...     node_of_file("logs/node3/ip.txt", set()),
    ...     node_of_file("dmesg-gpu-07.txt", {"gpu-07"}),
    ...     node_of_file("a.txt", set()),
    ... )
    ('node3', 'gpu-07', None)
    >>> node_of_file("out/node-12.log", set()), node_of_file("out/step12.log", set())
    ('node-12', None)
    """
    if (label := label_in(name)) is not None:
        return None if FILE_RANK.search(label) else label
    path = PurePath(name)
    stem = path.name
    for node in sorted(known, key=len, reverse=True):
        if node in path.parts or re.search(rf"(?:^|[_.-]){re.escape(node)}(?=[_.-]|$)", stem):
            return node
    folder = path.parent.name
    if FOLDER_NODE.fullmatch(folder) and not FILE_RANK.search(folder):
        return folder
    match = FILE_NODE.search(stem)
    return None if match is None else match.group(1)
