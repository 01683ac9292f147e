"""All documents under a rotation, as mining, choices and thresholds see them: in memory where they fit, else by scans of their file.

A scan reads the documents block by block and keeps the best of each query, so that memory does not grow with their number.
What policies do with candidates is worked out for a few queries at a time, on those queries' candidates alone: every
score is the one that the whole corpus would give. Equal scores are ordered by row in a scan, by id in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..data import Vectors
from ..kernels.topk import top_k
from ..rotation import Rotation
from ..stages import MemoryBackend, RowBackend, Stage
from ..stages.loop import BATCH
from ..types import F32, Rows

FLOATS = 40_000_000  # numbers held of the documents: 160 MB
SCORES = 16_000_000  # at most this many scores are held at a time, at each width
BLOCK = 4_096  # rows read at a time, at most
PIECE = 20_000_000  # numbers of the candidates that a few queries are worked out on


@dataclass(frozen=True, eq=False)
class Scanned:
    """Documents in a file, under a rotation."""

    source: Vectors
    rotation: Rotation

    def __len__(self) -> int:
        return len(self.source)

    @property
    def width(self) -> int:
        """The encoder width D."""
        return self.source.width

    @cached_property
    def centre(self) -> F32:
        """Mean of all documents, rotated. (D,)"""
        total = np.zeros(self.width)
        for _, block in self.source.blocks(BLOCK):
            total += block.sum(axis=0, dtype=np.float64)
        return np.asarray(self.rotation.apply((total / len(self))[None])[0])

    def vectors(self, rows: Rows) -> F32:
        """The documents in these rows, rotated. (n, D)"""
        return self.rotation.apply(self.source.read(rows))

    def rankings(self, queries: F32, widths: Sequence[int], k: int, own: Rows | None = None) -> dict[int, Rows]:
        """The k best of all documents for rotated queries at each width, by one scan; -1 where there are fewer. (Q, k) each"""
        widths = sorted(set(widths))
        k = min(k, len(self))
        rows = {m: np.full((len(queries), k), -1, np.int64) for m in widths}
        best = {m: np.full((len(queries), k), -np.inf, np.float32) for m in widths}
        for start, block in self.source.blocks(max(1, min(BLOCK, SCORES // max(len(queries), 1)))):
            turned = block if self.rotation.kind == "identity" else self.rotation.apply(block, widths[-1])
            sums, energy, low = np.zeros((len(queries), len(block)), np.float32), np.zeros(len(block), np.float32), 0
            for m in widths:
                sums += queries[:, low:m] @ turned[:, low:m].T
                energy += np.square(turned[:, low:m]).sum(axis=1)
                scores = np.asarray(sums / np.sqrt(np.maximum(energy, np.float32(1e-24))), np.float32)
                _leave_out(scores, own, start)
                _merge(best[m], rows[m], scores, start)
                low = m
        return rows


class Piece(NamedTuple):
    """Some of the queries, opened at a width; `rows` are the corpus rows of the stage's documents, all of them if none."""

    part: slice
    stage: Stage
    rows: Rows | None

    def ranked(self, stage: Stage, k: int) -> Rows:
        """The k best of a later stage of these queries, as rows of the corpus. (q, k)"""
        found = stage.ranked(k)[0]
        return found if self.rows is None else np.where(found < 0, -1, self.rows[found])


def corpus_of(documents: Vectors, rotation: Rotation) -> MemoryBackend | Scanned:
    """Documents under a rotation: in memory where they fit, else in their file."""
    return MemoryBackend(documents, rotation) if fits(documents) else Scanned(documents, rotation)


def fits(documents: Vectors) -> bool:
    """Whether all documents are held in memory."""
    return len(documents) <= room(documents.width)


def room(width: int) -> int:
    """How many documents of this width are held in memory."""
    return max(1, FLOATS // width)


def rankings(index: RowBackend | Scanned, queries: F32, widths: Sequence[int], k: int, own: Rows | None = None) -> dict[int, Rows]:
    """The k best of all documents for rotated queries at each width. (Q, k) each"""
    if isinstance(index, Scanned):
        return index.rankings(queries, widths, k, own)
    return {m: index.search(queries, m, k, own).candidates for m in sorted(set(widths))}


def pieces(index: RowBackend | Scanned, queries: F32, width: int, k: int, own: Rows | None = None) -> Iterator[Piece]:
    """All queries, a few at a time, with their k best of all documents at this width."""
    if not isinstance(index, Scanned):
        for start in range(0, max(len(queries), 1), BATCH):
            part = slice(start, start + BATCH)
            yield Piece(part, index.search(queries[part], width, k, None if own is None else own[part]), None)
        return
    found = index.rankings(queries, [width], k, own)[width]
    step = max(1, PIECE // (max(1, found.shape[1]) * index.width))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        rows = np.unique(found[part][found[part] >= 0])
        held = MemoryBackend(Vectors(index.source.read(rows), [index.source.ids[row] for row in rows.tolist()]), index.rotation)
        held.centre = index.centre
        places = np.where(found[part] < 0, -1, np.searchsorted(rows, found[part]))
        yield Piece(part, held.open(queries[part], places, width), rows)


def _leave_out(scores: F32, own: Rows | None, start: int) -> None:
    """Every query's own document, where it is in this block."""
    if own is not None:
        here = np.flatnonzero((own >= start) & (own < start + scores.shape[1]))
        scores[here, own[here] - start] = -np.inf


def _merge(best: F32, rows: Rows, scores: F32, start: int) -> None:
    """Takes what a block has into the best so far, in place."""
    k = best.shape[1]
    both = np.concatenate([best, scores], axis=1)
    taken = top_k(both, np.arange(both.shape[1]), k)
    best[:] = np.take_along_axis(both, taken, axis=1)
    rows[:] = np.where(taken < k, np.take_along_axis(rows, np.minimum(taken, k - 1), axis=1), start + taken - k)
    rows[best == -np.inf] = -1
