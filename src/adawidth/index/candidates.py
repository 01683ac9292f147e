"""Candidates: how those of several segments or threads are joined, and answers from more of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels.rescore import Found
from ..kernels.topk import top_k
from ..types import F32, Mask, Rows

if TYPE_CHECKING:
    from .codes.base import Codes


Near = tuple[int, float]  # leaves out rows that score less than the so-manieth best by more than this, as cosines
ANY: Near = (1, math.inf)  # leaves out none


class Part(NamedTuple):
    """Some of the documents, as one thread searches them."""

    codes: Codes
    first: int  # row
    held: int  # documents that may be found
    allowed: Mask | None
    gap: float  # of the segment


def best_of(candidates: Rows, scores: F32, k: int) -> Rows:
    """The k best candidates of each query. (Q, C), (Q, C) -> (Q, k)"""
    return np.take_along_axis(candidates, top_k(scores, np.arange(candidates.shape[1]), k), axis=1)


def without(candidates: Rows, others: Rows) -> Rows:
    """The candidates that are not among others, -1 in place of those that are. (Q, C), (Q, C')"""
    return np.stack([np.where(np.isin(some, those), -1, some) for some, those in zip(candidates, others, strict=True)])


def continued(found: Found, rest: Found) -> Found:
    """Answers, continued where they are short by those from further candidates."""
    place = np.arange(found.rows.shape[1]) - np.minimum(found.counts, found.rows.shape[1])[:, None]
    rows, scores = (
        np.where(place < 0, first, np.take_along_axis(then, np.maximum(place, 0), axis=1))
        for first, then in ((found.rows, rest.rows), (found.scores, rest.scores))
    )
    coordinates, counts = found.coordinates + rest.coordinates, found.counts + rest.counts
    return Found(rows, scores, coordinates, coordinates / np.maximum(counts, 1), counts)
