"""The stage loop: scan at the start width, ask the policy, extend what it keeps, until it stops.

Written once over the verbs of an index; the same loop serves every policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .data import Floats, Hits, Rows, Vectors
from .errors import DataError, OptionError
from .policies import Policy
from .policies.choose import Policies
from .rotation import Rotation
from .stage import Index, Stage
from .tasks import TaskMap, pick

SHORTLIST = 500
BATCH = 1_024  # queries carried through the stages together


@dataclass(frozen=True, eq=False)
class Searcher:
    """Answers queries over an index with a model's rotation, policies and tasks. Safe for concurrent searches."""

    index: Index
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
    ) -> Hits:
        """The k best documents for each query (rows, or one 1-D vector): by the taper at quality .99 unless told otherwise.

        `task` names a query map and its policies: without it the one called "default" if there is one; "none" for no map.
        """
        if isinstance(queries, np.ndarray) and queries.ndim == 1:
            queries = queries[None]
        vectors = Vectors.of(queries, name="queries")
        if vectors.width != self.rotation.width:
            raise DataError(f"queries are {vectors.width} wide, the model {self.rotation.width}: use the encoder the model was fitted for")
        picked = pick(self.tasks, task)
        policies = self.policies if picked is None else picked.policies
        turn = self.rotation.apply if picked is None else picked.query_map.apply
        chosen = policies.choose(policy, budget=budget, quality=quality, width=width, start=start, k=k)
        return by_stages(self.index, turn(vectors.all()), chosen, k, shortlist=shortlist)


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
    if not 1 <= k <= len(index.documents):
        raise OptionError(f"k = {k} is not between 1 and the number of documents, {len(index.documents)}")
    shortlist = min(max(shortlist, k), len(index.documents))
    done: list[Stage] = []
    for start in range(0, len(queries), BATCH):
        part = slice(start, start + BATCH)
        if candidates is not None:
            stage = index.open(queries[part], candidates[part], policy.start)
        else:
            stage = index.search(queries[part], policy.start, shortlist, None if own is None else own[part])
        done.append(run(stage, policy))
    ranked = [stage.ranked(k) for stage in done]
    return Hits(
        np.concatenate([rows for rows, _ in ranked]),
        np.concatenate([scores for _, scores in ranked]),
        np.concatenate([stage.mean_widths for stage in done]),
        index.documents,
    )


def run(stage: Stage, policy: Policy) -> Stage:
    """The stage at which the policy stops every query."""
    while True:
        decision = policy.decide(stage)
        if (decision.widths <= stage.widths).all():
            return stage
        stage = stage.index.rescore(stage, decision)
