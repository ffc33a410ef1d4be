"""The one door: a plan and the name of a target give the files."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from typing import TYPE_CHECKING

from clusterwright.emitters.bundle import Bundle, Unsupported
from clusterwright.emitters.job import NETWORK_KEYS, RDMA, Job
from clusterwright.emitters.keys import KEYS, site_values
from clusterwright.emitters.targets import TARGETS
from clusterwright.errors import InfeasibleError, InputError, nearest, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusterwright.emitters.target import Target
    from clusterwright.plan import Plan

MANIFEST = "MANIFEST.json"


class MissingKeysError(InfeasibleError):
    """Keys that the target needs and nobody gave."""

    def __init__(self, target: str, keys: tuple[str, ...]) -> None:
        self.keys = keys
        lines = [f"  {key}: {KEYS[key].about}, for instance {KEYS[key].example}" for key in keys]
        super().__init__(
            f"target {target} needs {', '.join(keys)}, and nothing was written; give them in [site] of the workload, "
            "with --set key=value, or leave marked gaps with --allow-unset\n" + "\n".join(lines)
        )


def targets() -> tuple[Target, ...]:
    """Every target that `emit` can write, in the order of the work."""
    return TARGETS


def emit(
    plan: Plan, target: str, overrides: Mapping[str, object] | None = None, *, allow_unset: bool = False
) -> Bundle:
    """The files of a plan for one target, with their manifest.

    Args:
        plan: With a chosen candidate.
        target: Name of one of `targets`.
        overrides: Values of keys that win over the plan's ``site``.
        allow_unset: Whether needed keys may stay without a value, each line marked.

    Returns:
        Files by name (none where the target does not apply) and what could not be expressed.

    Raises:
        InputError: unknown target or key, a value that cannot be, a plan without a chosen candidate.
        MissingKeysError: a needed key has no value.
    """
    found = next((t for t in TARGETS if t.name == target), None)
    if found is None:
        raise unknown("target", target, [t.name for t in TARGETS])
    if plan.chosen is None:
        msg = "plan: chosen is null: this plan found nothing feasible"
        raise InputError(msg)
    given = overrides or {}
    _refuse_unknown(found, given)
    declared = {*found.needs, *found.takes}
    site = site_values({k: v for k, v in plan.site.items() if k in declared}, given)
    job = Job(plan, plan.chosen, site)
    missing = tuple(key for key in found.needs if key not in site and _wanted(job, key))
    if not missing:
        return _sealed(plan, found, given, found.write(job), ())
    probe = found.write(Job(plan, plan.chosen, site, frozenset(missing)))
    if not probe.files:
        return probe
    if not allow_unset:
        raise MissingKeysError(target, missing)
    return _sealed(plan, found, given, probe, missing)


def _wanted(job: Job, key: str) -> bool:
    if key not in NETWORK_KEYS:
        return True
    if key == "interface":
        return job.nodes > 1
    return job.nodes > 1 and job.node.fabric in RDMA


def _refuse_unknown(target: Target, given: Mapping[str, object]) -> None:
    known = (*target.needs, *target.takes)
    for key in given:
        if key in known:
            continue
        near = nearest(key, known)
        hint = f"did you mean {', '.join(near)}?" if near else f"it reads {', '.join(known)}"
        msg = f"--set {key}: target {target.name} has no such key; {hint}"
        raise InputError(msg)


def _sealed(
    plan: Plan, target: Target, given: Mapping[str, object], bundle: Bundle, missing: tuple[str, ...]
) -> Bundle:
    gaps = tuple(
        Unsupported(f"site.{key}", f"not given; lines with UNSET stand for it ({KEYS[key].about})") for key in missing
    )
    unsupported = (*gaps, *bundle.unsupported)
    if not bundle.files:
        return Bundle({}, unsupported)
    manifest = {
        "target": target.name,
        "written_by": f"clusterwright {version('clusterwright')}",
        "plan": {
            "version": plan.version,
            "sha256": _hash(plan.to_json()),
            "model": plan.model.name,
            "catalogue_date": plan.catalogue_date.isoformat(),
        },
        "set": {key: str(value) for key, value in sorted(given.items())},
        "files": {name: {"sha256": _hash(text)} for name, text in sorted(bundle.files.items())},
        "unsupported": [{"what": u.what, "why": u.why} for u in unsupported],
    }
    text = json.dumps(manifest, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    return Bundle({**bundle.files, MANIFEST: text}, unsupported)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
