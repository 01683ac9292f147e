"""Matryoshka-Adaptor (Yoon et al. 2024; methods 5.1): x̂ = x + f(x), trained to keep in every prefix the cosines of whole vectors.

    pair   |cos(x_i, x_j) − cos(x̂_i[:m], x̂_j[:m])|     documents at random
    topk   the same                                        a document and its nearest
    rec    |f(x)|
    rank   ln(1 + exp(s_ik[m] − s_ij[m]))                  j relevant to query i, k not; with labels, in a second stage

Losses and weights (all 1) are the authors', means taken where they print sums; the network is not described by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ..data import Learning
from ..training.pool import sample
from ..training.ranking import nearest
from ..types import F32, Floats, Rows
from .base import Encoding, Role, fitted
from .descent import BATCH, Batch, Course, Ground, learned
from .residual import Network, prefix_scores, rank_loss

NEIGHBOURS = 100
DRAWN = 2  # of a document's neighbours at a step
SEARCHED = 50_000  # documents among which neighbours are found, at most


@dataclass(frozen=True, eq=False)
class Corpus:
    """Documents drawn at random, and for each some of its nearest."""

    documents: Tensor  # (B, D)
    near: Tensor  # (B, n, D)


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Documents, and the nearest of each by whole vectors."""

    documents: Tensor  # (n, D)
    near: Rows  # (n, at most 100)

    @classmethod
    def of(cls, documents: F32, seed: int) -> Neighbourhoods:
        """Of some at random where there are many."""
        some = documents[np.random.default_rng(seed).permutation(len(documents))[:SEARCHED]]
        return cls(torch.from_numpy(some), nearest(some, some, NEIGHBOURS, np.arange(len(some))))

    def draws(self, rng: np.random.Generator) -> Iterator[Corpus]:
        """Without end."""
        while True:
            picked = rng.integers(len(self.documents), size=BATCH)
            near = self.near[picked[:, None], rng.integers(self.near.shape[1], size=(BATCH, DRAWN))]
            yield Corpus(self.documents[picked], self.documents[near])


class MatryoshkaAdaptor(Encoding):
    """Both stages where there are labels, else the first alone."""

    network: Network | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns f; returns itself."""
        pool = sample(learning, seed)
        neighbourhoods = Neighbourhoods.of(pool.documents.all(), seed)
        self.network = learned(pool, partial(_network, neighbourhoods=neighbourhoods, seed=seed))
        return self

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading coordinates of x + f(x)."""
        return fitted(self, self.network).adapt(x, width)

    def query_cost(self, width: int) -> float:
        """The network up to the leading coordinates."""
        return fitted(self, self.network).cost(width)

    @property
    def parameters(self) -> int:
        """The network's weights."""
        return fitted(self, self.network).size


class UnsupervisedMatryoshkaAdaptor(MatryoshkaAdaptor):
    """The first stage alone; no label is seen, on dev neither."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns f from the documents; returns itself."""
        train, dev = (replace(part, judged=None) for part in (learning.train, learning.dev))
        return super().fit(replace(learning, train=train, dev=dev), seed)


def _network(ground: Ground, course: Course, neighbourhoods: Neighbourhoods, seed: int) -> Network:
    """f after the first stage and, where there are labels, the second."""
    network, rng, labelled = Network(ground.task.width, seed), np.random.default_rng(seed), ground.task.labelled
    descend = partial(course.descend, list(network.parameters()), evaluate=lambda: ground.evaluate(network.adapt))
    corpora = neighbourhoods.draws(rng)
    descend(partial(_kept, network, ground.widths), batches=corpora, steps=ground.steps // (2 if labelled else 1))
    if labelled:
        both = zip(corpora, ground.batches(rng), strict=True)
        descend(partial(_kept_and_ranked, network, ground.widths), batches=both, steps=ground.steps // 2)
    return network


def pair_loss(x: Tensor, adapted: Tensor, widths: Sequence[int]) -> Tensor:
    """How far prefix cosines are from those of the whole vectors, mean over widths and all pairs of rows. (B, D), (B, D)"""
    return (x @ x.T - prefix_scores(adapted, adapted, widths)).abs().mean()


def topk_loss(x: Tensor, near: Tensor, adapted: Tensor, adapted_near: Tensor, widths: Sequence[int]) -> Tensor:
    """The same for rows and their own neighbours. (B, D), (B, n, D), (B, D), (B, n, D)"""
    return (x[:, None] @ near.mT - prefix_scores(adapted[:, None], adapted_near, widths)).abs().mean()


def _kept(network: Network, widths: tuple[int, ...], corpus: Corpus) -> Tensor:
    """The three losses that need no label."""
    x, near = corpus.documents, corpus.near
    change: Tensor = network(x)
    kept = topk_loss(x, near, x + change, near + network(near), widths) + pair_loss(x, x + change, widths)
    return kept + change.abs().mean()


def _kept_and_ranked(network: Network, widths: tuple[int, ...], drawn: tuple[Corpus, Batch]) -> Tensor:
    """All four losses."""
    corpus, batch = drawn
    q, d = (x + network(x) for x in (batch.queries, batch.documents))
    return _kept(network, widths, corpus) + rank_loss(prefix_scores(q, d, widths), batch.relevant)
