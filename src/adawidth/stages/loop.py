"""The stage loop: scan at the start width, ask the policy, extend what it keeps, until it stops.

Written once over the verbs of a backend; the same loop serves every policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..hits import Hits, Read
from ..types import F32, Rows
from .state import Stage

if TYPE_CHECKING:
    from ..policies import Policy
    from .backend import Backend

SHORTLIST = 500
BATCH = 1_024  # queries carried through the stages together


def exhaustive(backend: Backend, queries: F32, width: int, k: int, own: Rows | None = None) -> Hits:
    """Every document ranked at one width."""
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
) -> Hits:
    """The policy's answers for rotated queries. `candidates` (Q, C) replaces the scan: stage 1 then ranks those."""
    shortlist = min(max(shortlist, k), len(backend))
    done: list[Stage] = []
    for start in range(0, len(queries), BATCH):
        part = slice(start, start + BATCH)
        if candidates is not None:
            stage = backend.open(queries[part], candidates[part], policy.start)
        else:
            stage = backend.search(queries[part], policy.start, shortlist, None if own is None else own[part])
        done.append(run(stage, policy))
    ranked = [(*stage.ranked(k), stage.mean_widths, backend.documents, stage.read(policy.start)) for stage in done]
    return joined([Hits(*answer) for answer in ranked])


def joined(parts: Sequence[Hits]) -> Hits:
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
        stage = stage.backend.rescore(stage, decision)
