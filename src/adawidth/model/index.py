"""Index, the object a user holds: a model's rotation, policies and tasks over documents in memory, on disk or in an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..data import Document, Vectors, as_queries
from ..errors import DataError, OptionError
from ..formats.documents import Source
from ..hits import Hits
from ..policies import Policy
from ..policies.select import Policies
from ..rotation import Rotated
from ..stages import Store, Written
from ..stages.loop import BATCH, SHORTLIST, joined
from ..types import F32, Id, StrPath
from .drift import calibrated, check_encoder, warn_if_grown

if TYPE_CHECKING:
    from ..encoders import Encoder
    from .adawidth import AdaWidth


class Index:
    """Documents under a model's rotation, to search and to change. Safe for searches from many threads at once.

    >>> import numpy as np
    >>> from adawidth import AdaWidth
    >>> documents = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    >>> index = AdaWidth.fit(documents, recipe="pca").index(documents)
    >>> index.search(documents[7], k=3)[0][0].id
    7
    """

    def __init__(self, model: AdaWidth, store: Store, encoder: str | Encoder | None = None, *, trust_encoder: bool = False) -> None:
        self.model = model
        self.store = store
        self._encoder_width = model.width
        self._encoder = encoder
        self._trust_encoder = trust_encoder
        model.rotation.check_same(store.view.fingerprint, "this index" if store.path is None else str(store.path))

    @property
    def path(self) -> Path | None:
        """The index folder; None in memory."""
        return self.store.path

    @property
    def width(self) -> int:
        """The widest that can be read."""
        return self.store.view.width

    @property
    def encoder(self) -> Encoder:
        """The encoder of texts: the one that the vectors were made with, loaded when it is first needed."""
        from ..encoders import encoder_of

        if self._encoder is None or isinstance(self._encoder, str):
            self._encoder = encoder_of(self.model.record.encoding, self._encoder, trusted=self._trust_encoder)
        return self._encoder

    def with_model(self, model: AdaWidth) -> Index:
        """The same documents, searched with another model of the same rotation, as `refit` makes them."""
        return Index(model, self.store, self._encoder, trust_encoder=self._trust_encoder)

    def search(
        self,
        queries: Any = None,
        k: int = 10,
        *,
        text: str | Sequence[str] | None = None,
        policy: str | None = None,
        budget: float | None = None,
        quality: float | None = None,
        width: int | str | None = None,
        start: int | None = None,
        shortlist: int = SHORTLIST,
        task: str | None = None,
        where: str | Mapping[str, Any] | None = None,
        offset: int = 0,
        min_score: float | None = None,
        threads: int = 1,
    ) -> Hits:
        """The k best documents for each query (one vector, or one per row; or `text`), all where there are fewer.

        By the taper at quality .99 unless `policy`, `budget`, `quality` or `width` (a number or "full") say otherwise. `task`
        names a query map: without it the one called "default" if there is one; "none" for no map. `where` is a filter on
        metadata. `offset` leaves out the first so many, for paging; `min_score` leaves out lower scores. `threads` share the queries.
        """
        _check(k=k, shortlist=shortlist, threads=threads)
        if not isinstance(offset, int) or offset < 0:
            raise OptionError(f"offset {offset!r} is not a whole number from 0 on")
        names, vectors = self._asked(queries, text)
        mapped = self.model.task(task) if task is not None or self.model.tasks else None
        policies, through = (self.model.policies, self.model.rotation) if mapped is None else (mapped.policies, mapped.query_map)
        view = self.store.view if where is None else self.store.where(where)
        chosen = _chosen(policies, policy, budget, quality, view.width if width == "full" else width, start, k + offset, view.start)
        count = len(view)
        wanted = min(k + offset, count if where is None else len(self.store.view))
        if not count:
            return _nothing((len(vectors), wanted), names)
        rotated = Rotated(vectors, through)
        size = min(BATCH, -(-len(vectors) // threads))
        if len(vectors) <= size:
            hits = view.answer(rotated, chosen, wanted, shortlist)
        else:
            parts = [rotated[begin : begin + size] for begin in range(0, len(vectors), size)]
            with ThreadPoolExecutor(threads) as pool:
                hits = joined(list(pool.map(lambda part: view.answer(part, chosen, wanted, shortlist), parts)))
        if names is not None:
            hits = replace(hits, queries=names)
        return hits.cut(offset, min_score) if offset or min_score is not None else hits

    def add(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """Adds documents, all or none: vectors, or `texts` for the encoder, and what is known of each. Ids that are there are refused.

        In an index whose documents came without ids, they are numbered on.
        """
        written = self.store.add(self._given(vectors, ids, texts), titles=titles, texts=texts, metadata=metadata)
        warn_if_grown(self.model, written.documents)
        return written

    def update(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """Like `add`, in place of the documents that have the same ids."""
        return self.store.update(self._given(vectors, ids, texts), titles=titles, texts=texts, metadata=metadata)

    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Adds or updates documents as they are read from files, batch by batch, in one commit (see formats.documents)."""
        written = self.store.write(documents, update=update)
        warn_if_grown(self.model, written.documents)
        return written

    def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents, all or none: one id, or several; how many."""
        return self.store.remove(ids)

    def get(self, identifier: Id) -> Document:
        """What is known of one document."""
        return self.documents([identifier])[0]

    def documents(self, ids: Iterable[Id] | None = None) -> list[Document]:
        """What is known of these documents, in this order; of all of them without ids."""
        return self.store.documents(list(self.store.ids()) if ids is None else ids)

    def vectors(self, ids: Iterable[Id]) -> F32:
        """These documents' vectors as they are kept: rotated, cut, on disk rounded to float16. (n, m)"""
        return self.store.vectors(ids)

    def calibrate(self, queries: Any = None) -> Index:
        """The same index with thresholds set for the documents it has now, without labels: by queries, or by documents in their place.

        `index.calibrate().model.save(path)` keeps them, for `open_index(path_of_index, AdaWidth.load(path))`.
        """
        return self.with_model(calibrated(self, queries))

    def compact(self) -> bool:
        """Gives back what removed documents took on disk; False where there is nothing to do."""
        return self.store.compact()

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        """A copy of the index folder as this object sees it, checked through and through, whatever is written meanwhile."""
        self.store.snapshot(path, force=force)

    def refresh(self) -> bool:
        """Goes on to the last commit of any process; whether there was a newer one."""
        return self.store.refresh()

    def close(self) -> None:
        """Ends it."""
        self.store.close()

    def facts(self) -> dict[str, Any]:
        """What `adawidth info` prints."""
        return self.store.facts()

    def __len__(self) -> int:
        return len(self.store.view)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self.store

    def __iter__(self) -> Iterator[Id]:
        return self.store.ids()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else f"in {self.path}"
        return f"Index({len(self):,} documents {place}, {self.width} of {self.model.width} coordinates)"

    def _asked(self, queries: Any, text: str | Sequence[str] | None) -> tuple[Sequence[Id] | None, F32]:
        """Names of the queries where they have any, and their vectors at unit length. (n, D)"""
        if (queries is None) == (text is None):
            raise OptionError("give either query vectors or text")
        if text is not None:
            texts = [text] if isinstance(text, str) else list(text)
            if not texts or not all(one.strip() for one in texts):
                raise DataError("a query is empty: give some words")
            return texts, as_queries(self.encoder.encode(texts, "query"), self._encoder_width)
        named = isinstance(queries, Vectors) and not isinstance(queries.ids, range)
        return queries.ids if named else None, as_queries(queries, self._encoder_width)

    def _given(self, vectors: Any, ids: Iterable[Id] | None, texts: Sequence[str] | None) -> Vectors:
        """Vectors as given, or of the texts, if they may be the index's own encoder's."""
        if vectors is None and texts is None:
            raise OptionError("give vectors, or texts for the encoder")
        given = Vectors.of(self.encoder.encode(list(texts or ()), "document") if vectors is None else vectors, ids, name="documents")
        if given.width != self._encoder_width:
            raise DataError(f"documents are {given.width} wide, the model {self._encoder_width}: use the encoder the model was fitted for")
        check_encoder(self.model, self.store.view, given)
        return given


@lru_cache(maxsize=64)
def _chosen(policies: Policies, policy: str | None, budget: float | None, quality: float | None, width: int | None, *rest: Any) -> Policy:
    """The same policy for the same question, so that what is prepared for it is prepared once."""
    start, k, coded = rest
    return policies.choose(policy, budget=budget, quality=quality, width=width, start=start, k=k, coded=coded)


def _check(**counts: int) -> None:
    for name, value in counts.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise OptionError(f"{name} {value!r} is not a whole number from 1 on")


def _nothing(shape: tuple[int, int], names: Sequence[Id] | None) -> Hits:
    """Answers of an index, or a filter, that leaves no documents."""
    return Hits(np.full(shape, -1), np.full(shape, -np.inf, np.float32), np.zeros(shape[0]), None, None, names or ())
