"""What Prometheus scrapes. With several workers, their counts are added up through files (PROMETHEUS_MULTIPROC_DIR)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from ..hits import Hits
from ..model import Index
from ..policies.base import COARSE_LADDER
from .describe import expected_width

SHARED = "PROMETHEUS_MULTIPROC_DIR"
SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
TOGETHER = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one worker."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._children: dict[tuple[Any, tuple[str, ...]], Any] = {}

        def made(kind: Any, name: str, what: str, labels: tuple[str, ...] = (), **more: Any) -> Any:
            return kind(f"adawidth_{name}", what, labels, registry=registry, **more)

        self._queries = made(Counter, "queries", "Queries answered.", ("policy",))
        self._widths = made(Histogram, "query_width", "Mean width of a query: coordinates read per candidate.", buckets=COARSE_LADDER)
        self._coordinates = made(Counter, "coordinates_read", "Coordinates of candidates read.")
        self._bytes = made(Counter, "bytes_read", "Bytes of scans and candidates read.")
        self._budgets = made(Counter, "budget_width", "Sum of the budgets that queries came with.")
        self._spent = made(Counter, "budget_spent_width", "Sum of the mean widths of queries that came with a budget.")
        self._stages = made(Histogram, "stage_seconds", "Seconds per stage.", ("stage",), buckets=SECONDS)
        self._batches = made(Histogram, "batch_queries", "Queries answered by one scan.", buckets=TOGETHER)
        self._requests = made(Counter, "requests", "Requests answered.", ("path", "status"))
        self._took = made(Histogram, "request_seconds", "Seconds per request.", ("path",), buckets=SECONDS)
        self._documents = made(Gauge, "documents", "Documents that can be found.", multiprocess_mode="mostrecent")
        self._commit = made(Gauge, "commit", "Last commit that is served.", multiprocess_mode="mostrecent")
        self._grown = made(
            Gauge, "drift_documents", "Documents, as a multiple of those that the model was fitted on.", multiprocess_mode="mostrecent"
        )
        self._expected = made(
            Gauge,
            "expected_width",
            "Mean width of the default policy on dev: what query_width should stay near.",
            multiprocess_mode="mostrecent",
        )

    def searched(self, hits: Hits, policy: str, budget: float | None) -> None:
        """Counts the queries of one scan."""
        self._labelled(self._queries, policy).inc(len(hits))
        self._batches.observe(len(hits))
        for width in hits.widths.tolist():
            self._widths.observe(width)
        if hits.read is not None:
            self._coordinates.inc(int(hits.read.coordinates.sum()))
            self._bytes.inc(int(hits.read.bytes.sum()))
        if budget is not None:
            self._budgets.inc(budget * len(hits))
            self._spent.inc(float(hits.widths.sum()))

    def staged(self, seconds: Mapping[str, float]) -> None:
        """Counts stages."""
        for stage, spent in seconds.items():
            self._labelled(self._stages, stage).observe(spent)

    def requested(self, path: str, status: int, seconds: float) -> None:
        """Counts a request."""
        self._labelled(self._requests, path, str(status)).inc()
        self._labelled(self._took, path).observe(seconds)

    def _labelled(self, metric: Any, *labels: str) -> Any:
        """What `metric.labels` gives, which takes longer than to count."""
        key = (metric, labels)
        if key not in self._children:
            self._children[key] = metric.labels(*labels)
        return self._children[key]

    def exposed(self, index: Index) -> tuple[bytes, str]:
        """What a scrape gets, and its media type."""
        fitted = index.model.record.documents
        self._documents.set(len(index))
        self._commit.set(index.facts().get("commit") or 0)
        self._grown.set(len(index) / fitted if fitted else 1.0)
        self._expected.set(expected_width(index))
        registry = self._registry
        if os.environ.get(SHARED):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST
