"""What stands behind the endpoints: one open index, its encoder, the threads that search, and the one that writes."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..errors import AdaWidthError, ArtifactError, BusyError
from ..model import Index
from ..types import F32
from .answers import Renderer, members
from .batching import Batcher, Pace
from .feedback import Feedback
from .planner import Planner
from .problems import Problem
from .settings import Settings
from .stats import Stats
from .trace import explained

log = logging.getLogger("adawidth.serve")

Result = TypeVar("Result")
PAUSE = 0.02  # seconds between two tries for the lock


@dataclass(frozen=True)
class Options:
    """The options of a search, as a key: requests with equal ones share a scan."""

    given: tuple[tuple[str, Any], ...]
    where: str | None = None  # a filter: its text, or JSON
    as_json: bool = False
    fields: tuple[str, ...] = ()  # to tell of each document

    def to_dict(self) -> dict[str, Any]:
        """As Index.search takes them."""
        where = json.loads(self.where) if self.as_json and self.where is not None else self.where
        return dict(self.given) | ({} if where is None else {"where": where})


class Searched(NamedTuple):
    """Answers to one request: one per query, as members of a JSON object, and the seconds it took."""

    results: list[bytes]
    seconds: dict[str, float]


class Part(NamedTuple):
    """One request's queries in a batch."""

    vectors: F32
    since: float  # when it arrived
    encoded: float = 0.0  # seconds that its texts took
    texts: Sequence[str] | None = None


