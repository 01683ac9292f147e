"""Results: what one way of answering gave and cost, and a whole evaluation, as objects and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data import Judged
from ..hits import Hits
from ..metrics import PerQuery
from ..types import Mask, Rows
from .widths import Width


@dataclass(frozen=True, eq=False)
class Point:
    """One way of answering a split's queries. Costs are means per query."""

    width: Width
    mean_width: float  # coordinates read per candidate
    multiply_adds: float
    per_query: Mapping[str, PerQuery]  # measure -> its value for every query
    hits: Hits
    unseen: Mask | None  # queries none of whose relevant documents the fit saw; None: it saw no labels
    details: Mapping[str, Any] = field(default_factory=dict)  # what only some points have: policy, survivors, …

    def mean(self, measure: str) -> float:
        """A measure's mean over all queries."""
        return float(self.per_query[measure].mean())

    def to_json(self) -> dict[str, Any]:
        """One entry of "results"."""
        figures = {measure: self.mean(measure) for measure in self.per_query}
        entry = {"width": self.width, "mean_width": self.mean_width, **figures, "multiply_adds": round(self.multiply_adds), **self.details}
        if self.unseen is not None:
            entry["unseen"] = on_unseen(self.per_query, self.unseen)
        return entry


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A model on one split of a dataset: every width asked for, and the frozen encoder beside it."""

    dataset: str
    encoder: str
    encoder_width: int
    split: str
    documents: int
    query_ids: tuple[str | int, ...]
    protocol: str
    results: tuple[Point, ...]
    task: str | None = None  # whose query map the queries passed through
    shortlist: Mapping[str, Any] | None = None  # what the candidates of a shortlist protocol allow at best

    def __repr__(self) -> str:
        widths = ", ".join(str(point.width) for point in self.results)
        return f"Evaluation({self.dataset}, {self.encoder}, {self.split}: {len(self.query_ids):,} queries, widths {widths})"

    def __getitem__(self, width: Width) -> Point:
        """The point of a width: a number, "full", "frozen" or "auto"."""
        for point in self.results:
            if point.width == width:
                return point
        raise KeyError(width)

    def to_json(self) -> dict[str, Any]:
        """The object that `adawidth evaluate --json` prints."""
        return {
            "dataset": self.dataset,
            "encoder": self.encoder,
            "encoder_width": self.encoder_width,
            **({} if self.task is None else {"task": self.task}),
            "split": self.split,
            "queries": len(self.query_ids),
            "documents": self.documents,
            "protocol": self.protocol,
            **({} if self.shortlist is None else {"shortlist": self.shortlist}),
            "results": [point.to_json() for point in self.results],
        }


def unseen_queries(judged: Judged, seen: Rows) -> Mask:
    """Which queries have no relevant document among the rows that a fit saw."""
    query_of = np.repeat(np.arange(len(judged)), np.diff(judged.offsets))
    met = np.isin(judged.documents, seen) & (judged.grades > 0)
    return np.asarray(np.bincount(query_of[met], minlength=len(judged)) == 0)


def on_unseen(per_query: Mapping[str, PerQuery], unseen: Mask) -> dict[str, Any]:
    """Means over the unseen queries; None where there are none."""
    count = int(unseen.sum())
    return {"queries": count} | {measure: float(values[unseen].mean()) if count else None for measure, values in per_query.items()}
