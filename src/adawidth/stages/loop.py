"""The stage loop: scan at the start width, ask the policy, extend what it keeps, until it stops.

Written once over the verbs of a backend; the same loop serves every policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import OptionError
from ..hits import Hits, Read
from ..types import F32, Rows
from .backend import Backend
from .state import Stage

if TYPE_CHECKING:
    from ..policies import Policy

SHORTLIST = 500
BATCH = 1_024  # queries carried through the stages together


def answers(backend: Backend, queries: F32, policy: Policy, k: int, shortlist: int) -> Hits:
    """The policy's answers for rotated queries, by compiled code where there is some for backend and policy."""
    check_k(backend, k)
    hits = backend.answer(queries, policy, k, min(max(shortlist, k), len(backend.documents)))
    return by_stages(backend, queries, policy, k, shortlist=shortlist) if hits is None else hits


def check_k(backend: Backend, k: int) -> None:
    """Refuses a k that there are not enough documents for."""
    if not 1 <= k <= len(backend.documents):
        raise OptionError(f"k = {k} is not between 1 and the number of documents, {len(backend.documents)}")


def exhaustive(backend: Backend, queries: F32, width: int, k: int, own: Rows | None = None) -> Hits:
    """Every document ranked at one width."""
    stage = backend.search(queries, width, min(k, len(backend.documents)), own)
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
    check_k(backend, k)
    shortlist = min(max(shortlist, k), len(backend.documents))
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
