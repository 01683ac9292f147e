"""ECLIPSE (methods 8): DIME's feedback, less what a query shares with the last documents of its list, which are hardly relevant."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple, Self

from ..data import Learning
from .base import fitted
from .dime import agreement
from .masked import Asked, Importance, Masked


class Setting(NamedTuple):
    """Only β / α orders the coordinates, so α is 1."""

    beta: float  # weight of the last documents
    first: int  # how many are taken
    last: int


class Eclipse(Masked):
    """Its setting is chosen on dev; without labels it is the first that its authors would try."""

    setting = Setting(beta=0.5, first=5, last=50)
    CHOICES = tuple(Setting(*each) for each in product((0.25, 0.5, 1.0), (2, 5, 10), (10, 50)))

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Chooses its setting; returns itself."""
        if learning.labelled:
            dev = Asked.on_dev(learning, seed)
            self.setting = max(self.CHOICES, key=lambda setting: self.score(dev, eclipsed(dev, setting)))
        return super().fit(learning, seed)

    def importance(self, asked: Asked) -> Importance:
        """q ⊙ (mean of the first documents − β mean of the last)"""
        return eclipsed(asked, self.setting)

    def query_cost(self, documents: int) -> float:
        """The first pass at full width, the means of what it found, and their product with the query."""
        return fitted(self, self.width) * (documents + self.setting.first + self.setting.last + 2)


def eclipsed(asked: Asked, setting: Setting) -> Importance:
    """Agreement with the first documents of the list, less β times that with the last."""
    last = asked.vectors * asked.centroids(asked.answers[:, -setting.last :])
    return agreement(asked, setting.first) - setting.beta * last
