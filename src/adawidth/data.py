"""What everything else is made of: Vectors, Qrels, Dataset, and the documents behind an index by row.

The one place where input is validated. Ids are strings, or row numbers where plain arrays are given; inside the package
everything works on rows, and `Judged` holds relevance judgements as CSR arrays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from .errors import DataError, LeakError, OptionError
from .types import F32, F64, I64, Floats, Id, Rows

log = logging.getLogger("adawidth")

BLOCK = 16_384  # rows read at a time
SHORTEST = 1e-12  # a vector's length; below it there is nothing but rounding


def unit(x: Floats) -> F32:
    """Rows of `x` as float32 of length one; a zero row stays zero."""
    x = np.asarray(x, np.float32)
    norms = np.sqrt(np.add.reduce(x * x, axis=-1, keepdims=True))
    return np.asarray(x / np.maximum(norms, SHORTEST), np.float32)


@dataclass(frozen=True, eq=False)
class Vectors:
    """One vector a row with its id. `values` may be memory-mapped; rows come out as float32 of unit length."""

    values: Floats  # (n, D)
    ids: Sequence[Id]
    name: str = "vectors"  # what messages call them, a file's path where there is one
    split: str | None = None  # set on queries that stand for a split, so that a fit can refuse test queries

    @classmethod
    def of(cls, values: Any, ids: Iterable[Id] | None = None, *, name: str = "vectors") -> Vectors:
        """Validated vectors, one per row: finite, no zero rows, ids unique and as many as rows.

        Takes what people have: arrays, lists of lists, tensors, columns of data frames.
        """
        if isinstance(values, Vectors):
            return values
        array = as_matrix(values, name)
        rows, width = array.shape
        if rows == 0 or width == 0:
            raise DataError(f"{name}: there are no vectors, {rows} rows of width {width}")
        vectors = cls(array, range(rows) if ids is None else _checked_ids(ids, rows, name), name)
        vectors._check_rows()
        return vectors

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} of width {self.width}, {self.name})"

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def width(self) -> int:
        """The encoder width D."""
        return int(self.values.shape[1])

    def read(self, rows: slice | Rows) -> F32:
        """These rows, float32, unit length."""
        return unit(self.values[rows])

    def all(self) -> F32:
        """Every row in memory, float32, unit length."""
        return self.read(slice(None))

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, F32]]:
        """(first row, rows) block by block, so that a memory-mapped file is never whole in memory."""
        for start in range(0, len(self), size):
            yield start, self.read(slice(start, start + size))

    def select(self, rows: ArrayLike, split: str | None = None) -> Vectors:
        """These rows as vectors of their own, kept with their ids and, where given, tagged with a split."""
        picked = np.asarray(rows, np.int64)
        return Vectors(self.values[picked], [self.ids[i] for i in picked], self.name, split or self.split)

    @cached_property
    def row_of(self) -> dict[Id, int]:
        """The row of each id."""
        return {identifier: row for row, identifier in enumerate(self.ids)}

    def _check_rows(self) -> None:
        longest, shortest = 0.0, np.inf
        for start in range(0, len(self), BLOCK):
            block = self.values[start : start + BLOCK]
            if block.dtype != np.float32:
                with np.errstate(over="ignore"):
                    block = np.asarray(block, np.float32)
            norms = np.sqrt(np.einsum("nd,nd->n", block, block))
            low, high = float(norms.min()), float(norms.max())
            if not (low >= SHORTEST and high < np.inf):  # NaN is neither
                self._refuse(start, norms)
            longest, shortest = max(longest, high), min(shortest, low)
        if longest > 1.01 or shortest < 0.99:
            log.warning(
                "%s: lengths run from %.3g to %.3g and are brought to 1; this changes the ranking of encoders made for raw inner products",
                self.name, shortest, longest,
            )  # fmt: skip

    def _refuse(self, start: int, norms: F32) -> NoReturn:
        infinite = ~np.isfinite(norms)
        bad, what = (infinite, "NaN or infinite values") if infinite.any() else (norms == 0, "only zeros")
        if not bad.any():
            bad, what = norms < SHORTEST, f"a length below {SHORTEST:g}"
        row = start + int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{self.name}: row {row} (id {self.ids[row]!r}) has {what}; "
            f"{int(bad.sum())} of rows {start} to {start + len(norms) - 1} have: drop or re-encode them"
        )


def as_matrix(values: Any, name: str) -> Floats:
    """One vector per row, as an array: from arrays, lists, tensors and columns of data frames; one vector is one row."""
    if hasattr(values, "detach"):  # a tensor of torch, on whatever device
        values = values.detach().cpu().numpy()
    elif hasattr(values, "to_numpy"):  # a column of pandas or polars
        values = values.to_numpy()
    given = isinstance(values, np.ndarray) and values.dtype.kind != "O"
    try:
        array = values if given else np.array([np.asarray(row, np.float32) for row in values], np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name}: expected one vector of numbers per row, all of one width: {error}") from None
    if array.ndim == 1 and array.size:
        array = array[None]
    if array.ndim != 2:
        raise DataError(f"{name}: expected one vector per row (2 dimensions), found {array.ndim}: reshape the array")
    if array.dtype.kind != "f":
        raise DataError(f"{name}: expected floating-point numbers, found {array.dtype}: convert to float32 or float16")
    return array if array.dtype.itemsize <= 8 else np.asarray(array, np.float64)


def as_queries(values: Any, width: int) -> F32:
    """Queries as float32 of unit length, one per row; their own lengths change no ranking, so nothing is said of them. (n, D)"""
    values = values.values if isinstance(values, Vectors) else values
    plain = isinstance(values, np.ndarray) and values.dtype == np.float32 and values.ndim in (1, 2)
    array = np.atleast_2d(values) if plain else np.asarray(as_matrix(values, "queries"), np.float32)
    if array.shape[1] != width:
        raise DataError(f"queries are {array.shape[1]} wide, the model {width}: use the encoder the model was fitted for")
    norms = np.sqrt(np.einsum("nd,nd->n", array, array))
    if len(array) and not (norms.min() > 0 and norms.max() < np.inf):  # NaN is neither
        row = int(np.flatnonzero(~((norms > 0) & (norms < np.inf)))[0])
        raise DataError(f"queries: row {row} has {'only zeros' if norms[row] == 0 else 'NaN or infinite values'}: re-encode it")
    return np.ascontiguousarray(array / norms[:, None])


def _checked_ids(ids: Iterable[Id], rows: int, name: str) -> Sequence[Id]:
    ids = list(ids.to_list() if hasattr(ids, "to_list") else ids)
    if len(ids) != rows:
        raise DataError(f"{name}: {rows} vectors but {len(ids)} ids: give one id per row, in row order")
    for row, identifier in enumerate(ids):
        if not isinstance(identifier, str | int | np.integer) or isinstance(identifier, bool):
            raise DataError(f"{name}: the id in row {row} is {identifier!r}: ids are strings or whole numbers")
    if len(set(ids)) != len(ids):
        first: dict[Id, int] = {}
        for row, identifier in enumerate(ids):
            if identifier in first:
                raise DataError(f"{name}: id {identifier!r} stands in rows {first[identifier]} and {row}: ids must be unique")
            first[identifier] = row
    return ids


@dataclass(frozen=True)
class Document:
    """What an index knows of a document besides its vector."""

    id: Id
    title: str = ""
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Documents:
    """The documents behind an index by row: their ids, how ids break ties, and what else is known of them."""

    def __init__(self, ids: Sequence[Id]) -> None:
        self.ids = ids

    @cached_property
    def tie_rank(self) -> I64:
        """Place of each row when ids are sorted descending as strings: how trec_eval orders equal scores."""
        order = sorted(range(len(self.ids)), key=lambda row: str(self.ids[row]), reverse=True)
        rank = np.empty(len(self.ids), np.int64)
        rank[order] = np.arange(len(self.ids))
        return rank

    def describe(self, rows: Iterable[int]) -> list[Document]:
        """What is known of the documents in these rows."""
        return [Document(self.ids[row]) for row in rows]


@dataclass(frozen=True, eq=False)
class Judged:
    """Relevance judgements as CSR arrays: those of query i are `documents[offsets[i]:offsets[i + 1]]`, with their grades."""

    offsets: I64  # (queries + 1,)
    documents: Rows
    grades: F64

    @classmethod
    def of(cls, per_query: Sequence[Mapping[int, float]]) -> Judged:
        """From one {document row: grade} a query."""
        offsets = np.cumsum([0, *(len(grades) for grades in per_query)]).astype(np.int64)
        documents = np.array([row for grades in per_query for row in grades], np.int64)
        return cls(offsets, documents, np.array([g for grades in per_query for g in grades.values()], np.float64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def positives(self, query: int) -> Rows:
        """Rows of the documents relevant to this query (grade above 0)."""
        part = slice(self.offsets[query], self.offsets[query + 1])
        return self.documents[part][self.grades[part] > 0]

    def select(self, queries: ArrayLike) -> Judged:
        """The judgements of these queries alone, in this order."""
        spans = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in np.asarray(queries, np.int64)]
        flat = np.concatenate(spans) if spans else np.empty(0, np.int64)
        offsets = np.cumsum([0, *(len(span) for span in spans)]).astype(np.int64)
        return Judged(offsets, self.documents[flat], self.grades[flat])

    @cached_property
    def relevant(self) -> Rows:
        """Every document that is relevant to some query, sorted, once."""
        return np.unique(self.documents[self.grades > 0])


@dataclass(frozen=True, eq=False)
class Qrels:
    """Relevance labels: for each query id the grade of each judged document id; above 0 is relevant."""

    grades: Mapping[Id, Mapping[Id, float]]
    name: str = "qrels"

    @classmethod
    def of(cls, given: Any, name: str = "qrels") -> Qrels:
        """Labels as people have them: {query: {document: grade}}, {query: [documents]}, (query, document[, grade]) tuples, or a
        data frame with these three columns in this order."""
        if isinstance(given, Qrels):
            return cls(given.grades, name)
        if hasattr(given, "columns"):
            given = list(zip(*(given[column].to_list() for column in list(given.columns)[:3]), strict=True))
        grades: dict[Id, dict[Id, float]] = {}
        try:
            if isinstance(given, Mapping):
                pairs = ((query, known) for query, known in given.items())
                return cls({q: dict(known) if isinstance(known, Mapping) else dict.fromkeys(known, 1.0) for q, known in pairs}, name)
            for query, document, *grade in given:
                grades.setdefault(query, {})[document] = float(grade[0]) if grade else 1.0
        except (TypeError, ValueError) as error:
            wanted = "{query: {document: grade}}, (query, document, grade) tuples or a data frame with these columns"
            raise DataError(f"{name}: expected {wanted}, found {type(given).__name__} ({error})") from None
        return cls(grades, name)

    def __repr__(self) -> str:
        return f"Qrels({len(self):,} queries, {self.name})"

    def __len__(self) -> int:
        return len(self.grades)

    def judged(self, queries: Vectors, documents: Vectors) -> Judged:
        """The same in rows, one entry for each of `queries`."""
        row_of = documents.row_of
        return Judged.of([{row_of[d]: g for d, g in self.grades.get(q, {}).items()} for q in queries.ids])

    def known(self, queries: Vectors, documents: Vectors, *, skip_unknown: bool = False) -> Qrels:
        """These labels, checked: every id has a vector. With `skip_unknown` the others are left out with a note."""
        unknown = [(q, d) for q, grades in self.grades.items() for d in grades if d not in documents.row_of]
        strangers = [q for q in self.grades if q not in queries.row_of]
        total = sum(map(len, self.grades.values()))
        if not unknown and not strangers:
            return self
        if not skip_unknown:
            if strangers:
                raise DataError(
                    f"{self.name}: query {strangers[0]!r} has no vector; {len(strangers)} of {len(self)} queries have none "
                    f"in {queries.name}: encode them, or leave them out with skip_unknown (--skip-unknown)"
                )
            q, d = unknown[0]
            raise DataError(
                f"{self.name}: query {q!r} names document {d!r}, which has no vector; {len(unknown)} of {total} judgements "
                f"name documents that are not in {documents.name}: encode them, or leave them out with skip_unknown (--skip-unknown)"
            )
        kept = {
            q: known
            for q, grades in self.grades.items()
            if q in queries.row_of and (known := {d: g for d, g in grades.items() if d in documents.row_of})
        }
        gone, left = len(self) - len(kept), total - sum(map(len, kept.values()))
        log.warning("%s: left out %d of %d queries and %d of %d judgements without a vector", self.name, gone, len(self), left, total)
        return replace(self, grades=kept)


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with their judgements in rows (none without labels) and the row of the document each one is, or -1."""

    vectors: Vectors
    judged: Judged | None
    own: Rows

    def __len__(self) -> int:
        return len(self.vectors)

    def select(self, rows: ArrayLike) -> Queries:
        """These queries alone."""
        picked = np.asarray(rows, np.int64)
        judged = None if self.judged is None else self.judged.select(picked)
        return Queries(self.vectors.select(picked), judged, self.own[picked])


