"""AdaWidth as `fit` ships it: the rotation chosen on dev, read by the taper within a budget."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from ..data import Learning
from ..policies import Policy
from ..policies.taper import TaperModel
from ..rotation import Rotation
from ..training.fit import fit_model
from .base import Staged, fitted, plain


class AdaWidthTaper(Staged):
    """Below the taper's start width every document is ranked at the budget."""

    def __init__(self, rotation: Rotation | None = None, taper: TaperModel | None = None) -> None:
        super().__init__(rotation)
        self.taper = taper

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Learns the rotation and calibrates the taper; returns itself."""
        found = fit_model(learning, seed=seed, router=False)
        self.rotation, self.taper = found.rotation, found.policies.taper
        return self

    def policy(self, budget: int, k: int) -> Policy:
        """The taper at this mean width, at most its target."""
        taper = fitted(self, self.taper)
        return plain(budget) if budget <= taper.starts[0] else taper.policy(budget=min(budget, taper.target), k=k)


class UnlabelledAdaWidth(AdaWidthTaper):
    """The same for those who have queries and no labels: the rotation and the taper's calibration see none."""

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        return super().fit(unlabelled(learning), seed)


def unlabelled(learning: Learning) -> Learning:
    """The same without its labels."""
    train, dev = (replace(part, judged=None) for part in (learning.train, learning.dev))
    return replace(learning, train=train, dev=dev)
