"""How a query was answered, step by step: the stage loop's own states, noted while a policy decides.

A traced policy is no policy that compiled code knows, so the stage loop follows it, which gives the same answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..formats.documents import Source
from ..hits import Hits
from ..model import Index
from ..policies import Policy
from ..policies.base import Stepwise
from ..rotation import Rotated
from ..stages import Backend, Decision, Stage, Store, Written
from ..types import F32, I64, Id, Mask, Rows, Widths

LONGEST_CURVE = 500


@dataclass(frozen=True, eq=False)
class Noted:
    """One state of the loop, for all queries of a batch."""

    at: float  # seconds of a clock
    widths: Widths  # (Q,)
    alive: Mask  # (Q, C) before the decision
    kept: Mask  # (Q, C) after it
    coordinates: I64  # (Q,) read so far
    bytes: I64  # (Q,) read so far, the scan's included


@dataclass(eq=False)
class Trace:
    """What is noted of one search."""

    documents: int = 0
    policy: str = ""
    k: int = 0
    start: int = 0
    width: int = 0  # the widest that can be read
    began: float = 0.0
    ended: float = 0.0
    scores: F32 = field(default_factory=lambda: np.empty((0, 0), np.float32))  # (Q, C) at the start width
    size: int = 4  # bytes of a coordinate
    steps: list[Noted] = field(default_factory=list)

    def note(self, stage: Stage, decision: Decision) -> None:
        """Notes a state and what was decided."""
        one = np.ones(1, np.int64)
        if not self.steps:
            self.scores, self.start = stage.scores, int(stage.widths[0])
            self.size = int((stage.backend.bytes_read(self.start, one) - stage.backend.bytes_read(self.start, 0 * one))[0])
        read = stage.backend.bytes_read(self.start, stage.coordinates)
        kept = stage.alive & decision.keep
        self.steps.append(Noted(time.perf_counter(), stage.widths, stage.alive, kept, stage.coordinates, read))

    def to_json(self, query: int) -> dict[str, Any]:
        """One query's way."""
        if not self.steps:
            return {
                **self._frame(),
                "curve": [],
                "steps": [],
                "end_width": 0,
                "settled_width": 0,
                "mean_width": 0.0,
                "bytes": 0,
                "seconds": self.seconds(),
            }
        scores = self.scores[query]
        curve = np.sort(scores[np.isfinite(scores)])[::-1][:LONGEST_CURVE]
        steps = list(self._steps(query))
        size = max(1, steps[0]["candidates"])
        return {
            **self._frame(),
            "curve": [round(float(score), 6) for score in curve],
            "steps": steps,
            "end_width": steps[-1]["width"],
            "settled_width": self.settled_width(query),
            "mean_width": steps[-1]["coordinates"] / size,
            "bytes": steps[-1]["bytes"],
            "seconds": self.seconds(),
        }

    def _frame(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "documents": self.documents,
            "start_width": self.start,
            "full_width": self.width,
            "full_bytes": self.documents * self.width * self.size,
        }

    def _steps(self, query: int) -> Iterator[dict[str, Any]]:
        """The states in which this query moved, and the one it ended in."""
        for place, noted in enumerate(self.steps):
            last = place + 1 == len(self.steps)
            if last or self.steps[place + 1].widths[query] > noted.widths[query]:
                yield {
                    "width": int(noted.widths[query]),
                    "candidates": int(noted.alive[query].sum()),
                    "survivors": int(noted.kept[query].sum()),
                    "coordinates": int(noted.coordinates[query]),
                    "bytes": int(noted.bytes[query]),
                }

    def end_width(self, query: int) -> int:
        """The widest that was read for a query; 0 where nothing was searched."""
        return int(self.steps[-1].widths[query]) if self.steps else 0

    def settled_width(self, query: int) -> int:
        """The width after which no more candidates were left than asked for, else the widest; 0 where nothing was searched."""
        return next((int(noted.widths[query]) for noted in self.steps if noted.kept[query].sum() <= self.k), self.end_width(query))

    def seconds(self) -> dict[str, float]:
        """Of the batch: the scan ends when the policy is first asked."""
        scanned = self.steps[0].at if self.steps else self.ended
        return {"scan": scanned - self.began, "rescoring": self.ended - scanned}


@dataclass(frozen=True, eq=False)
class Traced:
    """A policy whose decisions are noted."""

    policy: Policy
    trace: Trace

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def start(self) -> int:
        return self.policy.start

    @property
    def reach(self) -> int:
        return self.policy.reach

    def at(self, widths: Sequence[int]) -> Traced:
        """The same where only some widths can be read."""
        assert isinstance(self.policy, Stepwise)
        return Traced(self.policy.at(widths), self.trace)

    def decide(self, stage: Stage) -> Decision:
        decision = self.policy.decide(stage)
        self.trace.note(stage, decision)
        return decision


class TracedView(Backend):
    """A backend that searches as another does, and notes how."""

    def __init__(self, view: Backend, trace: Trace) -> None:
        self.view, self._trace = view, trace
        self.start = view.start

    def __len__(self) -> int:
        return len(self.view)

    @property
    def width(self) -> int:
        return self.view.width

    @property
    def fingerprint(self) -> str:
        return self.view.fingerprint

    def most(self, k: int) -> int:
        return self.view.most(k)

    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        return self.view.search(queries, width, k, own)

    def probing(self, nprobe: int) -> Backend:
        return TracedView(self.view.probing(nprobe), self._trace)

    def answer(self, queries: Rotated, policy: Policy, k: int, shortlist: int) -> Hits:
        trace = self._trace
        trace.documents, trace.width, trace.policy, trace.start = len(self.view), self.view.width, policy.name, policy.start
        trace.k = k
        trace.began = time.perf_counter()
        hits = self.view.answer(queries, Traced(policy, trace), k, shortlist)
        trace.ended = time.perf_counter()
        return hits


class TracedStore(Store):
    """The documents of another store, for one traced search."""

    def __init__(self, store: Store, trace: Trace) -> None:
        self._store, self._trace = store, trace
        self.view = TracedView(store.view, trace)

    def where(self, condition: str | Mapping[str, Any]) -> Backend:
        return TracedView(self._store.where(condition), self._trace)

    def lexical(self, view: Backend, texts: Sequence[str], k: int) -> Rows:
        assert isinstance(view, TracedView)
        return self._store.lexical(view.view, texts, k)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._store

    def ids(self) -> Iterator[Id]:
        return self._store.ids()

    def documents(self, ids: Any) -> Any:
        return self._store.documents(ids)

    def vectors(self, ids: Any) -> F32:
        return self._store.vectors(ids)

    def sample(self, count: int) -> F32:
        return self._store.sample(count)

    def write(self, documents: Source, *, update: bool = False) -> Written:
        return self._store.write(documents, update=update)

    def remove(self, ids: Any) -> int:
        return self._store.remove(ids)

    def facts(self) -> dict[str, Any]:
        return self._store.facts()


def explained(index: Index, vectors: F32, **options: Any) -> tuple[Hits, Trace]:
    """The answers to a batch, and how they came about."""
    trace = Trace()
    hits = Index(index.model, TracedStore(index.store, trace)).search(vectors, **options)
    return hits, trace