@dataclass(frozen=True, eq=False)
class Learning:
    """What a fit may see: documents, train and dev queries. Test queries are refused when it is made."""

    documents: Vectors
    train: Queries
    dev: Queries

    def __post_init__(self) -> None:
        for part in (self.train, self.dev):
            if part.vectors.split == "test":
                raise LeakError(f"{part.vectors.name}: these are test queries; fit on the train split and choose on dev")
        for part in (self.train, self.dev):
            if len(part) and part.vectors.width != self.documents.width:
                raise DataError(
                    f"{part.vectors.name}: queries are {part.vectors.width} wide, documents ({self.documents.name}) "
                    f"{self.documents.width}: encode both with one encoder"
                )

    @property
    def labelled(self) -> bool:
        """Whether there are labels to learn from."""
        return self.train.judged is not None

    @cached_property
    def positives(self) -> Rows:
        """Rows of the documents relevant to a train or dev query: what a fit may have seen."""
        parts = [part.judged.relevant for part in (self.train, self.dev) if part.judged is not None]
        return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Documents, queries and, for each split, labels."""

    documents: Vectors
    queries: Vectors
    qrels: Mapping[str, Qrels] = field(default_factory=dict)
    name: str = "dataset"
    encoder: str = ""
    queries_are_documents: bool = False
    encoding: Mapping[str, Any] = field(default_factory=dict)  # what meta.json says of the encoder: its name, fingerprint and prompts

    def __post_init__(self) -> None:
        if self.queries.width != self.documents.width:
            raise DataError(
                f"{self.queries.name}: queries are {self.queries.width} wide, documents ({self.documents.name}) "
                f"{self.documents.width}: encode both with one encoder"
            )

    def __repr__(self) -> str:
        labels = ", ".join(f"{split}: {len(qrels):,}" for split, qrels in self.qrels.items()) or "none"
        sizes = f"{len(self.documents):,} documents, {len(self.queries):,} queries of width {self.documents.width}"
        return f"Dataset({self.name}, {self.encoder or 'no encoder named'}: {sizes}; labels {labels})"

    @property
    def origin(self) -> dict[str, Any]:
        """Where the vectors come from, for the record of what is learned from them."""
        return {"dataset": self.name, "encoder": self.encoder, **({"encoding": dict(self.encoding)} if self.encoding else {})}

    def queries_of(self, split: str) -> Vectors:
        """The query vectors of a split, in the order of its labels, tagged so that no fit takes test queries."""
        return self.queries.select([self.queries.row_of[q] for q in self._split(split).grades], split)

    def split(self, split: str) -> Queries:
        """The queries of a split with their judgements."""
        vectors = self.queries_of(split)
        return Queries(vectors, self._split(split).judged(vectors, self.documents), self._own(vectors))

    def learning(self, *, labels: bool = True, seed: int = 0) -> Learning:
        """Train and dev queries. Without a dev split about 15 % of train (see `held_out`) is it; without labels queries alone."""
        if labels and "train" not in self.qrels:
            found = ", ".join(sorted(self.qrels)) or "none"
            raise DataError(f"{self.name}: no labels for the train split, found {found}: add qrels/train.tsv")
        train = self.split("train") if "train" in self.qrels else self._unlabelled()
        dev = self.split("dev") if "dev" in self.qrels else None
        self._refuse_leaks(train, dev)
        if not len(self.queries):
            return Learning(self.documents, train, train)
        if len(train) < (2 if dev is None else 1):
            raise DataError(f"{self.name}: {len(train)} queries are left to fit on, the others are held back: add queries or a train split")
        if dev is None:
            train, dev = held_out(train, seed)
        if not labels:
            train, dev = (replace(part, judged=None) for part in (train, dev))
        return Learning(self.documents, train, dev)

    def _split(self, split: str) -> Qrels:
        if split not in self.qrels:
            raise OptionError(f"{self.name} has no split {split!r}; it has {', '.join(sorted(self.qrels)) or 'none (no labels)'}")
        return self.qrels[split]

    def _refuse_leaks(self, *parts: Queries | None) -> None:
        tested = self.qrels["test"].grades if "test" in self.qrels else {}
        leaks = [q for part in parts if part is not None for q in part.vectors.ids if q in tested]
        if leaks:
            both = f"{len(leaks)} of {len(tested)} test queries are"
            raise LeakError(f"{self.name}: query {leaks[0]!r} is in the test split and in train or dev; {both}: keep each in one split")

    def _unlabelled(self) -> Queries:
        """All queries that no labelled split holds back for testing."""
        tested = {q for name, qrels in self.qrels.items() if name != "train" for q in qrels.grades}
        vectors = self.queries.select([row for row, q in enumerate(self.queries.ids) if q not in tested])
        return Queries(vectors, None, self._own(vectors))

    def _own(self, vectors: Vectors) -> Rows:
        row_of = self.documents.row_of if self.queries_are_documents else {}
        return np.array([row_of.get(q, -1) for q in vectors.ids], np.int64)


def held_out(queries: Queries, seed: int, share: float = 0.15) -> tuple[Queries, Queries]:
    """(train, dev): a seeded share of the queries, none of whose relevant documents is a train query's where that can be had.

    Queries that share a relevant document hang together; whole groups are taken in random order, those that would
    overshoot the share are passed over, and only where this leaves fewer than half of it single queries fill it up.
    """
    wanted = max(1, round(share * len(queries)))
    rng = np.random.default_rng(seed)
    groups = _groups(queries.judged) if queries.judged is not None else [[i] for i in range(len(queries))]
    taken: list[int] = []
    for place in rng.permutation(len(groups)):
        if len(taken) + len(groups[place]) <= wanted:
            taken += groups[place]
    if len(taken) < wanted / 2:
        rest = np.setdiff1d(np.arange(len(queries)), taken)
        taken += rng.choice(rest, wanted - len(taken), replace=False).tolist()
    dev = np.sort(np.array(taken, np.int64))
    return queries.select(np.setdiff1d(np.arange(len(queries)), dev)), queries.select(dev)


def _groups(judged: Judged) -> list[list[int]]:
    """Queries joined by shared relevant documents, as lists (union-find over documents)."""
    parent = list(range(len(judged)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    owner: dict[int, int] = {}
    for query in range(len(judged)):
        for document in judged.positives(query).tolist():
            parent[root(query)] = root(owner.setdefault(document, query))
    groups: dict[int, list[int]] = {}
    for query in range(len(judged)):
        groups.setdefault(root(query), []).append(query)
    return list(groups.values())
