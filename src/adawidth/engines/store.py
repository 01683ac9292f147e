"""An engine's collection as a store, and what a search sees of it.

The stage loop is the same as everywhere. Stage 1 returns ids, scores and norms. A row is then a position among the documents found, and
each further step is one request: these ids, at this width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ..data import Document, Documents
from ..errors import DataError, OptionError
from ..filters import Filter, parse
from ..formats.documents import Batch, Source
from ..hits import Hits, Read
from ..policies import Policy
from ..policies.base import Stepwise
from ..policies.taper import Bounded, Calibration, Taper
from ..rotation import Rotated, Rotation
from ..stages import Backend, Decision, Reader, Stage, Store, Written
from ..stages.backend import check_width, listed, named, prefix_norms
from ..stages.energy import ENOUGH, SAMPLE, check_encoder
from ..stages.loop import SHORTLIST, by_stages
from ..types import F32, I64, Id, Rows, StrPath
from .base import Engine, Found, Row, T, prefix_lengths
from .prices import PRICES


class EngineDocuments(Documents):
    """Documents in an engine; what is known of them is fetched on first use, for all at once."""

    def __init__(self, ids: Sequence[str], engine: Engine) -> None:
        super().__init__(ids)
        self._engine = engine

    @cached_property
    def _known(self) -> Mapping[str, Document]:
        return self._engine.documents([str(name) for name in self.ids])

    def describe(self, rows: Iterable[int]) -> list[Document]:
        names = [str(self.ids[row]) for row in rows]
        return [self._known.get(name, Document(name)) for name in names]  # one may be gone since it was found


class FoundReader(Reader):
    """The documents that stage 1 found for a batch of queries; requests to the engine read them further."""

    def __init__(self, engine: Engine, found: Sequence[Found]) -> None:
        self._engine = engine
        row_of: dict[str, int] = {}
        lengths: list[F32] = []
        for answer in found:
            for name, norms in zip(answer.ids, answer.norms, strict=True):
                if row_of.setdefault(name, len(row_of)) == len(lengths):
                    lengths.append(norms)
        self._documents = EngineDocuments(list(row_of) or [""], engine)  # one row stands in where nothing was found
        self._norms = np.stack(lengths or [np.ones(len(engine.layout.widths), np.float32)])
        self.row_of = row_of

    @property
    def documents(self) -> Documents:
        return self._documents

    def norms(self, width: int) -> F32:
        """Of every document that was found. (n,)"""
        widths = self._engine.layout.widths
        if width not in widths:
            raise OptionError(f"width {width} is not kept in the engine; there are {', '.join(map(str, widths))}")
        return np.asarray(self._norms[:, widths.index(width)])

    def bytes_read(self, width: int, coordinates: I64) -> I64:
        """Of the candidates; what the engine's own index reads is not known. (Q,)"""
        return 4 * coordinates

    def opened(self, queries: F32, found: Sequence[Found], width: int, k: int) -> Stage:
        """Stage 1."""
        candidates = np.full((len(queries), k), -1, np.int64)
        scores = np.full((len(queries), k), -np.inf, np.float32)
        for place, answer in enumerate(found):
            candidates[place, : len(answer.ids)] = [self.row_of[name] for name in answer.ids]
            scores[place, : len(answer.ids)] = answer.scores
        alive = candidates >= 0
        lengths = self.norms(width)[candidates] * prefix_norms(queries, width)[:, None]
        stage = Stage(
            backend=self,
            queries=queries,
            candidates=candidates,
            sums=np.where(alive, scores * lengths, 0.0).astype(np.float32),
            scores=scores,
            alive=alive,
            last=np.where(alive, width, 0),
            widths=np.full(len(queries), width, np.int64),
            coordinates=alive.sum(axis=1) * width,
        )
        return stage

    def rescore(self, stage: Stage, decision: Decision) -> Stage:
        """The kept candidates of the queries that go on: one request per width that some query goes on to."""
        widths = decision.widths
        moving = decision.keep & stage.alive & (widths > stage.widths)[:, None]
        scores, sums, keep = stage.scores.copy(), stage.sums.copy(), decision.keep.copy()
        ids = self._documents.ids
        for width in np.unique(widths[moving.any(axis=1)]).tolist():
            asked = np.flatnonzero(moving.any(axis=1) & (widths == width))
            names = [[str(ids[row]) for row in stage.candidates[place, moving[place]]] for place in asked]
            answers = self._engine.scores(np.ascontiguousarray(stage.queries[asked, :width]), names)
            for place, answer in zip(asked.tolist(), answers, strict=True):
                scores[place, moving[place]] = np.where(np.isnan(answer), -np.inf, answer)
                keep[place, moving[place]] &= ~np.isnan(answer)  # removed since stage 1
        return self._moved(stage, replace(decision, keep=keep), sums, scores)


