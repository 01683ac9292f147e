"""One retrieval task in memory: documents, train queries with their candidates, and the dev curve that every choice is made by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data import Judged, Learning
from ..rotation import Rotation
from ..types import F32, I64, Rows
from .candidates import Candidates
from .ranking import DevCurve, Ranker, nearest

DEV_WIDTHS = (32, 48, 64, 96, 128, 192, 256)
DEV_QUERIES = 500  # dev queries ranked at each evaluation during training, at most


@dataclass(frozen=True, eq=False)
class Task:
    """What training works on. Without labels the frozen encoder's first document stands in for the relevant one."""

    documents: F32  # (N, D) unit rows
    queries: F32  # (n, D) train
    candidates: Candidates
    judged: Judged  # of the train queries
    dev: F32
    dev_judged: Judged
    dev_own: I64
    labelled: bool

    @classmethod
    def of(cls, learning: Learning, *, width: int | None = None, shortlist: int = 200) -> Task:
        """Mines the train queries' shortlists: by the leading `width` coordinates, or by all of them."""
        documents = learning.documents.all()
        train, dev = learning.train, learning.dev
        judged, dev_judged = train.judged, dev.judged
        if judged is None or dev_judged is None:
            judged = frozen_top(train.vectors.all(), documents, 1, train.own)
            dev_judged = frozen_top(dev.vectors.all(), documents, 1, dev.own)
        candidates = Candidates.mine(train, documents, judged, width=width, shortlist=shortlist)
        queries = train.vectors.all()
        return cls(documents, queries, candidates, judged, dev.vectors.all(), dev_judged, dev.own, learning.labelled)

    @property
    def width(self) -> int:
        """The encoder width D."""
        return int(self.documents.shape[1])

    def without_dev_beyond(self, most: int = DEV_QUERIES) -> Task:
        """The same task with at most so many dev queries: for the evaluations during training."""
        pick = evenly(len(self.dev), most)
        return replace(self, dev=self.dev[pick], dev_judged=self.dev_judged.select(pick), dev_own=self.dev_own[pick])

    def dev_curve(self, rotation: Rotation) -> DevCurve:
        """nDCG@10 of every dev query at each width, all documents of the task ranked."""
        widths = dev_widths(self.width)
        queries, documents = (rotation.apply(x, max(widths)) for x in (self.dev, self.documents))
        return Ranker(documents, widths).curve(queries, self.dev_judged, self.dev_own)


def evenly(count: int, most: int) -> Rows:
    """At most so many of `count` rows, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def dev_widths(width: int) -> tuple[int, ...]:
    """The widths that dev curves have for an encoder of this width."""
    return tuple(m for m in DEV_WIDTHS if m < width) or (width,)


def frozen_top(queries: F32, documents: F32, k: int, own: I64) -> Judged:
    """The frozen encoder's own first k documents as judgements: what stands in for labels."""
    return as_judged(nearest(queries, documents, k, own))


def as_judged(rows: Rows) -> Judged:
    """Rankings as judgements: all of them relevant. (Q, k)"""
    offsets = np.arange(len(rows) + 1) * rows.shape[1]
    return Judged(offsets, rows.ravel(), np.ones(rows.size))


def means(curve: DevCurve) -> dict[int, float]:
    """Mean over queries at each width."""
    return {m: float(values.mean()) for m, values in curve.items()}


def mean(curve: DevCurve) -> float:
    """Mean over queries and widths: the one number that recipes are compared by."""
    return float(np.mean([values.mean() for values in curve.values()]))
