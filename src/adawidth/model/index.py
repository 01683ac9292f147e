"""Index, the object a user holds: a model's rotation, policies and tasks over documents in memory, on disk or in an engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..data import Document, Vectors, as_queries
from ..data.vectors import as_list, one_per_row
from ..errors import DataError, OptionError
from ..formats.documents import Source, of_vectors
from ..hits import Hits
from ..policies import Policy
from ..policies.select import Policies
from ..policies.taper import Bounded, Taper
from ..rotation import Rotated
from ..stages import Store, Written
from ..stages.loop import BATCH, SHORTLIST, joined
from ..stages.words import fused
from ..threads import pool
from ..types import F32, Id, Rows, StrPath
from .drift import calibrated, warn_if_grown
from .texts import given

if TYPE_CHECKING:
    from ..encoders import Encoder
    from .adawidth import AdaWidth

WHOLE, NUMBER = (int, np.integer), (int, float, np.integer, np.floating)
OPTIONS: dict[str, tuple[Any, float | None, str]] = {  # of a search: their types, the least value, and these in words
    **dict.fromkeys(("k", "shortlist", "threads", "start", "nprobe"), (WHOLE, 1, "a whole number from 1 on")),
    "width": (WHOLE, 1, 'a whole number from 1 on, nor "full"'),
    "offset": (WHOLE, 0, "a whole number from 0 on"),
    **dict.fromkeys(("budget", "quality", "min_score"), (NUMBER, -np.inf, "a number")),
    **dict.fromkeys(("policy", "task"), ((str,), None, "a name")),
    "where": ((str, Mapping), None, "a filter: give text or a dictionary"),
}
FEWEST = 64  # queries in a part of a batch, from which on every thread has two parts
SETTLED = ("k", "policy", "budget", "quality", "width", "start", "shortlist", "nprobe", "task", "offset", "min_score", "threads")
NEEDED = ("k", "shortlist", "threads", "offset")
MOST = 2**31 - 1  # documents or threads; what is larger asks for all there are


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
        model.rotation.check_same(store.view.fingerprint, f"the index in {store.place}")

    @property
    def path(self) -> Path | None:
        """The index folder; None in memory."""
        return self.store.path

    @property
    def width(self) -> int:
        """How many coordinates can be read: those that are stored."""
        return self.store.view.width

    @property
    def encoder(self) -> Encoder:
        """The encoder for texts: the one that made the vectors, loaded on first use."""
        from ..encoders import encoder_of

        if self._encoder is None or isinstance(self._encoder, str):
            self._encoder = encoder_of(self.model.record.encoding, self._encoder, trusted=self._trust_encoder)
        return self._encoder

    @property
    def takes_text(self) -> bool:
        """Whether texts can be searched for and added: their encoder was named, is trusted, or comes in an installed package."""
        from ..encoders.load import comes_packaged

        recorded = self.model.record.encoding.get("encoder")
        return self._encoder is not None or (isinstance(recorded, str) and (self._trust_encoder or comes_packaged(recorded)))

    def with_model(self, model: AdaWidth) -> Index:
        """The same documents, searched with another model of the same rotation, such as `refit` returns.

        >>> index.with_model(index.model).search(documents[7])[0][0].id
        7
        """
        return Index(model, self.store, self._encoder, trust_encoder=self._trust_encoder)

    def with_finder(self, finder: Any) -> Index:
        """The same documents, with candidates found by a faiss index of your own, or a file of one: `model.rotate(documents, width=…)` is
        in it, in the documents' order. AdaWidth scores them, and reads on from its own rows.

        >>> import faiss
        >>> finder = faiss.IndexHNSWFlat(32, 16)
        >>> finder.add(index.model.rotate(documents, width=32))
        >>> index.with_finder(finder).search(documents[7])[0][0].id
        7
        """
        from ..engines.faiss import FaissStore

        return Index(self.model, FaissStore(self.store, finder), self._encoder, trust_encoder=self._trust_encoder)

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
        nprobe: int | None = None,
        task: str | None = None,
        where: str | Mapping[str, Any] | None = None,
        offset: int = 0,
        min_score: float | None = None,
        hybrid: bool = False,
        threads: int = 1,
    ) -> Hits:
        """The k best documents for each query, or all if there are fewer. A query is a vector, or a `text` for the encoder.

        Uses the taper at quality .99, unless `policy`, `budget`, `quality` or `width` (a number or "full") says otherwise.
        `task` names a query map (by default the one called "default", if there is one; "none" for no map). `where` filters
        by metadata. `offset` skips that many hits, for paging: pages of one k are parts of one list, `shortlist` long. Of the
        shortlist, the taper reads what may be among the k best by its codes.
        `min_score` drops lower scores. `threads` share the queries, or the scan for a single one of a very large index.
        `nprobe` lists of `ivf` storage are scanned, instead of as many as the query needs; with several segments, so many of the
        one that has most lists, and as large a share of the others'.

        `hybrid` fuses the answer with that of BM25 over titles and texts, by reciprocal rank: scores are then of the fusion. The
        words are those of `text`; vectors that are given with it are used instead of the encoder's.

        >>> hits = index.search(documents[:5], k=3, budget=48)
        >>> [answer[0].id for answer in hits]
        [0, 1, 2, 3, 4]
        """
        if where is not None:
            _check(where=where)
        given = (k, policy, budget, quality, width, start, shortlist, nprobe, task, offset, min_score, threads)
        try:
            full, k, offset, shortlist, nprobe, threads = _settled(*given)
        except TypeError:  # what can't be hashed is none of them: say which
            full, k, offset, shortlist, nprobe, threads = _settled.__wrapped__(*given)
        names, vectors = self._asked_in_words(queries, text, min_score) if hybrid else self._asked(queries, text)
        mapped = self.model.task(task) if task is not None or self.model.tasks else None
        policies, through = (self.model.policies, self.model.rotation) if mapped is None else (mapped.policies, mapped.query_map)
        view = self.store.view if where is None else self.store.where(where)
        if nprobe is not None:
            view = view.probing(nprobe)
        chosen = _chosen(policies, policy, budget, quality, view.width if full else width, start, k, offset, view.start)
        if offset and k + offset > max(k, shortlist) < view.most(k + offset):
            raise OptionError(
                f"offset {offset} and k {k} reach beyond the {max(k, shortlist)} candidates that are ranked: "
                f"give shortlist={k + offset} or more, the same for all pages"
            )
        wanted = self.store.view.most(k + offset)
        if not view.most(1) or not len(vectors):
            return _nothing((len(vectors), wanted), names)
        if hybrid:
            wanted = self.store.view.most(max(k, shortlist))
        whole = view
        if len(vectors) < threads:
            from ..index.view import shared

            view = shared(view, threads)
        rotated = Rotated(vectors, through)
        size = BATCH if view is not whole else min(BATCH, -(-len(vectors) // threads))  # threads share either each query or all of them
        if view is whole and threads > 1 and size >= 2 * FEWEST:
            size = -(-size // 2)  # a thread that is held up leaves its second part to others
        if len(vectors) <= size:
            hits = view.answer(rotated, chosen, wanted, shortlist)
        else:
            parts = [rotated[begin : begin + size] for begin in range(0, len(vectors), size)]
            hits = joined(list(pool(threads).map(lambda part: view.answer(part, chosen, wanted, shortlist), parts)))
        if hybrid:
            hits = _fused(hits, self.store.lexical(view, [str(name) for name in names or ()], wanted), self.store.view.most(k + offset))
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
        """Adds documents, all or none: vectors, or `texts` for the encoder, and what is known of each. Existing ids are refused.

        Without vectors, the index's own encoder encodes each title and text.

        If the documents of the index are numbered, new ones without ids get the next numbers.

        >>> index.add(documents[:1], titles=["A copy"]).documents
        201
        >>> index.get(200).title
        'A copy'
        """
        return self.write(of_vectors(self._given(vectors, ids, titles, texts), titles, texts, metadata))

    def update(
        self,
        vectors: Any = None,
        ids: Iterable[Id] | None = None,
        *,
        titles: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        metadata: Sequence[Mapping[str, Any]] | None = None,
    ) -> Written:
        """Like `add`, but replaces documents that have the same ids.

        >>> index.update(documents[:1], ids=[7], titles=["Now a copy of 0"]).replaced
        1
        """
        return self.write(of_vectors(self._given(vectors, ids, titles, texts), titles, texts, metadata), update=True)

    def write(self, documents: Source, *, update: bool = False) -> Written:
        """Adds or updates documents while they are read from files, batch by batch, in one commit (see formats.documents).

        >>> from adawidth.formats.documents import of_vectors
        >>> index.write(of_vectors(Vectors.of(documents[:1], [200]))).added
        1
        """
        written = self.store.write(documents, update=update)
        warn_if_grown(self.model, written.documents)
        return written

    def remove(self, ids: Id | Iterable[Id]) -> int:
        """Removes documents by id, all or none; returns how many.

        >>> index.remove([7, 8])
        2
        >>> 7 in index
        False
        """
        return self.store.remove(ids)

    def get(self, identifier: Id) -> Document:
        """What is known of one document.

        >>> index.get(7)
        Document(id=7, title='', text='', metadata={})
        """
        return self.documents([identifier])[0]

    def documents(self, ids: Iterable[Id] | None = None) -> list[Document]:
        """What is known of these documents, in this order, or of all documents.

        >>> [document.id for document in index.documents([8, 7])]
        [8, 7]
        """
        return self.store.documents(list(self.store.ids()) if ids is None else ids)

    def vectors(self, ids: Iterable[Id]) -> F32:
        """The stored vectors of these documents: rotated, cut, on disk rounded to float16. (n, m)

        >>> index.vectors([7, 8]).shape
        (2, 64)
        """
        return self.store.vectors(ids)

    def calibrate(self, queries: Any = None) -> Index:
        """The same index with thresholds set again for the documents it has now, without labels: on queries, else on documents.

        To keep them, save the new model, and open the index with it: `open_index(path, AdaWidth.load(path_of_model))`.

        >>> index.calibrate(documents[:50]).model.save("calibrated.model")
        """
        return self.with_model(calibrated(self, queries))

    def compact(self, *, hybrid: bool = False) -> bool:
        """Frees the disk space of removed documents; returns False if there is nothing to do.

        With `hybrid`, an index folder that was made without the words of titles and texts gets them, for hybrid search.

        >>> index.compact()
        False
        """
        return self.store.compact(hybrid=hybrid)

    def snapshot(self, path: StrPath, *, force: bool = False) -> None:
        """Copies the index folder as this object sees it, and verifies the copy. Others may write to the index meanwhile.

        >>> on_disk = index.model.index(documents, "notes.index")
        >>> on_disk.snapshot("copy.index")
        """
        self.store.snapshot(path, force=force)

    def refresh(self) -> bool:
        """Moves on to the last commit of any process; returns whether there was a newer one.

        >>> index.refresh()
        False
        """
        return self.store.refresh()

    def close(self) -> None:
        """Closes the files of an index folder. A `with` block does it by itself.

        >>> index.close()
        """
        self.store.close()

    def facts(self) -> dict[str, Any]:
        """What `adawidth info` prints.

        >>> index.facts()["documents"]
        200
        """
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
        return f"Index({len(self):,} documents in {self.store.place}, {self.width} of {self.model.width} coordinates)"

    def _asked(self, queries: Any, text: str | Sequence[str] | None) -> tuple[Sequence[Id] | None, F32]:
        """Names of the queries where they have any, and their vectors at unit length. (n, D)"""
        if (queries is None) == (text is None):
            raise OptionError("give either query vectors or text")
        if text is not None:
            texts = [text] if isinstance(text, str) else list(text) if isinstance(text, Iterable) else [text]
            if not all(isinstance(one, str) for one in texts):
                raise OptionError(f"text {text!r} is neither a query in words nor a list of them")
            if not texts or not all(one.strip() for one in texts):
                raise DataError("a query is empty: give some words")
            return texts, as_queries(self.encoder.encode(texts, "query"), self._encoder_width)
        named = isinstance(queries, Vectors) and not isinstance(queries.ids, range)
        return queries.ids if named else None, as_queries(queries, self._encoder_width)

    def _asked_in_words(self, queries: Any, text: str | Sequence[str] | None, min_score: float | None) -> tuple[Sequence[Id] | None, F32]:
        """The same for a hybrid search: the texts, and their vectors, which may be given with them."""
        if text is None:
            raise OptionError("hybrid search needs the words of the queries: give text, with or without vectors")
        if min_score is not None:
            raise OptionError("min_score is of cosines, and hybrid scores are sums of reciprocal ranks: leave one of the two out")
        if queries is None:
            return self._asked(None, text)
        vectors = as_queries(queries, self._encoder_width)
        return one_per_row([text] if isinstance(text, str) else text, len(vectors), "queries", "texts"), vectors

    def _given(self, vectors: Any, ids: Iterable[Id] | None, titles: Sequence[str] | None, texts: Sequence[str] | None) -> Vectors:
        """Vectors as given, or of the texts, each with its title before it."""
        if vectors is not None:
            return Vectors.of(vectors, ids, name="documents")
        if texts is None:
            raise OptionError("give vectors, or texts for the encoder")
        from ..encoders.encode import encode_sorted

        words = as_list(texts, "documents", "texts")
        names = None if ids is None else one_per_row(ids, len(words), "documents", "ids")
        heads = None if titles is None else one_per_row(titles, len(words), "documents", "titles")
        shown = [str(name) for name in (range(len(words)) if names is None else names)]
        return Vectors.of(encode_sorted(self.encoder, given(shown, heads, words), "document"), names, name="documents")


@lru_cache(maxsize=64)
def _chosen(policies: Policies, policy: str | None, budget: float | None, quality: float | None, width: int | None, *rest: Any) -> Policy:
    """The same policy for the same question, so that what is prepared for it is prepared once."""
    start, k, offset, coded = rest
    chosen = policies.choose(policy, budget=budget, quality=quality, width=width, start=start, k=k, offset=offset, coded=coded)
    return Bounded(chosen.calibration, chosen.z, chosen.k, budget) if budget is not None and isinstance(chosen, Taper) else chosen


@lru_cache(maxsize=256, typed=True)
def _settled(*given: Any) -> tuple[bool, int, int, int, int | None, int]:
    """Checks the options of a search, once for all searches that have the same; whether the width is "full", and the whole numbers."""
    options = dict(zip(SETTLED, given, strict=True))
    full = isinstance(options["width"], str) and options["width"] == "full"
    _check(**options | ({"width": None} if full else {}))
    k, offset, shortlist, threads = (min(int(options[name]), MOST) for name in ("k", "offset", "shortlist", "threads"))
    return full, k, offset, shortlist, None if options["nprobe"] is None else min(int(options["nprobe"]), MOST), threads


def _check(**options: Any) -> None:
    """Refuses options of a wrong type, before anything looks them up."""
    for name, value in options.items():
        if value is None and name not in NEEDED:  # as most are
            continue
        kinds, least, what = OPTIONS[name]
        if not isinstance(value, kinds) or isinstance(value, bool) or not (least is None or value >= least):
            raise OptionError(f"{name} {value!r} is not {what}")


def _fused(hits: Hits, lexical: Rows, k: int) -> Hits:
    """Answers by vectors fused with those by words."""
    assert hits.documents is not None
    rows, scores = fused([hits.rows, lexical], k, hits.documents.tie_rank)
    return replace(hits, rows=rows, scores=scores)


def _nothing(shape: tuple[int, int], names: Sequence[Id] | None) -> Hits:
    """Answers of an index, or a filter, that leaves no documents."""
    return Hits(np.full(shape, -1), np.full(shape, -np.inf, np.float32), np.zeros(shape[0]), None, None, names or ())
