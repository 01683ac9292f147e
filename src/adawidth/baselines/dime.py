"""DIME (methods 8): a coordinate of a query matters as far as it agrees with the documents that the whole query finds."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..data import Learning
from ..types import F64
from .base import fitted
from .masked import Asked, Importance, Masked


class MagnitudeDIME(Masked):
    """Without feedback: the query's own largest coordinates."""

    def importance(self, asked: Asked) -> Importance:
        """|q|"""
        return np.abs(asked.vectors)


class PRFDIME(Masked):
    """Pseudo-relevance feedback. How many documents it takes is chosen on dev; without labels two, as its authors have it."""

    feedback = 2
    CHOICES = (1, 2, 5, 10)

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Chooses how many documents to take; returns itself."""
        if learning.labelled:
            dev = Asked.on_dev(learning, seed)
            self.feedback = max(self.CHOICES, key=lambda count: self.score(dev, agreement(dev, count)))
        return super().fit(learning, seed)

    def importance(self, asked: Asked) -> Importance:
        """q ⊙ mean of its first documents"""
        return agreement(asked, self.feedback)

    def query_cost(self, documents: int) -> float:
        """The first pass at full width, the mean of what it found, and its product with the query."""
        return fitted(self, self.width) * (documents + self.feedback + 1)


class SoftDIME(Masked):
    """The first ten documents, weighed by their scores."""

    FEEDBACK = 10
    TAU = 0.1

    def importance(self, asked: Asked) -> Importance:
        """q ⊙ Σ softmax(⟨q, d⟩ / τ) d"""
        found = asked.index.rows[asked.answers[:, : self.FEEDBACK]]  # (Q, k, D)
        scores = np.einsum("qd,qkd->qk", asked.vectors, found)
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / self.TAU)
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray(asked.vectors * np.einsum("qk,qkd->qd", weights, found))

    def query_cost(self, documents: int) -> float:
        """The first pass at full width, the weighted mean of what it found, and its product with the query."""
        return fitted(self, self.width) * (documents + self.FEEDBACK + 1)


class OracleDIME(Masked):
    """An upper bound that reads the labels of the very queries it answers.

    Where all that is judged is relevant, their correlation says nothing of other documents: then the contrast with the nearest.
    """

    def importance(self, asked: Asked) -> Importance:
        """Correlation of the grade with q ⊙ d over the judged documents"""
        found, judged = asked.contrast(), asked.judged
        for query, (low, high) in enumerate(zip(judged.offsets, judged.offsets[1:], strict=False)):
            grades = judged.grades[low:high]
            if (grades > 0).any() and (grades <= 0).any():
                found[query] = correlation(grades, asked.vectors[query] * asked.index.rows[judged.documents[low:high]])
        return found

    def query_cost(self, documents: int) -> float:
        """The first pass at full width."""
        return float(fitted(self, self.width) * documents)


def agreement(asked: Asked, count: int) -> Importance:
    """q ⊙ mean of the first `count` documents that it finds."""
    return asked.vectors * asked.centroids(asked.answers[:, :count])


def correlation(grades: F64, products: Importance) -> Importance:
    """Pearson's, of the grades with every column; 0 for a column without spread. (n,), (n, D) -> (D,)"""
    centred, moved = grades - grades.mean(), products - products.mean(axis=0)
    spread = np.linalg.norm(centred) * np.linalg.norm(moved, axis=0)
    return np.asarray(centred @ moved / np.where(spread > 0, spread, np.inf), np.float32)
