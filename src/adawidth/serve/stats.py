"""What a worker counts: recent queries for the page's charts, totals, seconds per stage."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from ..hits import Hits
from .metrics import Metrics
from .trace import Trace

RECENT = 1_000  # queries


class Stats:
    """Of one worker since it started. Threads add to it."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self.queries = self.batches = 0
        self.width_total = 0.0

    def searched(self, hits: Hits, options: Mapping[str, Any], seconds: Mapping[str, float], trace: Trace | None, encoded: float) -> None:
        """Counts the queries of one request, whose texts took so many seconds to encode."""
        now, fixed = time.time(), options.get("width")
        policy = options.get("policy") or ("fixed" if fixed is not None else "taper")
        spent = dict(seconds) if trace is None else {**seconds, **trace.seconds()}
        ends = [trace.end_width(place) if trace else fixed if isinstance(fixed, int) else None for place in range(len(hits))]
        settled = [trace.settled_width(place) if trace else None for place in range(len(hits))]
        read = hits.read.bytes.tolist() if hits.read is not None else [0] * len(hits)
        common = {"time": now, "policy": policy, "k": options["k"], "seconds": {"encode": encoded, **spent}}
        entries = [
            {**common, "mean_width": width, "end_width": end, "settled_width": rest, "bytes": size}
            for width, end, rest, size in zip(hits.widths.tolist(), ends, settled, read, strict=True)
        ]
        with self._lock:
            self._recent.extend(entries)
            self.queries += len(entries)
            self.width_total += float(hits.widths.sum())
        self.metrics.searched(hits, policy, options.get("budget"))
        self.metrics.staged(spent)

    def batched(self, queries: int) -> None:
        """Counts a scan."""
        with self._lock:
            self.batches += 1
        self.metrics.batched(queries)

    def to_json(self, last: int) -> dict[str, Any]:
        """As /v1/stats gives it."""
        with self._lock:
            recent = list(self._recent)[-last:]
            mean = self.width_total / self.queries if self.queries else None
            uptime = time.monotonic() - self._began
            return {"uptime": uptime, "queries": self.queries, "batches": self.batches, "mean_width": mean, "recent": recent}