class EngineView(Backend):
    """A collection as searches see it."""

    def __init__(self, engine: Engine, count: int, condition: Filter | None = None) -> None:
        self.engine = engine
        self.start = engine.layout.start
        self._count = count
        self._condition = condition

    def __len__(self) -> int:
        return self._count

    @property
    def width(self) -> int:
        return self.engine.layout.keep

    @property
    def fingerprint(self) -> str:
        return self.engine.layout.fingerprint

    def most(self, k: int) -> int:
        """Other clients may have added documents since they were counted: k."""
        return k

    def search(self, queries: F32, width: int, k: int, own: Rows | None = None) -> Stage:
        """The k best at the start width, as the engine finds them."""
        if width != self.start or own is not None:
            raise OptionError(f"candidates are found at width {self.start} in this engine, not at {width}")
        found = self.engine.nearest(np.ascontiguousarray(queries[:, :width]), k, self._condition)
        return FoundReader(self.engine, found).opened(queries, found, width, k)

    def answer(self, queries: Rotated, policy: Policy, k: int, shortlist: int) -> Hits:
        """The stage loop's answers, if the engine can follow the policy."""
        if not isinstance(policy, Stepwise):
            raise OptionError(
                f"{self.engine.name} can't follow the policy {policy.name}: use the taper, a fixed width or the paper's router"
            )
        layout = self.engine.layout
        shortlist = max(k, layout.shortlist if shortlist == SHORTLIST else shortlist)
        free = not isinstance(policy, Bounded)  # to read more where that is cheaper
        policy = _raised(policy, layout.start)
        between = self.engine.any_width and policy.name == "fixed" and policy.reach <= layout.keep  # needs no norms
        widths = (*layout.widths, policy.reach) if between else layout.widths
        steps = policy.at(widths)
        at_once = steps.name == "fixed" or (free and self._wide_is_cheaper(steps, shortlist))
        if self.engine.one_request and at_once and steps.reach >= layout.start:
            return self._widened(np.ascontiguousarray(queries.upto(steps.reach)[:, : steps.reach]), k, shortlist)
        hits = by_stages(self, queries.all(), steps, k, shortlist=shortlist)
        return _only_shown(hits, self.engine)

    def _wide_is_cheaper(self, policy: Policy, shortlist: int) -> bool:
        """Whether a taper would spend more on candidates that come and go than it saves, however many it drops."""
        more = policy.reach - self.engine.layout.start
        return isinstance(policy, Taper) and more > 0 and not PRICES[self.engine.name].dropping_pays(shortlist, more)

    def _widened(self, queries: F32, k: int, shortlist: int) -> Hits:
        """Both stages in one request, for all queries alike."""
        width = queries.shape[1]
        found = self.engine.widened(queries, k, shortlist, self._condition)
        row_of = {name: row for row, name in enumerate(dict.fromkeys(name for answer in found for name in answer.ids))}
        rows, scores = np.full((len(queries), k), -1, np.int64), np.full((len(queries), k), -np.inf, np.float32)
        for place, answer in enumerate(found):
            rows[place, : len(answer.ids)] = [row_of[name] for name in answer.ids]
            scores[place, : len(answer.ids)] = answer.scores
        candidates = np.full(len(queries), min(shortlist, max(len(self), 1)), np.int64)
        read = Read(candidates, candidates * width, 4 * candidates * width, np.full(len(queries), width, np.int64))
        return Hits(rows, scores, np.full(len(queries), float(width)), EngineDocuments(list(row_of), self.engine), read)

    def restricted(self, condition: Filter) -> EngineView:
        """The same with only the documents that meet a filter."""
        same = copy(self)
        same._condition = condition
        return same


def _raised(policy: Stepwise, start: int) -> Stepwise:
    """A taper from a start width that the engine does not have, from the engine's own on: each width has thresholds of its own."""
    if not isinstance(policy, Taper) or policy.start >= start or start not in policy.calibration.ladder:
        return policy
    known, first = policy.calibration, policy.calibration.ladder.index(start)
    return replace(policy, calibration=Calibration(known.ladder[first:], known.beta[first:], known.sigma[first:]))


