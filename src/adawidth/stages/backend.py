"""What holds rotated documents: the verbs search, open and rescore, whether they are in memory or on disk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from ..data import Vectors
from ..hits import Hits
from ..types import F32, I64, Mask, Rows, Widths
from .state import Decision, Stage

if TYPE_CHECKING:
    from ..policies import Policy



class Backend(ABC):
    """Rotated documents. Subclasses know where rows lie and how long their prefixes are."""

    @property
    @abstractmethod
    def documents(self) -> Vectors:
        """The documents' ids, in row order."""

    @property
    @abstractmethod
    def width(self) -> int:
        """The widest that can be read."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the rotation that the documents are under."""

    @property
    @abstractmethod
    def centre(self) -> F32:
        """Mean of all documents. (m,)"""

    @abstractmethod
    def norms(self, width: int) -> F32:
        """Length of every document's prefix. (N,)"""

    @abstractmethod
    def block_norms(self, begin: int, end: int, *, centred: bool = False) -> F32:
        """Length of coordinates `begin` to `end` of every document, or of their difference from the mean of all documents. (N,)"""

    @abstractmethod
    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best of all documents at this width for rotated queries; `own` is a document row each that is never returned."""

    @abstractmethod
    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Of a scan at this width and so many coordinates of candidates. (Q,) -> (Q,)"""

    @abstractmethod
    def _extend(self, queries: F32, candidates: Rows, keep: Mask, begin: Widths, end: Widths, sums: F32) -> None:
        """Adds coordinates begin[q] to end[q] to the partial sums of the kept candidates, in place."""

    def answer(self, queries: F32, policy: Policy, k: int, shortlist: int) -> Hits | None:
        """What the stage loop answers, by compiled code where there is some for the policy; none where there is none."""
        return None

    def open(self, queries: F32, candidates: Rows, width: int) -> Stage:
        """Given candidates, read to this width."""
        sums = np.zeros(candidates.shape, np.float32)
        begin = np.zeros(len(queries), np.int64)
        self._extend(queries, candidates, candidates >= 0, begin, np.full_like(begin, width), sums)
        return self._stage(queries, candidates, sums, width)

    def rescore(self, stage: Stage, decision: Decision) -> Stage:
        """The kept candidates' partial sums extended to the decision's widths."""
        keep, widths = decision.keep & stage.alive, decision.widths
        moving = keep & (widths > stage.widths)[:, None]
        sums, scores = stage.sums.copy(), stage.scores.copy()
        self._extend(stage.queries, stage.candidates, keep, stage.widths, widths, sums)
        for width in np.unique(widths[widths > stage.widths]).tolist():
            here = moving & (widths == width)[:, None]
            scale = self.norms(width)[stage.candidates] * prefix_norms(stage.queries, width)[:, None]
            scores[here] = sums[here] / scale[here]
        return Stage(
            backend=self,
            queries=stage.queries,
            candidates=stage.candidates,
            sums=sums,
            scores=scores,
            alive=keep,
            last=np.where(moving, widths[:, None], stage.last),
            widths=widths,
            coordinates=stage.coordinates + moving.sum(axis=1) * (widths - stage.widths),
        )

    def _stage(self, queries: F32, candidates: Rows, sums: F32, width: int) -> Stage:
        """Candidates that stand at this width; -1 is none."""
        alive = candidates >= 0
        scores = sums / (self.norms(width)[candidates] * prefix_norms(queries, width)[:, None])
        return Stage(
            backend=self,
            queries=queries,
            candidates=candidates,
            sums=sums,
            scores=np.where(alive, scores, -np.inf).astype(np.float32),
            alive=alive,
            last=np.where(alive, width, 0),
            widths=np.full(len(queries), width, np.int64),
            coordinates=alive.sum(axis=1) * width,
        )


def prefix_norms(rows: F32, width: int) -> F32:
    """Length of every row's prefix, never zero. (n, D) -> (n,)"""
    return np.asarray(np.maximum(np.linalg.norm(rows[:, :width], axis=1), 1e-12), np.float32)
