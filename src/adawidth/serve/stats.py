"""What a worker counts: recent queries for the page's charts, totals, seconds per stage."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..hits import Hits
from .metrics import Metrics
from .trace import Trace

RECENT = 1_000  # queries
Before = tuple[float, float]  # seconds that a query's text was encoded for, and that it waited


class Scan(NamedTuple):
    """What the queries of one scan share."""

    time: float
    policy: str
    k: int
    seconds: Mapping[str, float]


class Noted(NamedTuple):
    """One of them."""

    scan: Scan
    encoded: float  # seconds that its text took
    waited: float  # seconds
    mean_width: float
    end_width: int | None
    settled_width: int | None
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """As /v1/stats gives it."""
        told = {name: value for name, value in self._asdict().items() if name not in ("scan", "encoded", "waited")}
        seconds = {"encode": self.encoded, "wait": self.waited, **self.scan.seconds}
        return {**self.scan._asdict(), **told, "seconds": seconds}


class Stats:
    """Of one worker since it started. Threads add to it."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._recent: deque[Noted] = deque(maxlen=RECENT)
        self.queries = self.batches = 0
        self.width_total = 0.0

    def searched(
        self, hits: Hits, options: Mapping[str, Any], before: Sequence[Before], seconds: Mapping[str, float], trace: Trace | None = None
    ) -> None:
        """Counts the queries of one scan: the seconds before it for each, and those that it took."""
        fixed, places = options.get("width"), range(len(hits))
        scan = Scan(time.time(), options.get("policy") or ("fixed" if fixed is not None else "taper"), options["k"], seconds)
        ends = [trace.end_width(place) if trace else fixed if isinstance(fixed, int) else None for place in places]
        settled = [trace.settled_width(place) if trace else None for place in places]
        read, widths = hits.read.bytes.tolist() if hits.read is not None else [0] * len(hits), hits.widths.tolist()
        noted = [Noted(scan, *spent, *figures) for spent, *figures in zip(before, widths, ends, settled, read, strict=True)]
        with self._lock:
            self._recent.extend(noted)
            self.queries += len(noted)
            self.batches += 1
            self.width_total += sum(widths)
        self.metrics.searched(hits, scan.policy, options.get("budget"))
        self.metrics.staged({"wait": max((waited for _, waited in before), default=0.0), **seconds})

    def to_json(self, last: int) -> dict[str, Any]:
        """As /v1/stats gives it."""
        with self._lock:
            recent = [one.to_json() for one in list(self._recent)[-last:]]
            mean = self.width_total / self.queries if self.queries else None
            uptime = time.monotonic() - self._began
            return {"uptime": uptime, "queries": self.queries, "batches": self.batches, "mean_width": mean, "recent": recent}
