"""What the words of a line change in the judgement of its code: severity, recovery action, what came before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.checks.limits import over
from clusterwright.checks.observing import is_bad
from clusterwright.checks.recorded import recorded
from clusterwright.checks.topology import odd_connections
from clusterwright.knowledge import Judgement, Threshold, Xid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.checks.observing import Observation, Observer
    from clusterwright.health import Action, Evidence
    from clusterwright.knowledge import Knowledge

NVLINK5 = range(144, 151)
NVLINK_CODE = 74
"""NVLink before its fifth generation."""
RECOVERY_CODE = 154
"""The code that states the recovery action."""
PEER_CODE = 145
"""What the peers of a failing link print."""
PEER_NOTE = "both ends of a link print such lines: the other end of this link may be the one at fault"
NVLINK_BOARDS = ("sxm", "b200", "b300", "hgx", "h20", "a800", "h800")
"""Parts of the names of boards that are made with NVLink only."""
LINKS_BY_DESIGN = 4
"""From so many links down on one device, none up, a board without a bridge is the likelier reason."""
RECOVERY: tuple[tuple[str, Action], ...] = (
    ("drain p2p", "investigate"),
    ("drain and reset", "reset-accelerator"),
    ("node reboot", "reboot-node"),
    ("gpu reset", "reset-accelerator"),
    ("reset", "reset-accelerator"),
    ("reboot", "reboot-node"),
)
"""Words of Xid 154 and the action they ask for."""


def judge(observation: Observation, knowledge: Knowledge) -> Judgement:
    """The judgement of an observation after the words of its line."""
    judgement, facts = observation.judgement, observation.facts
    if isinstance(judgement, Xid):
        return _xid(judgement, facts, knowledge)
    model = facts.get("before", "").lower()
    if judgement.name == "nvlink-all-inactive" and model and not any(board in model for board in NVLINK_BOARDS):
        return judgement.model_copy(update={"action": "investigate", "health": "degraded", "weight": 5})
    return judgement


def _xid(xid: Xid, facts: dict[str, str], knowledge: Knowledge) -> Xid:
    if facts["previous"]:
        return _consequence(xid, int(facts["previous"]), knowledge)
    if xid.code == RECOVERY_CODE:
        return _recovery(xid, facts["detail"].lower())
    if xid.code in NVLINK5:
        return _nvlink5(xid, facts)
    if xid.code == NVLINK_CODE and facts["severity"] == "nonfatal":
        return xid.model_copy(
            update={"action": "investigate", "health": "degraded", "confidence": "likely", "weight": 4}
        )
    return xid


def _nvlink5(xid: Xid, facts: dict[str, str]) -> Xid:
    bit_errors = " (bit-error rate of the link)" if "ber" in facts["detail"].lower().split(" ")[0] else ""
    if facts["severity"] == "fatal":
        echo = xid.code == PEER_CODE
        return xid.model_copy(
            update={
                "because": PEER_NOTE,
                "cause": f"Xid {xid.code}: fatal NVLink error{bit_errors}",
                "action": "reset-accelerator",
                "scope": "link",
                "health": "failed",
                "confidence": "likely" if echo else "certain",
                "weight": 2 if echo else 1,
            }
        )
    if facts["severity"] == "nonfatal":
        return xid.model_copy(
            update={
                "because": PEER_NOTE,
                "cause": f"Xid {xid.code}: NVLink event, nonfatal by its own word{bit_errors}",
                "action": "investigate",
                "health": "degraded",
                "weight": 5,
            }
        )
    return xid


def _consequence(xid: Xid, previous: int, knowledge: Knowledge) -> Xid:
    root = next((known for known in knowledge.xids if known.code == previous), None)
    if root is None or previous == xid.code:
        return xid
    peer = previous in {PEER_CODE, 137, 45, 43}
    if previous in NVLINK5 and not peer:
        root = root.model_copy(update={"action": "reset-accelerator", "health": "failed", "scope": "link"})
    return root.model_copy(
        update={
            "cause": f"Xid {previous} ({root.cause.partition(': ')[2]}), told by a later Xid {xid.code}",
            "confidence": "unknown" if peer else "likely",
            "weight": 5 if peer else max(1, root.weight if previous not in NVLINK5 else 1),
        }
    )


def _recovery(xid: Xid, detail: str) -> Xid:
    wanted = detail.rpartition(" to ")[2]
    for words, action in RECOVERY:
        if words in wanted:
            return xid.model_copy(
                update={
                    "cause": f"Xid 154: the driver asks for recovery: {words}",
                    "action": action,
                    "health": "failed" if action != "investigate" else "degraded",
                    "confidence": "certain",
                    "weight": 2,
                }
            )
    return xid.model_copy(update={"action": "none", "health": "ok", "weight": 8})


def judge_together(observer: Observer) -> list[tuple[Judgement, list[Evidence], str]]:
    """What only readings together tell: the bandwidth of large messages, the links of a device, the ranks of a call."""
    together: list[tuple[Judgement, list[Evidence], str]] = []
    thresholds = {threshold.name: threshold for threshold in observer.knowledge.thresholds}
    speeds = observer.readings.get("nccl_tests.busbw", [])
    best = max(speeds, key=lambda evidence: float(evidence.value), default=None)
    if best is not None and "socket-speed" in thresholds and is_bad(thresholds["socket-speed"], best.value):
        together.append(
            (thresholds["socket-speed"], [best], f"the best bus bandwidth of large messages is {best.value} GB/s")
        )
    for (_, _, accelerator), links in _by_accelerator(observer.readings.get("dcgm.nvlink_down", [])).items():
        fault = thresholds["dcgm-link-down"]
        if len(links) >= LINKS_BY_DESIGN:
            together.append(
                (
                    fault,
                    links[:5],
                    f"{len(links)} NVLinks of GPU {accelerator} are down at once: without a bridge a board has none",
                )
            )
        else:
            together.append(
                (
                    fault.model_copy(update={"action": "reset-accelerator", "weight": 2}),
                    links[:5],
                    f"{len(links)} NVLink of GPU {accelerator} is down",
                )
            )
    told = odd_connections(observer.readings.get("topology.row", [])) + over(observer.readings)
    told += recorded(observer.dumps)
    return together + _straggling(observer) + _apart(observer) + _behind(observer) + told


def _straggling(observer: Observer) -> list[tuple[Judgement, list[Evidence], str]]:
    counts = observer.readings.get("ras.launched", [])
    if not counts:
        return []
    said = "; ".join(evidence.text for evidence in counts[:4])
    listed = observer.readings.get("ras.listed", [])
    behind = counts[0]
    fault = Threshold(
        name="ranks-behind",
        reading="ras.launched",
        comparison="above",
        limit="0",
        scope="job",
        action="investigate",
        confidence="likely",
        cause="some ranks have not launched a collective that others have: they are behind (stragglers)",
        weight=3,
        source="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html",
        example="-",
        near_miss="-",
    )
    ranks = ", ".join(str(evidence.where.rank) for evidence in listed[:8])
    smallest = min(
        counts, key=lambda evidence: int(evidence.text.split()[0]) if evidence.text.split()[0].isdigit() else 0
    )
    innocent = smallest is not behind and listed
    tail = (
        f"; the listed ranks {ranks} are ahead and innocent"
        if innocent
        else f"; the listed ranks {ranks} are behind"
        if listed
        else ""
    )
    return [(fault, counts[:5], said.strip() + tail)]


def _apart(observer: Observer) -> list[tuple[Judgement, list[Evidence], str]]:
    """Siblings that differ: a port with another rate, an accelerator with fewer links than the others."""
    together: list[tuple[Judgement, list[Evidence], str]] = []
    rates = observer.readings.get("ib.rate", [])
    usual = _usual([evidence.value for evidence in rates])
    for evidence in rates:
        if usual is not None and float(evidence.value) < float(usual):
            said = f"port {evidence.where.port} runs at {evidence.value} Gb/s, its siblings at {usual} Gb/s"
            together.append((SLOW_PORT, [evidence], said))
    links = _by_accelerator(one for one in observer.readings.get("nvlink.state", []) if one.value != "inactive")
    usual = _usual([str(len(up)) for up in links.values()])
    for (_, _, accelerator), up in links.items():
        if usual is not None and len(up) < int(usual):
            together.append((FEWER_LINKS, up[:1], f"GPU {accelerator} has {len(up)} NVLinks up, its siblings {usual}"))
    return together


def _by_accelerator(readings: Iterable[Evidence]) -> dict[tuple[str, str, str], list[Evidence]]:
    """Readings by file, node and accelerator: every node has a GPU 0."""
    found: dict[tuple[str, str, str], list[Evidence]] = {}
    for one in readings:
        found.setdefault((one.file, str(one.where.node), str(one.where.accelerator)), []).append(one)
    return found


def _usual(values: list[str]) -> str | None:
    """The value that most siblings have; None where there is no majority.

    >>> _usual(["400", "400", "100"]), _usual(["400", "100"])
    ('400', None)
    """
    most = max(set(values), key=values.count, default=None)
    return most if most is not None and values.count(most) * 2 > len(values) else None


def _behind(observer: Observer) -> list[tuple[Judgement, list[Evidence], str]]:
    """Ranks whose watchdog stands at an earlier collective than that of most: they lag, or wait for another group."""
    said = observer.readings.get("watchdog.rank", [])
    usual = _usual([evidence.value for evidence in said])
    if usual is None:
        return []
    return [
        (RANK_BEHIND, [one], f"rank {one.where.rank} timed out at collective {one.value}, most ranks at {usual}")
        for one in said
        if int(one.value) < int(usual)
    ][:5]


_SIBLINGS = "https://github.com/NVIDIA/NVSentinel/blob/07b82dc233ce70a4f9a9019c96aa79a12aa05ef3/docs/configuration/nic-health-monitor.md"
SLOW_PORT = Judgement(
    name="slow-port",
    cause="a port runs at a lower rate than its siblings (link speed)",
    scope="link",
    action="investigate",
    health="degraded",
    weight=4,
    source=_SIBLINGS,
)
FEWER_LINKS = Judgement(
    name="fewer-links",
    cause="an accelerator has fewer NVLinks up than its siblings",
    scope="accelerator",
    action="reset-accelerator",
    weight=2,
    source="https://github.com/stas00/ml-engineering/blob/744d01e18b79512572f64a6bbd8b5f4a725203a7/compute/accelerator/nvidia/debug.md",
)
RANK_BEHIND = Judgement(
    name="rank-behind",
    cause="a rank timed out at an earlier collective than the others",
    scope="job",
    action="investigate",
    confidence="unknown",
    weight=6,
    source="https://docs.pytorch.org/docs/stable/distributed.html",
)
