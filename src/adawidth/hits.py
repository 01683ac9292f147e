"""What a search returns: Hits, one Answer per query, each a sequence of Hit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import Any, NamedTuple, Self, overload

import numpy as np

from .data import Document, Documents
from .errors import DataError
from .types import F32, F64, I64, Id, Rows

SHOWN = 10  # answers, and hits of an answer, in a repr


class Read(NamedTuple):
    """What each query cost: candidates read, coordinates read of them, bytes of scan and candidates, coordinates of the query
    that were rotated. (queries,) each"""

    candidates: I64
    coordinates: I64
    bytes: I64
    rotated: I64


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of an answer; unpacks as (id, score).

    >>> name, score = Hit("d7", 0.5)
    >>> name
    'd7'
    """

    id: Id
    score: float
    title: str = ""
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        yield self.id
        yield self.score

    def to_dict(self) -> dict[str, Any]:
        """Id and score, and title, text and metadata where there are any.

        >>> Hit("d7", 0.5, title="Umbrella").to_dict()
        {'id': 'd7', 'score': 0.5, 'title': 'Umbrella'}
        """
        known = {"title": self.title, "text": self.text, "metadata": dict(self.metadata)}
        return {"id": self.id, "score": self.score, **{name: value for name, value in known.items() if value}}


class Answer(Sequence[Hit]):
    """One query's answer, best first.

    >>> answer = Answer([Hit("a", 0.9), Hit("b", 0.4)], mean_width=48.0)
    >>> answer[0].id, len(answer), [score for _, score in answer]
    ('a', 2, [0.9, 0.4])
    """

    def __init__(self, hits: Sequence[Hit], mean_width: float, query: Id = "") -> None:
        self._hits = tuple(hits)
        self.mean_width = mean_width
        self.query = query  # the query's text or id

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> Answer: ...
    def __getitem__(self, place: int | slice) -> Hit | Answer:
        return Answer(self._hits[place], self.mean_width, self.query) if isinstance(place, slice) else self._hits[place]

    def __len__(self) -> int:
        return len(self._hits)

    def to_dict(self) -> dict[str, Any]:
        """As `search --json` prints it.

        >>> answer[:1].to_dict()
        {'query': '', 'mean_width': 48.0, 'hits': [{'id': 'a', 'score': 0.9}]}
        """
        return {"query": self.query, "mean_width": self.mean_width, "hits": [hit.to_dict() for hit in self._hits]}

    def __repr__(self) -> str:
        shown = ", ".join(f"{hit.id!r}: {hit.score:.4f}" for hit in self._hits[:SHOWN])
        return f"Answer({shown}{', …' if len(self) > SHOWN else ''}; mean width {self.mean_width:.1f})"