def _only_shown(hits: Hits, engine: Engine) -> Hits:
    """The answers with only their own documents behind them, so that no others are ever fetched."""
    assert hits.documents is not None
    shown, places = np.unique(hits.rows, return_inverse=True)
    padded = int(shown[0] < 0) if len(shown) else 0
    names = [str(hits.documents.ids[row]) for row in shown[padded:].tolist()]
    return replace(hits, rows=places.reshape(hits.rows.shape) - padded, documents=EngineDocuments(names, engine))


class EngineStore(Store):
    """The documents of a collection, to search and to change. Ids are strings; any number of clients may write."""

    view: EngineView

    def __init__(self, engine: Engine, rotation: Rotation) -> None:
        self.engine = engine
        self._rotation = rotation
        rotation.check_same(engine.layout.fingerprint, engine.where)
        self.refresh()

    @property
    def place(self) -> str:
        return self.engine.where

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        raise OptionError(f"{self.engine.where}: a collection has no folder to copy: use the engine's own backup")

    def where(self, condition: str | Mapping[str, Any]) -> EngineView:
        return self.view.restricted(parse(condition))

    def __contains__(self, identifier: object) -> bool:
        return isinstance(identifier, str | int) and bool(self.engine.present([str(identifier)]))

    def ids(self) -> Iterator[Id]:
        yield from self.engine.ids()

    def documents(self, ids: Id | Iterable[Id]) -> list[Document]:
        names = [str(name) for name in listed(ids)]
        return _in_order(names, self.engine.documents(names))

    def vectors(self, ids: Id | Iterable[Id]) -> F32:
        names = [str(name) for name in listed(ids)]
        found = _in_order(names, self.engine.vectors(names))
        return np.stack(found) if found else np.empty((0, self.view.width), np.float32)

    def sample(self, count: int) -> F32:
        return self.vectors(list(islice(self.engine.ids(), count)))

    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Batch by batch; all or none where the engine has transactions, else what came before an error stays and can be sent again."""
        added = replaced = 0
        check_width(documents, self._rotation.width)
        self.engine.check_writable()
        with self.engine.writing():
            for batch in named(documents, numbered=False, following=0):
                self.engine.check_writable()
                rows = self._rows(batch)
                if not added and not replaced and len(rows) >= ENOUGH:
                    kept = self.sample(SAMPLE)
                    check_encoder(kept, np.stack([row.vector for row in rows]), self._rotation.width, documents.name)
                there = self.engine.present([str(row.document.id) for row in rows])
                if there and not update:
                    raise DataError(f"id {min(there)!r} is in {self.engine.where} already: use update, or remove it first")
                self.engine.write(rows, update=update)
                added, replaced = added + len(rows) - len(there), replaced + len(there)
        self.refresh()
        return Written(added, replaced, len(self.view), storage=self.engine.name)

    def remove(self, ids: Id | Iterable[Id]) -> int:
        names = list(dict.fromkeys(str(name) for name in listed(ids)))
        self.engine.check_writable()
        with self.engine.writing():
            self.engine.check_writable()
            _in_order(names, dict.fromkeys(self.engine.present(names), True))
            self.engine.remove(names)
        self.refresh()
        return len(names)

    def facts(self) -> dict[str, Any]:
        layout = self.engine.layout
        return {
            "kind": "collection",
            "engine": self.engine.name,
            "documents": self.engine.count(),
            "encoder_width": self._rotation.width,
            "width": layout.keep,
            "widths": list(layout.widths),
            **self.engine.facts(),
        }

    def refresh(self) -> bool:
        """Counts the documents again; searches always see the latest state."""
        count = self.engine.count()
        newer = not hasattr(self, "view") or len(self.view) != count
        self.view = EngineView(self.engine, count)
        return newer

    def close(self) -> None:
        self.engine.close()

    def _rows(self, batch: Batch) -> list[Row]:
        layout = self.engine.layout
        kept = self._rotation.apply(batch.vectors.all(), layout.keep)
        lengths = prefix_lengths(kept, layout.widths)
        names = [str(document.id) for document in batch.documents]
        if len(set(names)) != len(names):
            raise DataError("an id stands twice in what is added: ids must be unique")
        known = [replace(document, id=name) for document, name in zip(batch.documents, names, strict=True)]
        return [Row(*parts) for parts in zip(known, kept, lengths, strict=True)]


def _in_order(names: Sequence[str], found: Mapping[str, T]) -> list[T]:
    missing = [name for name in names if name not in found]
    if missing:
        raise DataError(f"there is no document {missing[0]!r}; {len(missing)} of {len(names)} ids are not in the index")
    return [found[name] for name in names]
