"""Methods that read a shortlist on as far as one number says: what each setting of it costs and keeps is measured on dev."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np

from ..data import Judged, Learning, Queries, Vectors
from ..hits import Hits
from ..policies.taper import Curve
from ..stages import MemoryBackend, Stage
from ..stages.loop import SHORTLIST, exhaustive
from ..training.ranking import DEPTH
from ..training.taper import QUERIES, STARTS, kept
from ..types import F32, Rows
from .base import Rotated, documents_of, fitted

BATCH = 256  # queries carried through the stages together


class Dialled(Rotated):
    """A scan at a start width, then the shortlist read on as a knob says.

    A mean width is met by the start width and knob that keep most on dev within it, for 10 answers: the choice that the taper
    has. Where none is cheap enough every document is ranked at that width.
    """

    KNOBS: ClassVar[tuple[float, ...]]  # ascending: the further, the more is read; the last one is infinite
    curves: Mapping[int, Curve] | None = None  # by start width

    @abstractmethod
    def read(self, stage: Stage, knob: float, k: int) -> Hits:
        """The k best of a shortlist that stands at the start width."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds the rotation and measures the knob; returns itself."""
        super().fit(learning, seed)
        index = MemoryBackend(learning.documents, fitted(self, self.rotation))
        dev = learning.dev.select(np.unique(np.linspace(0, len(learning.dev) - 1, QUERIES).astype(np.int64)))
        asked = self.encode(dev.vectors.all(), "query", index.width)
        whole = index.search(asked, index.width, DEPTH, dev.own).candidates
        self.curves = {
            start: self._curve(index.search(asked, start, SHORTLIST, dev.own), whole, dev.judged) for start in STARTS if start < index.width
        }
        return self

    def setting(self, budget: int) -> tuple[int, float] | None:
        """Start width and knob for a mean width; None: every document is ranked at it."""
        curves = fitted(self, self.curves)
        found = {start: point for start in curves if start < budget and (point := curves[start].within(budget)) is not None}
        best = max(found, key=lambda start: found[start][1], default=None)
        return None if best is None else (best, found[best][0])

    def search(self, documents: Vectors, queries: Queries, width: int, k: int) -> Hits:
        """The shortlist of a scan read on, or every document ranked at the width."""
        rotation, setting = fitted(self, self.rotation), self.setting(width)
        index, asked = MemoryBackend(documents, rotation), self.encode(queries.vectors.all(), "query", rotation.width)
        if setting is None:
            return exhaustive(index, asked, width, k, queries.own, queries.candidates)
        start, knob = setting
        parts = [slice(begin, begin + BATCH) for begin in range(0, len(asked), BATCH)]
        hits = [self.read(self._shortlist(index, asked, queries, part, start, max(SHORTLIST, k)), knob, k) for part in parts]
        rows, scores, widths = (np.concatenate([getattr(part, name) for part in hits]) for name in ("rows", "scores", "widths"))
        return Hits(rows, scores, widths, index.documents)

    @staticmethod
    def _shortlist(index: MemoryBackend, asked: F32, queries: Queries, part: slice, start: int, size: int) -> Stage:
        """The candidates of some queries at the start width, best first there: given ones, or those of a scan."""
        if queries.candidates is None:
            return index.search(asked[part], start, size, queries.own[part])
        given = queries.candidates[part]
        first = index.open(asked[part], given, start).ranked(given.shape[1])[0]
        return index.open(asked[part], first, start)

    def stored_floats(self, width: int) -> float:
        """All coordinates where some candidates may be read that far."""
        return width if self.setting(width) is None else fitted(self, self.rotation).width

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """The whole query rotated, the scan, and the shortlist's further coordinates."""
        setting, count, whole = self.setting(width), documents_of(hits), fitted(self, self.rotation).width
        if setting is None:
            return super().multiply_adds(width, hits)
        return self.query_cost(whole) + count * setting[0] + min(SHORTLIST, count) * (hits.mean_width - setting[0])

    def _curve(self, stage: Stage, whole: Rows, judged: Judged | None) -> Curve:
        """Every knob tried on the dev queries; `whole` is their ranking at full width."""
        points = []
        for knob in self.KNOBS:
            hits = self.read(stage, knob, DEPTH)
            error = hits.widths.std() / np.sqrt(max(1, len(hits)))
            points.append((hits.mean_width, error, kept(hits.rows, whole, judged, DEPTH)))
        return Curve(DEPTH, np.array(self.KNOBS), *np.array(points).T)
