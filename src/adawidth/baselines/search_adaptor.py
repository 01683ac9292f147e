"""Search-Adaptor (Yoon et al. 2024; methods 5.2): x̂ = x + f(x), trained on labels at one width; each width has its own network.

    rank   ln(1 + exp(s_ik − s_ij))     j relevant to query i, k not
    rec    |f(x)|                        queries and documents
    pred   |q̂_i − g(d̂_j)|             g, a second network, tells the query from its relevant document; for training alone

The weight of rec and pred and the learning rate are chosen on dev at the encoder width; narrower networks learn with these.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Self

import numpy as np
from torch import Tensor

from ..data import Learning
from ..training.pool import sample
from ..types import F32, Floats
from .base import Encoding, Role, fitted
from .descent import Batch, Course, Ground, learned
from .residual import Network, prefix_scores, rank_loss

Setting = tuple[float, float]  # weight and rate

SETTINGS = tuple(product((0.1, 0.0, 1.0), (1e-4, 3e-4)))  # at 1e-3 nothing that is learned holds on dev
CHOOSING = 0.45  # share of the steps that the choice takes; the narrower widths share the others


class SearchAdaptor(Encoding):
    """At a width between two, the leading coordinates of the wider one's vectors."""

    networks: dict[int, Network] | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns a network for every width; returns itself."""
        self.networks = learned(sample(learning, seed), partial(_networks, seed=seed))
        return self

    def encode(self, x: Floats, role: Role, width: int) -> F32:
        """The leading coordinates of x + f(x)."""
        return self._network(width).adapt(x, width)

    def query_cost(self, width: int) -> float:
        """The width's network up to the leading coordinates."""
        return self._network(width).cost(width)

    @property
    def parameters(self) -> int:
        """All networks' weights, the predictors left out."""
        return sum(network.size for network in fitted(self, self.networks).values())

    def _network(self, width: int) -> Network:
        networks = fitted(self, self.networks)
        return networks[min(m for m in networks if m >= width)]


def _networks(ground: Ground, course: Course, seed: int) -> dict[int, Network]:
    """The encoder width's chooses the setting of all."""
    *narrower, whole = ground.widths
    choosing = round(CHOOSING * ground.steps)
    steps = {m: (ground.steps - choosing) // len(narrower) for m in narrower} | {whole: choosing // len(SETTINGS)}

    def network(width: int, setting: Setting, course: Course) -> Network:
        return _network(ground, course, width, setting, steps[width], seed)

    setting, widest = course.choose(SETTINGS, partial(network, whole))
    return {m: network(m, setting, course) for m in narrower} | {whole: widest}


def _network(ground: Ground, course: Course, width: int, setting: Setting, steps: int, seed: int) -> Network:
    """A network for one width."""
    weight, rate = setting
    network, predictor = Network(ground.task.width, seed), Network(ground.task.width, seed + 1)

    def loss(batch: Batch) -> Tensor:
        q_change: Tensor = network(batch.queries)
        d_change: Tensor = network(batch.documents)
        q, d = batch.queries + q_change, batch.documents + d_change
        total = rank_loss(prefix_scores(q, d, [width]), batch.relevant)
        if not weight:
            return total
        owner, column = batch.relevant.nonzero(as_tuple=True)
        predicted: Tensor = (q[owner] - d[column] - predictor(d[column])).abs().mean()
        return total + weight * (predicted + q_change.abs().mean() + d_change.abs().mean())

    weights = [*network.parameters(), *(predictor.parameters() if weight else ())]
    batches = ground.batches(np.random.default_rng(seed))
    course.descend(weights, loss, lambda: ground.evaluate(network.adapt, widths=(width,)), batches, steps=steps, rate=rate)
    return network
