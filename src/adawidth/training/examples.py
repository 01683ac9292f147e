"""What a router learns from: for each query, the features at the start width and the nDCG@10 that every width would have had.

All of it is computed on the shortlist that the start width finds, so that a width is credited only for its reranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..data import Judged, Queries
from ..errors import OptionError
from ..metrics import evaluate
from ..policies.router import all_features
from ..rotation import QueryMap, Rotation
from ..stages import Decision, RowBackend
from ..stages.loop import BATCH, SHORTLIST
from ..types import F32, F64, Mask, Rows
from .corpus import Scanned, pieces
from .ranking import DEPTH, NDCG

START = 64
ROUTER_WIDTHS = (START, 80, 96, 112, 128, 160, 192, 256)  # and the encoder width
DEEPEST = 200  # candidates whose scores tell the noise


@dataclass(frozen=True, eq=False)
class Examples:
    """Queries as a router sees them, with the value of each width."""

    features: F64  # (Q, len(EXTENDED) + start), see policies.router.all_features
    values: F64  # (Q, W) nDCG@10 at each width; without labels the share of the widest's top 10
    tops: Rows  # (Q, W, 10) the top 10 at each width
    widths: tuple[int, ...]  # ascending, the start width first
    noise: float  # spread of what the coordinates beyond the start width add to a score
    labelled: bool

    def __len__(self) -> int:
        return len(self.features)

    @property
    def start(self) -> int:
        """The width at which the features were taken."""
        return self.widths[0]

    def at(self, width: int) -> F64:
        """The value of this width, query by query. (Q,)"""
        return np.asarray(self.values[:, self.place(width)])

    def changed(self, narrow: int, wide: int) -> F64:
        """Share of the top 10 that changes from one width to another. (Q,)"""
        return 1.0 - overlap(self.tops[:, self.place(narrow)], self.tops[:, self.place(wide)])

    def select(self, queries: ArrayLike) -> Self:
        """These queries alone."""
        picked = np.asarray(queries, np.int64)
        return replace(self, features=self.features[picked], values=self.values[picked], tops=self.tops[picked])

    def within(self, widths: Sequence[int]) -> Self:
        """The same with these of its widths alone."""
        kept = tuple(m for m in self.widths if m in widths)
        places = [self.place(m) for m in kept]
        return replace(self, values=self.values[:, places], tops=self.tops[:, places], widths=kept)

    def place(self, width: int) -> int:
        """The column of a width."""
        if width not in self.widths:
            raise OptionError(f"width {width} is not among the widths of these examples, {', '.join(map(str, self.widths))}")
        return self.widths.index(width)


def examples(
    index: RowBackend | Scanned,
    queries: F32,
    judged: Judged | None,
    *,
    start: int = START,
    widths: Sequence[int] = ROUTER_WIDTHS,
    own: Rows | None = None,
    shortlist: int = SHORTLIST,
    noise: float | None = None,
) -> Examples:
    """Examples of rotated queries. Widths beyond the index are left out, its own width always stands at the end.

    `noise` is measured on these queries unless given: examples to choose on or to test with take that of the train examples.
    """
    if not 1 <= start <= index.width:
        raise OptionError(f"start width {start} is not between 1 and the encoder width {index.width}")
    ladder = (start, *sorted({m for m in widths if start < m < index.width} | ({index.width} - {start})))
    shortlist, parts = min(shortlist, len(index)), []
    noise = _noise(index, queries[:BATCH], start, shortlist, None if own is None else own[:BATCH]) if noise is None else noise
    for piece in pieces(index, queries, start, shortlist, own):
        first = stage = piece.stage
        tops = [piece.ranked(first, DEPTH)]
        for width in ladder[1:]:
            stage = stage.backend.rescore(stage, Decision(stage.alive, np.full(len(stage), width, np.int64)))
            tops.append(piece.ranked(stage, DEPTH))
        parts.append((all_features(first, noise, start), np.stack(tops, axis=1)))
    features, ranked = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if judged is None:
        values = [overlap(ranked[:, place], ranked[:, -1]) for place in range(len(ladder))]
    else:
        values = [evaluate([NDCG], ranked[:, place], judged)[str(NDCG)] for place in range(len(ladder))]
    return Examples(features, np.stack(values, axis=1), ranked, ladder, noise, judged is not None)


def examples_of(queries: Queries, index: RowBackend | Scanned, mapping: Rotation | QueryMap, *, noise: float | None = None) -> Examples:
    """Examples of queries under a rotation or a query map, from the width at which routers start."""
    mapped, start = mapping.apply(queries.vectors.all()), min(START, mapping.width)
    return examples(index, mapped, queries.judged, own=queries.own, start=start, noise=noise)


def overlap(a: Rows, b: Rows) -> F64:
    """Share of the documents of a that are in b. (Q, k), (Q, k) -> (Q,)"""
    shared = (a[:, :, None] == b[:, None, :]).any(axis=2) & (a >= 0)
    return np.asarray(shared.sum(axis=1) / np.maximum((a >= 0).sum(axis=1), 1))


def _noise(index: RowBackend | Scanned, queries: F32, start: int, shortlist: int, own: Rows | None) -> float:
    """Spread of what the coordinates beyond the start width add to a score."""
    parts = []
    for piece in pieces(index, queries, start, shortlist, own):
        narrow = piece.stage
        wide = narrow.backend.rescore(narrow, Decision(narrow.alive, np.full(len(narrow), index.width, np.int64)))
        parts.append([x[:, :DEEPEST] for x in (narrow.alive, narrow.scores, wide.scores)])
    return residual(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def residual(found: Mask, narrow: F32, wide: F32) -> float:
    """Spread, in units of the narrow scores, of what the wide ones hold beyond them: within each query, over its candidates. (Q, C)"""
    s, f = (np.where(found, scores, 0.0).astype(np.float64) for scores in (narrow, wide))
    counts = np.maximum(found.sum(axis=1, keepdims=True), 1)
    s, f = (np.where(found, x - x.sum(axis=1, keepdims=True) / counts, 0.0) for x in (s, f))
    energy = float((s * s).sum())
    slope = float((s * f).sum()) / energy if energy > 0 else 1.0
    if slope <= 0:
        return 0.0
    return float(np.sqrt(((f - slope * s) ** 2).sum() / max(int(found.sum()), 1))) / slope
