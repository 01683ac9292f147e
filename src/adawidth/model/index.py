"""Searching: what answers queries over an index with a model's rotation, policies and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..data import Vectors
from ..errors import DataError, OptionError
from ..hits import Hits
from ..index import IndexFolder
from ..policies import Policy
from ..policies.select import Policies
from ..rotation import Rotation
from ..stages import Backend
from ..stages.loop import BATCH, SHORTLIST, answers, joined
from ..tasks import TaskMap, pick
from ..types import Floats


@dataclass(frozen=True, eq=False)
class Searcher:
    """Answers queries over an index with a model's rotation, policies and tasks. Safe for concurrent searches."""

    index: Backend | IndexFolder
    rotation: Rotation
    policies: Policies
    tasks: Mapping[str, TaskMap] = field(default_factory=dict)

    def search(
        self,
        queries: Vectors | Floats,
        k: int = 10,
        *,
        policy: str | None = None,
        budget: float | None = None,
        quality: float | None = None,
        width: int | None = None,
        start: int | None = None,
        shortlist: int = SHORTLIST,
        task: str | None = None,
        where: str | None = None,
        threads: int = 1,
    ) -> Hits:
        """The k best documents for each query (rows, or one 1-D vector): by the taper at quality .99 unless told otherwise.

        `task` names a query map and its policies: without it the one called "default" if there is one; "none" for no map.
        `where` is a filter on metadata, for an index on disk. `threads` share the queries out among them.
        """
        if isinstance(queries, np.ndarray) and queries.ndim == 1:
            queries = queries[None]
        vectors = Vectors.of(queries, name="queries")
        if vectors.width != self.rotation.width:
            raise DataError(f"queries are {vectors.width} wide, the model {self.rotation.width}: use the encoder the model was fitted for")
        picked = pick(self.tasks, task)
        policies = self.policies if picked is None else picked.policies
        turn = self.rotation.apply if picked is None else picked.query_map.apply
        chosen = _chosen(policies, policy, budget, quality, width, start, k)
        index, turned = self._seen(where), turn(vectors.all())
        size = min(BATCH, -(-len(turned) // max(1, threads)))
        parts = [turned[start : start + size] for start in range(0, len(turned), size)]
        if threads <= 1:
            return joined([answers(index, part, chosen, k, shortlist) for part in parts])
        with ThreadPoolExecutor(threads) as pool:
            return joined(list(pool.map(lambda part: answers(index, part, chosen, k, shortlist), parts)))

    @property
    def folder(self) -> IndexFolder:
        """The index folder that is searched, to add to it, or to ask it for texts; refused where the index is in memory."""
        if not isinstance(self.index, IndexFolder):
            raise OptionError("this index is in memory: make one on disk with model.index(documents, path=…)")
        return self.index

    def _seen(self, where: str | None) -> Backend:
        """What this search sees from its beginning to its end."""
        if where is not None:
            return self.folder.view.where(where)
        return self.index.view if isinstance(self.index, IndexFolder) else self.index


@lru_cache(maxsize=64)
def _chosen(
    policies: Policies, policy: str | None, budget: float | None, quality: float | None, width: int | None, start: int | None, k: int
) -> Policy:
    """The same policy for the same question, so that what is prepared for it is prepared once."""
    return policies.choose(policy, budget=budget, quality=quality, width=width, start=start, k=k)
