"""The stage loop: scan at the start width, ask the policy, extend what it keeps, until it stops.

Written once over the verbs of an index; the same loop serves every policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..data import Floats, Rows, Vectors
from ..errors import DataError, OptionError
from ..hits import Hits, Read
from ..index import PrefixIndex, View
from ..policies import Policy
from ..policies.select import Policies
from ..rotation import Rotation
from ..tasks import TaskMap, pick
from .state import Index, Stage

SHORTLIST = 500
BATCH = 1_024  # queries carried through the stages together


@dataclass(frozen=True, eq=False)
class Searcher:
    """Answers queries over an index with a model's rotation, policies and tasks. Safe for concurrent searches."""

    index: Index | PrefixIndex
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
            return _joined([answers(index, part, chosen, k, shortlist) for part in parts])
        with ThreadPoolExecutor(threads) as pool:
            return _joined(list(pool.map(lambda part: answers(index, part, chosen, k, shortlist), parts)))

    @property
    def folder(self) -> PrefixIndex:
        """The index folder that is searched, to add to it, or to ask it for texts; refused where the index is in memory."""
        if not isinstance(self.index, PrefixIndex):
            raise OptionError("this index is in memory: make one on disk with model.index(documents, path=…)")
        return self.index

    def _seen(self, where: str | None) -> Index:
        """What this search sees from its beginning to its end."""
        if where is not None:
            return self.folder.view.where(where)
        return self.index.view if isinstance(self.index, PrefixIndex) else self.index


@lru_cache(maxsize=64)
def _chosen(
    policies: Policies, policy: str | None, budget: float | None, quality: float | None, width: int | None, start: int | None, k: int
) -> Policy:
    """The same policy for the same question, so that what is prepared for it is prepared once."""
    return policies.choose(policy, budget=budget, quality=quality, width=width, start=start, k=k)


def answers(index: Index, queries: NDArray[np.float32], policy: Policy, k: int, shortlist: int) -> Hits:
    """The policy's answers for rotated queries, by compiled code where there is some for index and policy."""
    check_k(index, k)
    hits = index.answer(queries, policy, k, min(max(shortlist, k), len(index.documents))) if isinstance(index, View) else None
    return by_stages(index, queries, policy, k, shortlist=shortlist) if hits is None else hits


def check_k(index: Index, k: int) -> None:
    """Refuses a k that there are not enough documents for."""
    if not 1 <= k <= len(index.documents):
        raise OptionError(f"k = {k} is not between 1 and the number of documents, {len(index.documents)}")


def exhaustive(index: Index, queries: NDArray[np.float32], width: int, k: int, own: Rows | None = None) -> Hits:
    """Every document ranked at one width."""
    stage = index.search(queries, width, min(k, len(index.documents)), own)
    return Hits(stage.candidates, stage.scores, np.full(len(queries), float(width)), index.documents)


def by_stages(
    index: Index,
    queries: NDArray[np.float32],
    policy: Policy,
    k: int,
    *,
    shortlist: int = SHORTLIST,
    own: Rows | None = None,
    candidates: Rows | None = None,
) -> Hits:
    """The policy's answers for rotated queries. `candidates` (Q, C) replaces the scan: stage 1 then ranks those."""
    check_k(index, k)
    shortlist = min(max(shortlist, k), len(index.documents))
    done: list[Stage] = []
    for start in range(0, len(queries), BATCH):
        part = slice(start, start + BATCH)
        if candidates is not None:
            stage = index.open(queries[part], candidates[part], policy.start)
        else:
            stage = index.search(queries[part], policy.start, shortlist, None if own is None else own[part])
        done.append(run(stage, policy))
    ranked = [(*stage.ranked(k), stage.mean_widths, index.documents, stage.read(policy.start)) for stage in done]
    return _joined([Hits(*answer) for answer in ranked])


def _joined(parts: Sequence[Hits]) -> Hits:
    """Answers to some queries and to the following ones, as one."""
    if len(parts) == 1:
        return parts[0]
    rows, scores, widths = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "scores", "widths"))
    read = [part.read for part in parts if part.read is not None]
    return Hits(rows, scores, widths, parts[0].documents, Read(*map(np.concatenate, zip(*read, strict=True))) if read else None)


def run(stage: Stage, policy: Policy) -> Stage:
    """The stage at which the policy stops every query."""
    while True:
        decision = policy.decide(stage)
        if (decision.widths <= stage.widths).all():
            return stage
        stage = stage.index.rescore(stage, decision)
