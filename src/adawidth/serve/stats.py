"""What a worker counts: recent queries for the page's charts, totals, seconds per stage."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from ..hits import Hits
from .trace import Trace

RECENT = 1_000  # queries


class Stats:
    """Of one worker since it started. Threads add to it."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self.queries = self.batches = 0
        self.width_total = 0.0

    def searched(self, hits: Hits, options: Mapping[str, Any], seconds: Mapping[str, float], trace: Trace | None) -> None:
        """Counts the queries of one request."""
        now, fixed = time.time(), options.get("width")
        read = hits.read.bytes.tolist() if hits.read is not None else [0] * len(hits)
        entries = []
        for place, (width, size) in enumerate(zip(hits.widths.tolist(), read, strict=True)):
            way = None if trace is None else trace.to_json(place)
            spent = dict(seconds) if way is None else {**seconds, **way["seconds"]}
            end = way["end_width"] if way is not None else fixed if isinstance(fixed, int) else None
            policy = options.get("policy") or ("fixed" if fixed is not None else "taper")
            entries.append(
                {"time": now, "policy": policy, "k": options["k"], "mean_width": width, "end_width": end, "bytes": size, "seconds": spent}
            )
        with self._lock:
            self._recent.extend(entries)
            self.queries += len(entries)
            self.width_total += float(hits.widths.sum())

    def batched(self, seconds: float) -> None:
        """Counts a scan."""
        with self._lock:
            self.batches += 1

    def staged(self, stage: str, seconds: float) -> None:
        """Counts a stage other than the search."""

    def to_json(self, last: int) -> dict[str, Any]:
        """As /v1/stats gives it."""
        with self._lock:
            recent = list(self._recent)[-last:]
            mean = self.width_total / self.queries if self.queries else None
            uptime = time.monotonic() - self._began
            return {"uptime": uptime, "queries": self.queries, "batches": self.batches, "mean_width": mean, "recent": recent}
