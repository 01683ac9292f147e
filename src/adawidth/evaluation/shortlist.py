"""Shortlist protocols: candidates are mined once, at 64 coordinates, and every method ranks those alone. The paper's has them from the
frozen encoder. No ranking finds what the shortlist lacks, so results also give its recall and the best figures that it allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from .. import metrics
from ..data import Judged, Queries, Vectors
from ..errors import OptionError
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..stages.loop import SHORTLIST
from ..types import F32, Rows

Protocol = Literal["exhaustive", "own-shortlist", "frozen-shortlist"]
Shared = Literal["exhaustive", "frozen-shortlist"]  # the protocols in which all methods have the same candidates

EXHAUSTIVE, OWN, FROZEN = get_args(Protocol)
MINED_AT = 64  # coordinates


def check_protocol(name: str, known: Sequence[str] = (EXHAUSTIVE, FROZEN)) -> None:
    """Refuses an unknown protocol."""
    if name not in known:
        raise OptionError(f"there is no protocol {name!r}; there are {', '.join(known)}")


def mined_at(width: int) -> int:
    """Coordinates at which the candidates for an encoder of this width are found."""
    return min(MINED_AT, width)


def mine(index: MemoryBackend, queries: F32, own: Rows, size: int = SHORTLIST) -> Rows:
    """The candidates that the first 64 coordinates of rotated queries find. (Q, C)"""
    return index.search(queries, mined_at(index.width), size, own).candidates


def under(protocol: str, documents: Vectors, queries: Queries) -> Queries:
    """The queries as a protocol has them answered: with all documents, or with the candidates that the frozen encoder finds."""
    check_protocol(protocol)
    if protocol == EXHAUSTIVE:
        return queries
    index = MemoryBackend(documents, Rotation.identity(documents.width))
    return replace(queries, candidates=mine(index, queries.vectors.all(), queries.own))


def limits(candidates: Rows, width: int, judged: Judged, measures: Sequence[metrics.Measure]) -> dict[str, Any]:
    """How much of what is relevant a shortlist holds, and each measure of its best order. `width` is the encoder's."""
    recall = metrics.Measure("R", candidates.shape[1])
    best = metrics.measured(measures, best_order(candidates, judged), judged)
    return {
        "candidates": candidates.shape[1],
        "mined_at": mined_at(width),
        str(recall): float(metrics.evaluate([recall], candidates, judged)[str(recall)].mean()),
        "at_best": {measure: float(values.mean()) for measure, values in best.items()},
    }


def best_order(candidates: Rows, judged: Judged) -> Rows:
    """Each query's candidates, those of the highest grade first. (Q, C)"""
    ordered = np.empty_like(candidates)
    for query, rows in enumerate(candidates):
        part = slice(judged.offsets[query], judged.offsets[query + 1])
        grade = dict(zip(judged.documents[part].tolist(), judged.grades[part].tolist(), strict=True))
        ordered[query] = rows[np.argsort([-grade.get(row, 0.0) if row >= 0 else np.inf for row in rows.tolist()], kind="stable")]
    return ordered
