"""Learning to Select (methods 7): one linear layer predicts from a query which of its coordinates tell relevant documents from others."""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ..data import Learning
from ..hits import Hits
from ..kernels.topk import top_k
from ..stages.memory import SCORES
from ..training.pool import sample
from ..types import F32, Mask
from .base import documents_of, fitted, restricted
from .descent import STEPS, Batch, Course, Ground, learned
from .masked import NEGATIVES, Asked, Importance, Masked

Layer = tuple[F32, F32]  # (D, D), (D,)


class LearningToSelect(Masked):
    """From nothing learned, where it keeps the leading coordinates; the temperature of its target is chosen on dev."""

    layer: Layer | None = None
    TAUS = (0.25, 0.5, 1.0, 2.0)
    DECAY = 1e-4

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns a layer at every temperature and keeps the best on dev; returns itself."""
        dev = Asked.on_dev(learning, seed)

        def layer(ground: Ground, course: Course) -> Layer:
            return course.choose(self.TAUS, partial(self._layer, ground, dev, seed))[1]

        self.layer = learned(sample(learning, seed), layer)
        return super().fit(learning, seed)

    def importance(self, asked: Asked) -> Importance:
        """What the layer makes of the query"""
        return foretold(asked, fitted(self, self.layer))

    def query_cost(self, documents: int) -> float:
        """The layer."""
        return float(fitted(self, self.width) ** 2)

    @property
    def parameters(self) -> int:  # type: ignore[override]
        """The layer's matrix and bias."""
        return sum(weight.size for weight in fitted(self, self.layer))

    def _layer(self, ground: Ground, dev: Asked, seed: int, tau: float, course: Course) -> Layer:
        """At one temperature."""
        width = ground.task.width
        matrix, bias = torch.zeros(width, width, requires_grad=True), torch.zeros(width, requires_grad=True)
        layer = matrix.detach().numpy(), bias.detach().numpy()  # the same memory

        def loss(batch: Batch) -> Tensor:
            shares = functional.log_softmax(batch.queries @ matrix.T + bias, dim=-1)
            return functional.kl_div(shares, target(batch, tau), reduction="batchmean")

        batches, steps = ground.batches(np.random.default_rng(seed)), STEPS // len(self.TAUS)
        course.descend([matrix, bias], loss, lambda: self.score(dev, foretold(dev, layer)), batches, steps=steps, decay=self.DECAY)
        return layer


class RenormalisedLearningToSelect(LearningToSelect):
    """The same with each document brought to length one on the coordinates that the query keeps."""

    def ranked(self, asked: Asked, mask: Mask, k: int) -> Hits:
        """The k best documents for the masked queries, by cosine on what is kept."""
        rows, own = asked.index.rows, asked.queries.own
        (copies, originals), masked, squares = asked.twins, asked.vectors * mask, np.square(rows)
        found = np.empty((len(mask), min(k, len(rows))), np.int64)
        best = np.empty(found.shape, np.float32)
        step = max(1, SCORES // len(rows))
        for start in range(0, len(mask), step):
            part = slice(start, start + step)
            scores = masked[part] @ rows.T
            scores /= np.sqrt(np.maximum(mask[part].astype(np.float32) @ squares.T, np.float32(1e-12)))
            scores[:, copies] = scores[:, originals]
            excluded = np.flatnonzero(own[part] >= 0)
            scores[excluded, own[part][excluded]] = -np.inf
            scores = restricted(scores, None if asked.queries.candidates is None else asked.queries.candidates[part])
            found[part] = top_k(scores, asked.index.documents.tie_rank, k)
            best[part] = np.take_along_axis(scores, found[part], axis=1)
        found[best == -np.inf] = -1
        best /= np.maximum(np.linalg.norm(masked, axis=1, keepdims=True), 1e-12)
        return Hits(found, best, mask.sum(axis=1).astype(np.float64), asked.index.documents)

    def multiply_adds(self, width: int, hits: Hits) -> float:
        """Every document's length on the coordinates that are kept, besides."""
        return super().multiply_adds(width, hits) + documents_of(hits) * hits.mean_width


class OracleLearningToSelect(Masked):
    """An upper bound: the target itself, from the labels of the very queries that it answers."""

    def importance(self, asked: Asked) -> Importance:
        """q ⊙ (mean of the relevant documents − mean of the nearest others)"""
        return asked.contrast()

    def query_cost(self, documents: int) -> float:
        """The pass at full width that finds the nearest others."""
        return float(fitted(self, self.width) * documents)


def foretold(asked: Asked, layer: Layer) -> Importance:
    """What a layer makes of the queries; the softmax over it changes no order."""
    matrix, bias = layer
    return asked.vectors @ matrix.T + bias


def target(batch: Batch, tau: float) -> Tensor:
    """Share of each coordinate in q ⊙ (mean of the relevant documents − mean of the batch's nearest others). (B, D)

    Standardised query by query before the softmax: raw products are about a thousandth and would all weigh the same.
    """
    scores = (batch.queries @ batch.documents.T).masked_fill(batch.relevant > 0, -torch.inf)
    others = scores.topk(min(NEGATIVES, scores.shape[1]))
    weights = others.values.isfinite().float()[..., None]
    refused = (weights * batch.documents[others.indices]).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
    query, document = batch.relevant.nonzero(as_tuple=True)
    relevant = torch.zeros_like(batch.queries).index_add_(0, query, batch.documents[document])
    relevant /= batch.relevant.sum(dim=1, keepdim=True)
    worth = batch.queries * (relevant - refused)
    spread = worth.std(dim=1, keepdim=True).clamp(min=1e-12)
    return torch.softmax((worth - worth.mean(dim=1, keepdim=True)) / (tau * spread), dim=-1)
