"""One clock for all files: times without a year, and seconds since boot, beside times that are whole."""

from __future__ import annotations

import calendar
import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusterwright.probes.envelope import time_of, uptime_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.health import Evidence

YEAR_S = 366 * 86400.0


@dataclass(slots=True)
class Timeline:
    """What is known of the clocks of the files."""

    about_s: float | None = None
    """A moment that is told with its year."""
    booted_s: dict[str, float] = field(default_factory=dict)
    """By file or node: when the kernel started."""

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> Timeline:
        """Learn from lines that tell both: a year beside others, or a wall clock beside seconds since boot."""
        known = list(evidence)
        whole = [one.time_s for one in known if one.clock == "utc" and one.time_s is not None]
        timeline = cls(statistics.median(whole) if whole else None)
        for one in known:
            raw = one.text.encode("utf-8", "replace")
            uptime, (wall, clock) = uptime_of(raw), time_of(raw)
            if uptime is not None and wall is not None and clock in {"utc", "year"}:
                for key in {one.file, one.where.node or one.file}:
                    timeline.booted_s.setdefault(key, timeline._whole(wall, clock) - uptime)
        return timeline

    def at(self, evidence: Evidence) -> float | None:
        """Seconds since 1970 [s]; None where no clock tells.

        Args:
            evidence: A line with its time and clock.
        """
        if evidence.time_s is None:
            return None
        if evidence.clock == "boot":
            started = self.booted_s.get(evidence.file, self.booted_s.get(evidence.where.node or ""))
            return None if started is None else started + evidence.time_s
        return self._whole(evidence.time_s, evidence.clock)

    def _whole(self, moment: float, clock: str) -> float:
        """The moment, in the year that brings it nearest to the moments that tell theirs."""
        about = self.about_s
        if clock == "utc" or about is None:
            return moment
        rest = time.gmtime(moment)[1:6]
        year = time.gmtime(about).tm_year
        moments = [calendar.timegm((near, *rest)) + moment % 1 for near in (year - 1, year, year + 1)]
        return min(moments, key=lambda at: abs(at - about))


def clock_text(moment: float) -> str:
    """A moment as people read it, without the year where none is known.

    >>> clock_text(1767312010.5), clock_text(86410.25)
    ('2026-01-02 00:00:10.5', '01-02 00:00:10.2')
    """
    whole, tenth = divmod(round(moment * 10), 10)
    text = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(whole))}.{tenth}"
    return text.removeprefix("1970-") if moment < YEAR_S else text
