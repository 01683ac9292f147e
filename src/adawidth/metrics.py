"""The quality of a ranking, query by query: nDCG, recall, reciprocal rank, average precision, precision and success, equal to trec_eval's.

Gains are linear and discounted by log2(rank + 1); the ideal ranking is that of all judged documents; unjudged documents and
negative grades count 0, and so does a query without results or without relevant documents. Relevant is a grade above 0:
trec_eval, which only takes whole grades, says 1 and above. Averages are taken over all queries, answered or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from .data import Judged
from .errors import OptionError
from .types import F64, I64, Array, Floats, Rows

PerQuery = F64  # (Q,)
Gains = F64  # (Q, K) grade of each ranked document, at least 0


@dataclass(frozen=True, order=True)
class Measure:
    """A measure and the rank it is cut at: `Measure("nDCG", 10)`, written nDCG@10."""

    name: str
    k: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "nDCG@10"; upper and lower case are the same."""
        match = re.fullmatch(r"([a-z]+)@([1-9]\d*)", text.strip(), re.IGNORECASE)
        name = _BY_LOWER_CASE.get(match[1].lower()) if match else None
        if match is None or name is None:
            known = ", ".join(f"{name}@k" for name in _MEASURES)
            raise OptionError(f"there is no measure {text.strip()!r}; there are {known}, as in nDCG@10")
        return cls(name, int(match[2]))

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"


def parse_measures(text: str) -> tuple[Measure, ...]:
    """Measures with spaces or commas between them, each once: "nDCG@10 R@100"; MAP@10 is AP@10, MRR@10 is RR@10."""
    return tuple(dict.fromkeys(_named(part) for part in re.split(r"[\s,]+", text.strip(" ,"))))


def _named(text: str) -> Measure:
    """A measure by any of its names, upper and lower case alike."""
    match = re.fullmatch(r"([a-z]+)@([1-9]\d*)", text, re.IGNORECASE)
    name = NAMES.get(match[1].lower()) if match else None
    if match is None or name is None:
        known = ", ".join(f"{name}@k" for name in dict.fromkeys(NAMES.values()))
        raise OptionError(f"there is no measure {text!r}; there are {known}, as in nDCG@10; MAP@k and MRR@k are AP@k and RR@k")
    return Measure(name, int(match[2]))


def measured(measures: Sequence[Measure], rows: Rows, judged: Judged) -> dict[str, PerQuery]:
    """The same as `evaluate`, for every measure that has a name: P@k and Success@k too, which follow from R@k and RR@k."""
    base = list(dict.fromkeys(Measure(_FROM.get(measure.name, measure.name), measure.k) for measure in measures))
    found = evaluate(base, rows, judged)
    return {str(measure): _derived(measure, found, judged) for measure in measures}


def _derived(measure: Measure, found: Mapping[str, PerQuery], judged: Judged) -> PerQuery:
    match measure.name:
        case "P":
            return np.rint(found[f"R@{measure.k}"] * _relevant(judged)) / measure.k  # a whole number of documents
        case "Success":
            return (found[f"RR@{measure.k}"] > 0).astype(np.float64)
        case _:
            return found[str(measure)]


def evaluate(measures: Sequence[Measure], rows: Rows, judged: Judged) -> dict[str, PerQuery]:
    """Each measure of every query. `rows` (Q, K) are ranked documents, each once, -1 where there are fewer.

    They must reach as deep as the deepest measure, or hold every document.
    """
    if len(rows) != len(judged):
        raise OptionError(f"{len(rows)} rankings but judgements for {len(judged)} queries: give one ranking per query")
    gains = _gains(rows, judged)
    return {str(measure): _MEASURES[measure.name](gains[:, : measure.k], judged, measure.k) for measure in measures}


def tied_at_cut(scores: Floats, k: int) -> float:
    """Share of queries whose k-th and next score are equal as 32-bit floats, so that ids decide. (Q, K), best first"""
    if scores.shape[1] <= k or not len(scores):
        return 0.0
    last, following = np.asarray(scores[:, k - 1], np.float32), np.asarray(scores[:, k], np.float32)
    return float(np.mean((last == following) & np.isfinite(last)))


def _gains(rows: Rows, judged: Judged) -> Gains:
    """Looks every ranked document up among its query's judgements."""
    if not judged.documents.size or not rows.size:
        return np.zeros(rows.shape)
    span = 1 + max(int(rows.max()), int(judged.documents.max()))
    keys = _query_of(judged) * span + judged.documents
    order = np.argsort(keys)
    wanted = np.arange(len(rows))[:, None] * span + rows  # (Q, K)
    place = np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)
    found = (keys[order[place]] == wanted) & (rows >= 0)
    return np.where(found, np.maximum(judged.grades[order[place]], 0.0), 0.0)


def _query_of(judged: Judged) -> I64:
    """The query of each judgement."""
    return np.repeat(np.arange(len(judged)), np.diff(judged.offsets))


def _relevant(judged: Judged) -> PerQuery:
    """Number of relevant documents of each query."""
    return np.bincount(_query_of(judged)[judged.grades > 0], minlength=len(judged)).astype(np.float64)


def _ndcg(gains: Gains, judged: Judged, k: int) -> PerQuery:
    queries = _query_of(judged)
    order = np.lexsort((-judged.grades, queries))  # each query's best grades first; queries stay in their places
    rank = np.arange(len(queries)) - judged.offsets[queries]
    best = np.where(rank < k, np.maximum(judged.grades[order], 0.0), 0.0)
    ideal = np.bincount(queries, best / np.log2(rank + 2), len(judged)).astype(np.float64)
    return _ratio((gains / np.log2(np.arange(gains.shape[1]) + 2)).sum(axis=1), ideal)


def _recall(gains: Gains, judged: Judged, k: int) -> PerQuery:
    return _ratio((gains > 0).sum(axis=1), _relevant(judged))


def _reciprocal_rank(gains: Gains, judged: Judged, k: int) -> PerQuery:
    return np.asarray(((gains > 0) / np.arange(1, gains.shape[1] + 1)).max(axis=1, initial=0.0))


def _average_precision(gains: Gains, judged: Judged, k: int) -> PerQuery:
    hits = gains > 0
    precision = np.cumsum(hits, axis=1) / np.arange(1, gains.shape[1] + 1)
    return _ratio((precision * hits).sum(axis=1), _relevant(judged))


def _ratio(parts: Array, whole: PerQuery) -> PerQuery:
    """parts / whole, 0 where the whole is 0."""
    return np.asarray(parts / np.where(whole > 0, whole, np.inf))


_MEASURES: Mapping[str, Callable[[Gains, Judged, int], PerQuery]] = {  # gains are cut at k already
    "nDCG": _ndcg,
    "R": _recall,
    "RR": _reciprocal_rank,
    "AP": _average_precision,
}
_BY_LOWER_CASE = {name.lower(): name for name in _MEASURES}
_FROM = {"P": "R", "Success": "RR"}  # what a measure follows from
NAMES = {
    **_BY_LOWER_CASE,
    **{"p": "P", "success": "Success"},
    **{"map": "AP", "mrr": "RR", "recall": "R", "precision": "P"},
}  # of a measure in lower case -> as results have it