@dataclass(frozen=True, eq=False, repr=False)
class Hits(Sequence[Answer]):
    """Answers to a batch of queries: a sequence of one Answer per query, and the same as arrays.

    >>> documents = Documents(["a", "b", "c"])
    >>> hits = Hits(np.array([[2, 0]]), np.array([[0.9, 0.4]], np.float32), np.array([48.0]), documents, queries=["q1"])
    >>> hits[0][0].id, hits.ids, hits.mean_width
    ('c', [['c', 'a']], 48.0)
    """

    rows: Rows  # (queries, k) of documents, best first; -1 where there are fewer than k
    scores: F32  # (queries, k)
    widths: F64  # (queries,) coordinates read per shortlist candidate
    documents: Documents | None = None
    read: Read | None = None  # of answers by stages
    queries: Sequence[Id] = ()  # texts or ids of the queries, where they are known

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> Hits: ...
    def __getitem__(self, place: int | slice) -> Answer | Hits:
        if isinstance(place, slice):
            read = None if self.read is None else Read(*(part[place] for part in self.read))
            rows, scores, widths = self.rows[place], self.scores[place], self.widths[place]
            return Hits(rows, scores, widths, self.documents, read, self.queries[place])
        rows = self.rows[place]
        known = self._known(rows[rows >= 0].tolist())
        scores = self.scores[place][rows >= 0].tolist()
        found = [Hit(one.id, score, one.title, one.text, one.metadata) for one, score in zip(known, scores, strict=True)]
        return Answer(found, float(self.widths[place]), self.queries[place] if self.queries else range(len(self))[place])

    @property
    def mean_width(self) -> float:
        """Coordinates read per candidate, averaged over the queries."""
        return float(self.widths.mean()) if len(self.widths) else 0.0

    @cached_property
    def ids(self) -> list[list[Id]]:
        """Document ids, one list per query, without padding."""
        ids: Sequence[Id] = self.documents.ids if self.documents is not None else range(int(self.rows.max(initial=-1)) + 1)
        return [[ids[row] for row in ranked if row >= 0] for ranked in self.rows.tolist()]

    def top(self, k: int) -> Self:
        """The first k of every answer.

        >>> hits.top(1).ids
        [['c']]
        """
        return replace(self, rows=self.rows[:, :k], scores=self.scores[:, :k])

    def cut(self, offset: int, min_score: float | None) -> Hits:
        """Without the first `offset` of every answer, and without scores below `min_score`.

        >>> hits.cut(0, 0.5).ids
        [['c']]
        """
        rows, scores = self.rows[:, offset:], self.scores[:, offset:]
        if min_score is not None:
            low = ~(scores >= min_score)
            rows, scores = np.where(low, -1, rows), np.where(low, np.float32(-np.inf), scores)
        return replace(self, rows=rows, scores=scores)

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary per query: query, mean_width and hits.

        >>> hits.to_dicts()[0]["query"]
        'q1'
        """
        return [answer.to_dict() for answer in self]

    def to_run(self, queries: Sequence[Id] | None = None) -> dict[str, dict[str, float]]:
        """{query: {document: score}}, ids as strings, best first: what ranx.Run, ir_measures and pytrec_eval take.

        `queries` are the ids of the queries, if the hits don't have them. A score is lowered where trec_eval would reorder documents.

        >>> {query: list(found) for query, found in hits.to_run().items()}
        {'q1': ['c', 'a']}
        """
        names = list(queries if queries is not None else self.queries or range(len(self)))
        if len(names) != len(self):
            raise DataError(f"{len(names)} query ids but answers to {len(self)} queries: give one id an answer")
        return {str(name): {document: float(score) for document, score in found} for name, found in zip(names, self.ranked(), strict=True)}

    def ranked(self) -> Iterator[Iterator[tuple[str, np.float32]]]:
        """The documents of each answer, best first, with scores that keep them so wherever ties are broken as trec_eval does.

        >>> [[name for name, score in found] for found in hits.ranked()]
        [['c', 'a']]
        """
        for documents, rows, scores in zip(self.ids, self.rows, self.scores, strict=True):
            yield _lowered(map(str, documents), scores[rows >= 0])

    def to_pandas(self) -> Any:
        """A data frame with one row per hit: query, rank, id, score, title, text, metadata.

        >>> hits.to_pandas()["id"].to_list()
        ['c', 'a']
        """
        from pandas import DataFrame  # type: ignore[import-untyped, unused-ignore]

        columns = ("query", "rank", "id", "score", "title", "text", "metadata")
        found = [(one.query, rank, *hit, hit.title, hit.text, dict(hit.metadata)) for one in self for rank, hit in enumerate(one, 1)]
        return DataFrame(found, columns=list(columns))

    def __repr__(self) -> str:
        return f"Hits({len(self)} queries, at most {self.rows.shape[1]} hits each, mean width {self.mean_width:.1f})"

    def _repr_html_(self) -> str:
        head = "<tr><th>query</th><th>rank</th><th>id</th><th>score</th><th>title</th></tr>"
        rows = [(one.query, rank, hit.id, f"{hit.score:.4f}", hit.title) for one in self[:SHOWN] for rank, hit in enumerate(one[:SHOWN], 1)]
        cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
        return f"<p>{escape(repr(self))}</p><table>{head}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    def __getstate__(self) -> dict[str, Any]:
        """Pickles what is known of the documents that were found, without the index."""
        found = np.unique(self.rows[self.rows >= 0])
        place = np.searchsorted(found, self.rows)
        rows = np.where(self.rows >= 0, place, -1)
        return {**vars(self), "rows": rows, "documents": _Found(self._known(found.tolist()))}

    def _known(self, rows: Sequence[int]) -> list[Document]:
        return [Document(row) for row in rows] if self.documents is None else self.documents.describe(rows)


def _lowered(names: Iterable[str], scores: F32) -> Iterator[tuple[str, np.float32]]:
    """Each name with its score, or with the next lower one if trec_eval (by score, then by id, both descending) would put it higher."""
    above, name_above = np.float32(np.inf), ""
    for name, score in zip(names, scores, strict=True):
        lowered = min(np.float32(score), above)
        if lowered == above and name > name_above:
            lowered = np.nextafter(above, np.float32(-np.inf))
        yield name, lowered
        above, name_above = lowered, name


class _Found(Documents):
    """Documents of answers that were pickled."""

    def __init__(self, known: Sequence[Document]) -> None:
        super().__init__([document.id for document in known])
        self._known = known

    def describe(self, rows: Any) -> list[Document]:
        return [self._known[row] for row in rows]
