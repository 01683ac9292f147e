"""How documents and queries look under a model: recorded when it is fitted, so that others can be compared with them later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..data import Vectors
from ..errors import ArtifactError
from ..stages.loop import SHORTLIST, run
from ..types import F32, F64, Rows

if TYPE_CHECKING:
    from .adawidth import AdaWidth

DOCUMENTS = 4_000  # looked at
QUERIES = 400  # looked at; documents stand in where there are none
K = 10
SHARES = np.linspace(0, 1, 21)  # of the queries, below each recorded score


@dataclass(frozen=True, eq=False)
class Look:
    """What was seen: one value per document or query that was looked at."""

    documents: int  # of the corpus
    stand_ins: bool  # whether documents stood in for queries
    width: int  # of the prefix whose energy was taken
    target: int  # width that the default search reads to
    document_energy: F64  # share of the squared length in the prefix
    query_energy: F64
    scores: F64  # of the best document at full width
    kept: F64  # share of the target width's top 10 that the default search finds
    kept_of_full: F64  # the same of the full width's
    widths: F64  # mean width of each query
    signals: F64  # of the router; none if there is no router

    def profile(self) -> dict[str, Any]:
        """What a model's record keeps of it."""
        return {
            "documents": self.documents,
            "queries": len(self.kept),
            "stand_ins": self.stand_ins,
            "width": self.width,
            **{name: _rounded(getattr(self, name).mean()) for name in MEANS},
            "scores": [_rounded(score) for score in np.quantile(self.scores, SHARES)],
        }


MEANS = ("document_energy", "query_energy", "kept", "kept_of_full", "widths")


@dataclass(frozen=True)
class Profile:
    """What a model's record has of the documents and queries that it was fitted on; all numbers are means."""

    documents: int
    queries: int
    stand_ins: bool
    width: int
    document_energy: float
    query_energy: float
    kept: float
    kept_of_full: float
    widths: float
    scores: tuple[float, ...]

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self | None:
        """From a record; None where it has none, as models before 0.2 have not."""
        if not stored:
            return None
        try:
            counts = {name: int(stored[name]) for name in ("documents", "queries", "width")}
            means: dict[str, Any] = {name: float(stored[name]) for name in MEANS}
            scores = tuple(float(score) for score in stored["scores"])
            sound = len(scores) == len(SHARES) and bool(np.isfinite([*means.values(), *scores]).all()) and min(counts.values()) > 0
        except (KeyError, TypeError, ValueError, OverflowError):
            sound = False
        if not sound or not isinstance(stored["stand_ins"], bool):
            raise ArtifactError(f"the model's record has a profile that can't be: {str(stored)[:80]}: fit the model again")
        return cls(**counts, **means, scores=scores, stand_ins=stored["stand_ins"])


def look(model: AdaWidth, documents: Vectors, queries: Vectors | None = None, own: Rows | None = None, seed: int = 0) -> Look:
    """Looks at some documents and queries as a search with the model's defaults sees them. `own` is a row that a query must not find."""
    from ..training.corpus import corpus_of, pieces, rankings
    from ..training.taper import documents_as_queries

    rng = np.random.default_rng(seed)
    index, width = corpus_of(documents, model.rotation), prefix(model.width)
    if queries is None or not len(queries):
        standing = documents_as_queries(index, QUERIES, seed)
        asked, own = standing.rows, standing.own
    else:
        picked = np.sort(rng.permutation(len(queries))[:QUERIES])
        asked, own = model.rotation.apply(queries.read(picked)), None if own is None else own[picked]
    policy = model.policies.choose(k=K)
    ranked = rankings(index, asked, [policy.reach, model.width], min(K, len(index)), own)
    found, spent, signals = [], [], []
    for piece in pieces(index, asked, policy.start, min(SHORTLIST, len(index)), own):
        done = run(piece.stage, policy)
        found.append(piece.ranked(done, K))
        spent.append(done.mean_widths)
    router = model.policies.router
    if router is not None and router.heads:
        signals = [router.signal(piece.stage) for piece in pieces(index, asked, router.start, min(SHORTLIST, len(index)), own)]
    rows = np.sort(rng.permutation(len(documents))[:DOCUMENTS])
    best = index.vectors(np.maximum(ranked[model.width][:, 0], 0))
    return Look(
        documents=len(documents),
        stand_ins=queries is None or not len(queries),
        width=width,
        target=policy.reach,
        document_energy=energy(index.vectors(rows), width),
        query_energy=energy(asked, width),
        scores=np.einsum("ij,ij->i", asked, best, dtype=np.float64),
        kept=overlap(np.concatenate(found), ranked[policy.reach]),
        kept_of_full=overlap(np.concatenate(found), ranked[model.width]),
        widths=np.concatenate(spent).astype(np.float64),
        signals=np.concatenate(signals) if signals else np.empty(0),
    )


def prefix(width: int) -> int:
    """The width of the prefix whose energy is looked at."""
    return min(64, max(1, width // 4))


def energy(rows: F32, width: int) -> F64:
    """The share of each row's squared length that lies in its first coordinates. (n, D) -> (n,)"""
    squares = np.square(rows, dtype=np.float64)
    return np.asarray(squares[:, :width].sum(axis=1) / np.maximum(squares.sum(axis=1), 1e-24))


def overlap(found: Rows, reference: Rows) -> F64:
    """The share of each query's reference documents that are found. (Q, k), (Q, k) -> (Q,)"""
    wanted = reference >= 0
    held = (reference[:, :, None] == found[:, None, :]).any(axis=2) & wanted
    return np.asarray(held.sum(axis=1) / np.maximum(wanted.sum(axis=1), 1))


def _rounded(value: float) -> float:
    return round(float(value), 6)