class Service:
    """An index that many ask at once. Made and used in one event loop; what takes long runs in threads."""

    def __init__(self, index: Index, settings: Settings, reopen: Callable[[], Index] | None = None) -> None:
        """`reopen` opens the folder again, where another index may be put in its place."""
        self.index = index
        self.settings = settings
        self.stats = Stats()
        self.ready = True
        self.feedback = Feedback(_feedback_file(index, settings))
        self.planner = Planner(index)
        self._renderer = Renderer()
        self._reopen = reopen
        self._encoding = threading.Lock()
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="write")
        self._reading = ThreadPoolExecutor(4, thread_name_prefix="read")
        self._pace = Pace()
        self._searches: Batcher[Part, Searched] = Batcher("search", self._answer, settings.threads, settings.largest_batch, self._expected)
        self._texts: Batcher[Sequence[str], F32] = Batcher("encode", self._encode, 1, settings.largest_batch)

    async def encode(self, texts: Sequence[str], role: str) -> tuple[F32, float]:
        """Vectors of texts, and the seconds it took; those of several requests go through the encoder together. (n, D)"""
        began = time.perf_counter()
        return await self._texts.ask(role, texts), time.perf_counter() - began

    async def search(self, vectors: F32, names: Sequence[str] | None, options: Options, explain: bool, encoded: float = 0.0) -> Searched:
        """Answers to queries; those of several requests with the same options are found by one scan."""
        part = Part(vectors, time.perf_counter(), encoded, names)
        return await (self.read(self._explain, part, options) if explain else self._searches.ask(options, part))

    @property
    def encoder_names(self) -> list[str]:
        """What /v1/embeddings takes as a model: the encoder's name as recorded, its last part, and `adawidth`."""
        recorded = str(self.index.model.record.encoding.get("encoder") or self.index.model.record.encoder or "")
        return list(dict.fromkeys(name for name in ("adawidth", recorded, recorded.rpartition("/")[2]) if name))

    def trouble(self) -> str | None:
        """Why the index can't be searched now; None where it can."""
        if not self.ready:
            return "the service is shutting down"
        try:
            self.index.facts()
        except AdaWidthError as error:
            return str(error)
        return None

    async def read(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Something that only reads, off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, function, *arguments)

    async def write(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """A change: one at a time in this process, and when no other process holds the lock."""
        if self.settings.key is None:
            raise Problem("read_only", "writing needs an API key: start the service with one (ADAWIDTH_API_KEY or --api-key-file)")
        return await asyncio.get_running_loop().run_in_executor(self._writing, self._locked, function, *arguments)

    async def watch(self) -> None:
        """Moves on to new commits of other processes, until it is cancelled."""
        while True:
            await asyncio.sleep(self.settings.reload_seconds)
            await self.read(self.refresh)

    def refresh(self) -> None:
        """Moves on to the last commit. Searches that are running finish on the one they began with."""
        try:
            self.index.refresh()
        except ArtifactError as error:
            if self._reopen is None:
                log.warning("reload failed: %s", error)
                return
            with suppress(AdaWidthError):  # a folder that is just being replaced: the next look finds it
                self.index = self._reopen()
                log.info("another index is at this path now: opened")

    def close(self) -> None:
        """Waits for what is running, and closes the index."""
        self.ready = False
        for pool in (self._searches, self._texts):
            pool.close()
        for threads in (self._writing, self._reading):
            threads.shutdown(wait=True)
        self.index.close()

    def _locked(self, function: Callable[..., Result], *arguments: Any) -> Result:
        until = time.monotonic() + self.settings.lock_seconds
        while True:
            try:
                return function(*arguments)
            except BusyError:
                if time.monotonic() >= until:
                    raise
                time.sleep(PAUSE)

    def _encode(self, role: Hashable, parts: Sequence[Sequence[str]]) -> list[F32]:
        texts = [text for part in parts for text in part]
        began = time.perf_counter()
        with self._encoding:
            try:
                vectors = self.index.encoder.encode(texts, "query" if role == "query" else "document")
            except (AdaWidthError, ImportError) as error:
                raise Problem("no_encoder", f"{error}") from error
        self.stats.metrics.staged({"encode": time.perf_counter() - began})
        return np.split(np.asarray(vectors, np.float32), np.cumsum([len(part) for part in parts])[:-1])

    def _expected(self, options: Hashable, part: Part) -> float:
        """Seconds that queries will take; of other engines, and of filters, which may have to be looked up, nobody knows."""
        assert isinstance(options, Options)
        if self.index.path is None or options.where is not None:
            return math.inf
        return len(part.vectors) * self._pace.of(self.index.store.view, options)

    def _answer(self, options: Hashable, parts: Sequence[Part]) -> Sequence[Searched | Exception]:
        """Answers to several requests, by one scan; where that fails, by one scan each, so that an error is its own request's alone."""
        assert isinstance(options, Options)
        try:
            return self._scan(options, parts)
        except AdaWidthError as error:
            return [error] if len(parts) == 1 else [self._answer(options, [part])[0] for part in parts]

    def _scan(self, options: Options, parts: Sequence[Part]) -> list[Searched]:
        began, asked, view = time.perf_counter(), options.to_dict(), self.index.store.view
        vectors = parts[0].vectors if len(parts) == 1 else np.concatenate([part.vectors for part in parts])
        hits = self.index.search(vectors, **asked, **_words(asked, parts))
        spent = time.perf_counter() - began
        results, answers = self._renderer.rendered(hits, options.fields), []
        self._pace.note(view, options, (time.perf_counter() - began) / max(1, len(vectors)))
        before: list[tuple[float, float]] = []
        for part in parts:
            first, waited = len(before), began - part.since
            before += [(part.encoded, waited)] * len(part.vectors)
            answers.append(Searched(results[first : len(before)], {"wait": waited, "search": spent}))
        self.stats.searched(hits, asked, before, {"search": spent})
        return answers

    def _explain(self, part: Part, options: Options) -> Searched:
        """Answers to one request, with how they came about."""
        began, asked = time.perf_counter(), options.to_dict()
        hits, trace = explained(self.index, part.vectors, **asked, **_words(asked, [part]))
        waited, spent = began - part.since, time.perf_counter() - began
        encoding = {"encode": part.encoded}
        ways = [members({"explain": one | {"seconds": one["seconds"] | encoding}}) for one in map(trace.to_json, range(len(hits)))]
        results = [b"%b,%b" % one for one in zip(self._renderer.rendered(hits, options.fields), ways, strict=True)]
        self.stats.searched(hits, asked, [(part.encoded, waited)] * len(hits), {"search": spent, **trace.seconds()}, trace)
        return Searched(results, {"wait": waited, "search": spent})


def _words(asked: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """The texts of a hybrid search, beside their vectors."""
    known = [part.texts for part in parts if part.texts is not None]
    return {"text": [text for texts in known for text in texts]} if asked.get("hybrid") and known else {}


def _feedback_file(index: Index, settings: Settings) -> Path | None:
    """The file that was named, else one beside the index folder."""
    if settings.feedback is not None:
        return Path(settings.feedback)
    return None if index.path is None else index.path.with_name(f"{index.path.name}.feedback.jsonl")
