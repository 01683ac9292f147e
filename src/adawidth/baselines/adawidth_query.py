"""A query map trained on labels, and the taper, over an unsupervised rotation or over one trained on the same labels."""

from __future__ import annotations

from typing import Self

from ..data import Learning, Queries
from ..rotation import QueryMap
from ..training.fit import fit_model
from ..training.refit import learn_task
from ..types import F32
from .adawidth import AdaWidthTaper, unlabelled
from .base import fitted


class AdaWidthQuery(AdaWidthTaper):
    """`fit` without labels, then `refit` with them where there are any."""

    labelled = False  # whether the rotation is trained on labels too
    query_map: QueryMap | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds the rotation, then the query map; returns itself."""
        found = fit_model(learning if self.labelled else unlabelled(learning), seed=seed, router=False)
        self.rotation, self.taper, self.query_map = found.rotation, found.policies.taper, QueryMap.identity(found.rotation)
        if learning.labelled:
            task = learn_task(found.rotation, found.policies, learning, chosen_under=found.chosen, seed=seed, router=False)
            self.taper, self.query_map = task.policies.taper, task.query_map
        return self

    def asked(self, queries: Queries) -> F32:
        """The queries rotated and mapped."""
        return fitted(self, self.query_map).apply(queries.vectors.all())

    @property
    def parameters(self) -> int:
        """The rotation's degrees of freedom, and the map's matrix and bias."""
        width = fitted(self, self.query_map).width
        return super().parameters + width * (width + 1)


class LabelledAdaWidthQuery(AdaWidthQuery):
    """`fit` with a query map: both are trained on labels."""

    labelled = True
