"""ConAE (Liu et al. 2022): linear encoders of queries and documents that keep the frozen scores, and a decoder that keeps them telling.

    kl       KL(softmax(G / θ) ‖ softmax(S_m / θ))                          G the frozen scores, S_m the prefix cosines
    decoder  1 − tanh⟨P q̂[:m], d⁺⟩ + tanh⟨P q̂[:m], d⁻⟩, and so for d̂     P one decoder for both, for training alone

Losses and their weights are the authors', who learn one encoder per width; here every prefix of one learns at once, from PCA.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..data import Learning, unit
from ..rotation import QueryMap, Rotation
from ..training.fused import prefix_objective
from ..training.losses import THETA
from ..training.pool import sample
from ..types import F32, Floats
from .base import Encoding, Role, fitted
from .descent import Batch, Course, Ground, learned

DECODER = 0.1  # weight of each of the decoder's losses; KL has 1


class ConAE(Encoding):
    """One matrix and bias for queries, another for documents."""

    maps: dict[Role, QueryMap] | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns both encoders; returns itself."""
        start = Rotation.pca(learning.documents, seed=seed)
        self.maps = learned(sample(learning, seed), partial(_maps, start=start, seed=seed))
        return self

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading coordinates of the encoded rows."""
        return unit(fitted(self, self.maps)[role].apply(x, width))

    def query_cost(self, width: int) -> float:
        """The leading rows of the matrix."""
        return fitted(self, self.maps)["query"].width * width

    @property
    def parameters(self) -> int:
        """Both encoders; the decoder is left out."""
        return sum(one.width * (one.width + 1) for one in fitted(self, self.maps).values())


def _maps(ground: Ground, course: Course, start: Rotation, seed: int) -> dict[Role, QueryMap]:
    """Both encoders."""
    rng, axes, nothing = np.random.default_rng(seed), torch.from_numpy(start.matrix), torch.zeros(start.width)
    weights = [w.clone().requires_grad_(True) for w in (axes, nothing, axes, nothing, axes.T, nothing)]

    def found(first: int) -> QueryMap:
        matrix, bias = (w.detach().numpy().copy() for w in weights[first : first + 2])
        return QueryMap(matrix, bias, start.fingerprint)

    def evaluate() -> float:
        return ground.evaluate(found(2).apply, asked=found(0).apply)

    course.descend(weights, partial(_loss, weights, ground.widths, rng), evaluate, ground.batches(rng), steps=ground.steps)
    return {"query": found(0), "document": found(2)}


def _loss(weights: Sequence[Tensor], widths: tuple[int, ...], rng: np.random.Generator, batch: Batch) -> Tensor:
    """KL over the shared candidates, and the decoder's losses with one relevant and one other candidate a query."""
    q_matrix, q_bias, d_matrix, d_bias, decoder, decoder_bias = weights
    q, d = batch.queries @ q_matrix.T + q_bias, batch.documents @ d_matrix.T + d_bias
    teacher = torch.softmax(batch.queries @ batch.documents.T / THETA, dim=1)
    kept = prefix_objective(q, d, batch.relevant, teacher, widths, rank=0.0, kl=1.0, theta=THETA)
    chance = torch.from_numpy(rng.random(batch.relevant.shape, np.float32)) + 1e-6
    told = torch.zeros(())
    for sign, wanted in ((1, batch.relevant), (-1, 1 - batch.relevant)):
        picked = (chance * wanted).argmax(dim=1)
        for encoded, raw in ((q, batch.documents[picked]), (d[picked], batch.queries)):
            told = told - sign * torch.tanh((prefix_decoded(encoded, decoder, decoder_bias, widths) * raw).sum(dim=-1)).mean()
    return kept + DECODER * told


def prefix_decoded(encoded: Tensor, matrix: Tensor, bias: Tensor, widths: Sequence[int]) -> Tensor:
    """What the decoder makes of each prefix, sums going on from width to width. (B, D), (D, D), (D,) -> (W, B, D)"""
    decoded, low = [bias.expand(len(encoded), -1)], 0
    for m in widths:
        decoded.append(decoded[-1] + encoded[:, low:m] @ matrix[:, low:m].T)
        low = m
    return torch.stack(decoded[1:])
