"""The stage loop: scan at the start width, ask the policy, extend what it keeps, until it stops.

Written once over the verbs of a backend; the same loop serves every policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data import ChainedDocuments, Documents
from ..hits import Hits, Read
from ..types import F32, Rows
from .state import Stage

if TYPE_CHECKING:
    from ..policies import Policy
    from .backend import Backend, RowBackend

SHORTLIST = 500
BATCH = 1_024  # queries carried through the stages together


def exhaustive(backend: RowBackend, queries: F32, width: int, k: int, own: Rows | None = None, candidates: Rows | None = None) -> Hits:
    """Every document ranked at one width, or every candidate. (Q, C)"""
    if candidates is not None:
        parts = [slice(start, start + BATCH) for start in range(0, len(queries), BATCH)]
        found = [backend.open(queries[part], candidates[part], width).ranked(k) for part in parts]
        return joined([Hits(*answer, np.full(len(answer[0]), float(width)), backend.documents) for answer in found])
    stage = backend.search(queries, width, min(k, len(backend)), own)
    return Hits(stage.candidates, stage.scores, np.full(len(queries), float(width)), backend.documents)


def by_stages(
    backend: Backend,
    queries: F32,
    policy: Policy,
    k: int,
    *,
    shortlist: int = SHORTLIST,
    own: Rows | None = None,
    candidates: Rows | None = None,
    whole: bool = False,
) -> Hits:
    """The policy's answers for rotated queries. `candidates` (Q, C) replaces the scan: stage 1 then ranks those.

    `whole`: the policy sees all queries as one workload, not in batches.
    """
    shortlist = backend.most(max(shortlist, k))
    done: list[Stage] = []
    batch = max(len(queries), 1) if whole else BATCH
    for start in range(0, len(queries), batch):
        part = slice(start, start + batch)
        if candidates is not None:
            stage = backend.open(queries[part], candidates[part], policy.start)
        else:
            stage = backend.search(queries[part], policy.start, shortlist, None if own is None else own[part])
        done.append(run(stage, policy))
    ranked = [(*stage.ranked(k), stage.mean_widths, stage.backend.documents, stage.read(policy.start)) for stage in done]
    return joined([Hits(*answer) for answer in ranked])


def joined(parts: Sequence[Hits]) -> Hits:
    """Answers to some queries and to the following ones, as one."""
    if len(parts) == 1:
        return parts[0]
    documents, firsts = _together([part.documents for part in parts])
    rows = np.concatenate([np.where(part.rows < 0, -1, part.rows + first) for part, first in zip(parts, firsts, strict=True)])
    scores, widths = (np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "widths"))
    read = [part.read for part in parts if part.read is not None]
    return Hits(rows, scores, widths, documents, Read(*map(np.concatenate, zip(*read, strict=True))) if read else None)


def _together(parts: Sequence[Documents | None]) -> tuple[Documents | None, list[int]]:
    """The documents of several answers as one, and the row at which each begins; an engine's answers bring their own."""
    if all(part is parts[0] for part in parts):
        return parts[0], [0] * len(parts)
    known = [Documents([]) if part is None else part for part in parts]
    firsts = np.cumsum([0, *(len(part.ids) for part in known)])
    return ChainedDocuments(known), firsts[:-1].tolist()


def run(stage: Stage, policy: Policy) -> Stage:
    """The stage at which the policy stops every query."""
    while True:
        decision = policy.decide(stage)
        if (decision.widths <= stage.widths).all():
            return stage
        stage = stage.backend.rescore(stage, decision)
