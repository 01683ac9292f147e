"""What a router learns from: for each query, the features at the start width and what every width would have been worth.

All of it is computed on the shortlist that the start width finds, so that a width is credited only for its reranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..data import Judged
from ..errors import OptionError
from ..metrics import Measure, evaluate
from ..policies.router import all_features
from ..stages import Backend, Decision, Stage
from ..stages.loop import BATCH, SHORTLIST
from ..types import F32, F64, Rows

K = 10
NDCG = Measure("nDCG", K)
WIDTHS = (64, 80, 96, 112, 128, 160, 192, 256)  # and the encoder width
DEEPEST = 200  # candidates whose scores tell the noise


@dataclass(frozen=True, eq=False)
class Examples:
    """Queries as a router sees them, with the worth of each width."""

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
        """What this width is worth, query by query. (Q,)"""
        return np.asarray(self.values[:, self.place(width)])

    def changed(self, narrow: int, wide: int) -> F64:
        """Share of the top 10 that changes from one width to another. (Q,)"""
        return 1.0 - overlap(self.tops[:, self.place(narrow)], self.tops[:, self.place(wide)])

    def select(self, queries: ArrayLike) -> Self:
        """These queries alone."""
        picked = np.asarray(queries, np.int64)
        return replace(self, features=self.features[picked], values=self.values[picked], tops=self.tops[picked])

    def place(self, width: int) -> int:
        """The column of a width."""
        if width not in self.widths:
            raise OptionError(f"width {width} is not among the widths of these examples, {', '.join(map(str, self.widths))}")
        return self.widths.index(width)


def examples(
    index: Backend,
    queries: F32,
    judged: Judged | None,
    *,
    start: int = 64,
    widths: Sequence[int] = WIDTHS,
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
    parts = []
    for begin in range(0, max(len(queries), 1), BATCH):
        part = slice(begin, begin + BATCH)
        first = index.search(queries[part], start, min(shortlist, len(index)), None if own is None else own[part])
        tops, stage = [first.ranked(K)[0]], first
        for width in ladder[1:]:
            stage = index.rescore(stage, Decision(stage.alive, np.full(len(stage), width, np.int64)))
            tops.append(stage.ranked(K)[0])
        noise = residual(first, stage) if noise is None else noise  # the first batch tells it
        parts.append((all_features(first, noise, start), np.stack(tops, axis=1)))
    features, ranked = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if judged is None:
        values = [overlap(ranked[:, place], ranked[:, -1]) for place in range(len(ladder))]
    else:
        values = [evaluate([NDCG], ranked[:, place], judged)[str(NDCG)] for place in range(len(ladder))]
    return Examples(features, np.stack(values, axis=1), ranked, ladder, noise or 0.0, judged is not None)


def overlap(a: Rows, b: Rows) -> F64:
    """Share of the documents of a that are in b. (Q, k), (Q, k) -> (Q,)"""
    shared = (a[:, :, None] == b[:, None, :]).any(axis=2) & (a >= 0)
    return np.asarray(shared.sum(axis=1) / np.maximum((a >= 0).sum(axis=1), 1))


def residual(narrow: Stage, wide: Stage) -> float:
    """Spread, in units of the narrow scores, of what the wide scores hold beyond them: within each query, over its best candidates."""
    found = narrow.alive[:, :DEEPEST]
    s, f = (np.where(found, stage.scores[:, :DEEPEST], 0.0).astype(np.float64) for stage in (narrow, wide))
    counts = np.maximum(found.sum(axis=1, keepdims=True), 1)
    s, f = (np.where(found, x - x.sum(axis=1, keepdims=True) / counts, 0.0) for x in (s, f))
    energy = float((s * s).sum())
    slope = float((s * f).sum()) / energy if energy > 0 else 1.0
    if slope <= 0:
        return 0.0
    return float(np.sqrt(((f - slope * s) ** 2).sum() / max(int(found.sum()), 1))) / slope
