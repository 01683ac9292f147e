"""What labels teach on the query side: documents under a rotation that no label touched, a query map, and the taper."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ..data import Floats, Hits, Learning, Queries, Vectors
from ..errors import OptionError
from ..index import MemoryIndex
from ..rotation import QueryMap
from ..search import by_stages, exhaustive
from ..tasks import TaskMap
from ..training.fit import fit_model
from ..training.refit import learn_task
from .base import Role, Rotated


class AdaWidthQuery(Rotated):
    """`fit` without labels, then `refit` with them where there are any, read by the taper within a budget."""

    task: TaskMap | None = None

    def fit(self, learning: Learning, seed: int = 0) -> Self:
        """Finds the rotation, then the query map; returns itself."""
        train, dev = (replace(part, judged=None) for part in (learning.train, learning.dev))
        fitted = fit_model(replace(learning, train=train, dev=dev), seed=seed)
        self.rotation = fitted.rotation
        if learning.labelled:
            self.task = learn_task(fitted.rotation, fitted.policies, learning, seed=seed)
        else:
            self.task = TaskMap(QueryMap.identity(fitted.rotation), fitted.policies)
        return self

    def encode(self, x: Floats, role: Role, width: int) -> NDArray[np.float32]:
        """The leading coordinates: of documents rotated, of queries mapped too."""
        if role == "query" and self.task is not None:
            return self.task.query_map.apply(x, width)
        return super().encode(x, role, width)

    def search(self, documents: Vectors, queries: Queries, budget: int, k: int) -> Hits:
        """By the taper; below its start width every document is ranked at the budget."""
        if self.rotation is None or self.task is None:
            raise OptionError(f"{type(self).__name__} has to be fitted before it searches")
        index, mapped = MemoryIndex(documents, self.rotation), self.task.query_map.apply(queries.vectors.all())
        taper = self.task.policies.taper
        if budget <= taper.starts[0]:
            return exhaustive(index, mapped, budget, k, queries.own)
        return by_stages(index, mapped, taper.policy(budget=min(budget, taper.target), k=k), k, own=queries.own)

    @property
    def parameters(self) -> int:
        """The rotation's degrees of freedom, and the map's matrix and bias."""
        width = 0 if self.rotation is None else self.rotation.width
        return super().parameters + width * (width + 1)

    def stored_floats(self, width: int) -> int:
        """All coordinates: some candidates are read as far as the target width."""
        return width if self.task is None else max(width, self.task.policies.taper.target)
