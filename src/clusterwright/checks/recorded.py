"""Flight-recorder dumps of many ranks -> the rank that did not come, or the collective that ranks see differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusterwright.health import Evidence, Where
from clusterwright.knowledge import Judgement

if TYPE_CHECKING:
    from clusterwright.probes.recorder import Dump, Group

_SOURCE = "https://github.com/pytorch/tutorials/blob/29bf2b8020e7babf1fd1d86661f18e64cd0a2b88/unstable_source/flight_recorder_tutorial.rst"
MISSING = Judgement(
    name="recorded-missing",
    cause="a rank did not come to a collective that the others wait in (flight recorder: missing rank)",
    because="read what that rank did last, the kernel log of its node, and the stack of its process",
    scope="job",
    action="investigate",
    weight=3,
    source=_SOURCE,
)
DIFFERENT = Judgement(
    name="recorded-mismatch",
    cause="ranks recorded different collectives at the same place (mismatch): the program's ranks have gone apart",
    because="software: look for a branch that not all ranks take, or sizes that differ",
    scope="job",
    action="investigate",
    weight=2,
    source=_SOURCE,
)
STUCK = Judgement(
    name="recorded-stuck",
    cause="all ranks came to the collective and it did not end: the path between them or an accelerator hangs",
    because="the recorder names no rank: read the kernel logs and the port counters of all nodes",
    scope="job",
    action="investigate",
    confidence="unknown",
    weight=5,
    source=_SOURCE,
)
Together = tuple[Judgement, list[Evidence], str]
ENOUGH = 2
SHOWN = 8


def recorded(dumps: list[Dump]) -> list[Together]:
    """What the dumps tell together; nothing from one rank alone.

    Args:
        dumps: One of each rank.
    """
    names = sorted({name for dump in dumps for name in dump.groups})
    together: list[Together] = []
    for name in names:
        members = {
            dump.rank: (dump, dump.groups[name]) for dump in dumps if name in dump.groups and dump.rank is not None
        }
        if len(members) >= ENOUGH:
            together += _of_group(name, {rank: pair for rank, pair in members.items() if rank is not None})
    return together


def _of_group(name: str, members: dict[int, tuple[Dump, Group]]) -> list[Together]:
    furthest = max(group.enqueued for _, group in members.values())
    behind = sorted(rank for rank, (_, group) in members.items() if group.enqueued < furthest)
    waiting = [group for _, group in members.values() if group.enqueued == furthest > group.completed]
    absent = sorted({rank for _, group in members.values() for rank in group.ranks} - members.keys())
    note = f"; no dump of rank {_listed(absent)}" if absent else ""
    if (apart := _apart(name, members)) is not None:
        return [apart]
    if behind and waiting:
        call = waiting[0].calls.get(furthest)
        what = f"collective {furthest}{f' ({call.name})' if call else ''} of group {waiting[0].description or name}"
        said = f"rank {_listed(behind)} stopped at collective {members[behind[0]][1].enqueued}, others wait in {what}"
        return [(MISSING, [_evidence(*members[rank], name, rank) for rank in behind[:SHOWN]], said + note)]
    if waiting and len(waiting) == len(members) and not absent:
        return [
            (STUCK, [_evidence(*members[min(members)], name, None)], f"collective {furthest} of {len(members)} ranks")
        ]
    if waiting and absent:
        said = f"rank {_listed(absent)} left no dump, the others wait in collective {furthest}"
        dump, group = members[min(members)]
        place = Where(rank=str(absent[0])) if len(absent) == 1 else Where()
        evidence = _evidence(dump, group, name, None).model_copy(update={"where": place})
        return [(MISSING.model_copy(update={"weight": 4}), [evidence], said)]
    return []


def _apart(name: str, members: dict[int, tuple[Dump, Group]]) -> Together | None:
    common = set.intersection(*(set(group.calls) for _, group in members.values()))
    for seq in sorted(common):
        kinds: dict[str, list[int]] = {}
        for rank, (_, group) in members.items():
            kinds.setdefault(group.calls[seq].name, []).append(rank)
        if len(kinds) > 1:
            said = "; ".join(f"{kind}: rank {_listed(sorted(ranks))}" for kind, ranks in kinds.items())
            few = min(kinds.values(), key=len)
            return DIFFERENT, [_evidence(*members[few[0]], name, few[0])], f"at collective {seq}: {said}"
    return None


def _evidence(dump: Dump, group: Group, name: str, rank: int | None) -> Evidence:
    text = (
        f"flight recorder of rank {dump.rank}, group {group.description or name}: "
        f"enqueued {group.enqueued}, completed {group.completed}"
    )
    return Evidence(file=dump.file, line=1, text=text, where=Where(rank=None if rank is None else str(rank)))


def _listed(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:SHOWN])) + (f" and {len(ranks) - SHOWN} more" if len(ranks) > SHOWN else "")
