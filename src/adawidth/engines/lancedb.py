"""LanceDB: one table, with the prefix as the vector column that is searched and the coordinates behind it in a column for each step.

The data set lies in a folder or an object store, and there is no server: the survivors' columns are fetched and scored here. A write is a
new version of the table, which every client sees at its next question.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import BTree, IvfFlat

from ..data import Document
from ..errors import ArtifactError, OptionError
from ..filters.conditions import Among, Field, Filter, Joined, Missing, Not, Order
from ..types import F32
from .base import Engine, Found, Layout, Row, Settings, cosines

INDEXED = 100_000  # rows from which the prefix gets an IVF index; fewer are scanned, exactly
PARTITION = 4_096  # rows in a list of the IVF index
PROBED = 0.3  # share of the lists that a search reads
FEWEST = 20  # lists, where there are so many
STALE = 0.2  # share of rows outside the index from which it is made anew
QUERIES = 128  # in a request
PAGE = 5_000  # rows in a request
CHUNK = 1 << 20  # bytes of the model in a row
BIGGEST = 2**63


class LanceDB(Engine):
    """A table in a folder, lancedb:///folder or lancedb://relative, or in an object store, lancedb+s3://bucket/path (gs and az too), whose
    credentials come from the environment as for any client of that store."""

    name = "lancedb"
    one_request = True
    refused = (RuntimeError, OSError, ValueError)

    def __init__(self, url: str, collection: str) -> None:
        super().__init__(url, collection)
        scheme, _, path = url.partition("://")
        store = scheme.partition("+")[2]
        self._uri = f"{store}://{path}" if store else path
        self._folder = None if store else Path(path)
        self._about = f"{collection}_adawidth"

    def exists(self) -> bool:
        if self._folder is not None and not self._folder.is_dir():
            return False
        return self._there(self._about)

    def create(self, layout: Layout, model: bytes) -> None:
        self.layout = layout
        parts = [model[begin : begin + CHUNK] for begin in range(0, len(model), CHUNK)] or [b""]
        about = pa.table(
            {"part": range(len(parts)), "layout": [layout.to_json()] * len(parts), "model": pa.array(parts, pa.large_binary())}
        )
        self.drop()  # what a push that was cut off has left: the settings are made last
        self._ask(lambda: self._base.create_table(self.collection, schema=self._schema()))
        self._ask(lambda: self._base.create_table(self._about, about))

    def open(self) -> bytes:
        if not self.exists():
            raise ArtifactError(f"{self.where}: there is no such collection: make it with `adawidth push`")
        rows = self._ask(lambda: self._base.open_table(self._about).to_arrow()).sort_by("part").to_pylist()
        if not rows:
            raise ArtifactError(f"{self.where}: its table of settings is empty: push it again with --force")
        self.layout = Layout.of_json(rows[0]["layout"], self.where)
        return b"".join(row["model"] for row in rows)

    def settings(self) -> Settings:
        rows = self._ask(lambda: self._base.open_table(self._about).search().where("part = 0").select(["layout"]).to_list())
        return Settings.of_json(rows[0]["layout"] if rows else "", self.where)

    def settle(self, settings: Settings) -> None:
        self._ask(lambda: self._base.open_table(self._about).update(where="part = 0", values={"layout": settings.to_json()}))

    def clear(self) -> None:
        if self._there(self.collection):
            self._ask(lambda: self._base.drop_table(self.collection))
        self.__dict__.pop("_table", None)

    def drop(self) -> None:
        for name in (self._about, self.collection):
            if self._there(name):
                self._ask(lambda name=name: self._base.drop_table(name))  # type: ignore[misc]
        self.__dict__.pop("_table", None)

    def count(self) -> int:
        return int(self._ask(lambda: self._table.count_rows()))

    def ids(self) -> Iterator[str]:
        """As of one version."""
        found = self._ask(lambda: self._table.search().select(["id"]).limit(max(self.count(), 1)).to_arrow())
        yield from found["id"].to_pylist()

    def present(self, ids: Sequence[str]) -> set[str]:
        return {name for rows in self._rows(ids, ["id"]) for name in rows["id"].to_pylist()}

    def write(self, rows: Sequence[Row], *, update: bool) -> None:
        table = self._arrow(rows)
        self._ask(lambda: self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(table))

    def remove(self, ids: Sequence[str]) -> None:
        for part in _pages(ids):
            self._ask(lambda part=part: self._table.delete(_among("id", part)))  # type: ignore[misc]

    def finish(self) -> None:
        """Joins small files, gives old versions up, and indexes: ids always, the prefix where there are many rows."""
        self._ask(lambda: self._table.optimize())
        count, indexes = self.count(), {index.columns[0]: index.name for index in self._table.list_indices()}
        if "id" not in indexes and count:
            self._ask(lambda: self._table.create_index("id", config=BTree()))
        if count >= INDEXED:
            known = self._table.index_stats(indexes["prefix"]) if "prefix" in indexes else None
            if known is None or known.num_unindexed_rows > STALE * count:
                config = IvfFlat(distance_type="cosine", num_partitions=_partitions(count))
                self._ask(lambda: self._table.create_index("prefix", config=config, replace=True))

    def documents(self, ids: Sequence[str]) -> Mapping[str, Document]:
        found = (row for rows in self._rows(ids, ["id", "title", "text", "metadata"]) for row in rows.to_pylist())
        return {row["id"]: Document(row["id"], row["title"], row["text"], json.loads(row["metadata"])) for row in found}

    def vectors(self, ids: Sequence[str]) -> Mapping[str, F32]:
        return {
            name: vector
            for rows in self._rows(ids, ["id", *self._blocks])
            for name, vector in zip(rows["id"].to_pylist(), _joined(rows, self._blocks), strict=True)
        }

    def nearest(self, queries: F32, k: int, condition: Filter | None, *, exact: bool = False) -> list[Found]:
        wanted = None if condition is None else _condition(condition)
        return [
            found
            for begin in range(0, len(queries), QUERIES)
            for found in self._nearest(queries[begin : begin + QUERIES], k, wanted, exact=exact)
        ]

    def widened(self, queries: F32, k: int, shortlist: int, condition: Filter | None) -> list[Found]:
        """The shortlist brings along what lies behind its prefix, and is scored here."""
        wanted, width, start = None if condition is None else _condition(condition), queries.shape[1], self.layout.start
        place = self.layout.widths.index(width)
        behind = {name: end for name, end in self._blocks.items() if start < end <= width}
        units = queries / np.maximum(np.linalg.norm(queries, axis=1, keepdims=True), 1e-12)
        lengths = np.linalg.norm(units[:, :start], axis=1)
        found = []
        for begin in range(0, len(queries), QUERIES):
            part = slice(begin, begin + QUERIES)
            rows = self._shortlist(queries[part, :start], shortlist, wanted, ["norms", *behind], exact=False)
            ids, norms = np.array(rows["id"].to_pylist(), object), _matrix(rows["norms"], len(self.layout.widths))
            sums, tails = (1.0 - rows["_distance"].to_numpy()) * norms[:, 0], _joined(rows, behind, start)
            for query, length, places in zip(units[part], lengths[part], _by_query(rows, len(units[part])), strict=True):
                scores = (sums[places] * length + tails[places] @ query[start:]) / norms[places, place]
                best = np.argsort(-scores, kind="stable")[:k]
                found.append(Found(ids[places[best]].tolist(), scores[best].astype(np.float32), np.empty((len(best), 0), np.float32)))
        return found

    def scores(self, queries: F32, ids: Sequence[Sequence[str]]) -> list[F32]:
        """The columns up to the width are fetched once for all queries, and compared here."""
        width = queries.shape[1]
        blocks = {name: end for name, end in self._blocks.items() if end <= width}
        asked = list(dict.fromkeys(name for names in ids for name in names))
        fetched = list(self._rows(asked, ["id", *blocks]))
        row_of = {name: row for row, name in enumerate(name for rows in fetched for name in rows["id"].to_pylist())}
        vectors = np.concatenate([np.zeros((0, width), np.float32), *(_joined(rows, blocks) for rows in fetched)])
        return cosines(queries, ids, row_of, vectors)

    def facts(self) -> dict[str, Any]:
        indexed = sorted(index.columns[0] for index in self._ask(lambda: self._table.list_indices()))
        return {"table_version": int(self._table.version), "indexed": indexed}

    @cached_property
    def _base(self) -> Any:
        return lancedb.connect(self._uri, read_consistency_interval=timedelta(0))

    @cached_property
    def _table(self) -> Any:
        return self._base.open_table(self.collection)

    @cached_property
    def _blocks(self) -> dict[str, int]:
        """The columns of coordinates, and where each ends."""
        widths = self.layout.widths
        return {"prefix": widths[0], **{f"to_{end}": end for end in widths[1:]}}

    def _there(self, name: str) -> bool:
        return name in self._ask(lambda: _names(self._base))

    def _schema(self) -> pa.Schema:
        """The prefix in float32, which Lance scans faster than float16."""
        begins = [0, *self.layout.widths]
        blocks = [
            pa.field(name, pa.list_(pa.float16() if begin else pa.float32(), end - begin), nullable=False)
            for begin, (name, end) in zip(begins, self._blocks.items(), strict=False)
        ]
        norms = pa.field("norms", pa.list_(pa.float32(), len(self.layout.widths)), nullable=False)
        texts = [pa.field(name, pa.string(), nullable=False) for name in ("id", "title", "text")]
        return pa.schema([texts[0], *blocks, norms, *texts[1:], pa.field("metadata", pa.json_(), nullable=False)])

    def _arrow(self, rows: Sequence[Row]) -> pa.Table:
        vectors, norms = np.stack([row.vector for row in rows]), np.stack([row.norms for row in rows])
        schema, begins = self._schema(), [0, *self.layout.widths]
        columns: dict[str, Any] = {
            name: _lists(vectors[:, begin:end], schema.field(name).type)
            for begin, (name, end) in zip(begins, self._blocks.items(), strict=False)
        }
        columns["norms"] = _lists(norms, schema.field("norms").type)
        for name in ("id", "title", "text"):
            columns[name] = pa.array([str(getattr(row.document, name)) for row in rows])
        columns["metadata"] = pa.array([json.dumps(dict(row.document.metadata)) for row in rows], pa.json_())
        return pa.table({name: columns[name] for name in schema.names}, schema=schema)

    def _rows(self, ids: Sequence[str], columns: list[str]) -> Iterator[pa.Table]:
        for part in _pages(ids):
            yield self._ask(
                lambda part=part: self._table.search().where(_among("id", part)).select(columns).limit(len(part)).to_arrow()  # type: ignore[misc]
            )

    def _nearest(self, queries: F32, k: int, wanted: str | None, *, exact: bool) -> list[Found]:
        rows = self._shortlist(queries, k, wanted, ["norms"], exact=exact)
        ids, scores = np.array(rows["id"].to_pylist(), object), 1.0 - rows["_distance"].to_numpy().astype(np.float32)
        norms = _matrix(rows["norms"], len(self.layout.widths))
        return [Found(ids[part].tolist(), scores[part], norms[part]) for part in _by_query(rows, len(queries))]

    def _shortlist(self, queries: F32, k: int, wanted: str | None, columns: list[str], *, exact: bool) -> pa.Table:
        """The k nearest of each query at the start width, with these columns."""

        def ask() -> pa.Table:
            search = self._table.search(list(queries) if len(queries) > 1 else queries[0], vector_column_name="prefix")
            search = search.distance_type("cosine").select(["id", *columns, "_distance"]).limit(k)
            search = search.bypass_vector_index() if exact else search.nprobes(self._probes)
            return (search if wanted is None else search.where(wanted, prefilter=True)).to_arrow()

        return self._ask(ask)

    @cached_property
    def _probes(self) -> int:
        return max(FEWEST, math.ceil(PROBED * _partitions(self.count())))


def _by_query(rows: pa.Table, queries: int) -> list[Any]:
    """Places of each query's rows, nearest first."""
    place = rows["query_index"].to_numpy() if "query_index" in rows.column_names else np.zeros(len(rows), np.int64)
    order = np.lexsort((rows["_distance"].to_numpy(), place))
    ends = np.searchsorted(place[order], np.arange(queries + 1))
    return [order[begin:end] for begin, end in pairwise(ends)]


def _partitions(count: int) -> int:
    return max(2, count // PARTITION)


def _names(base: Any) -> set[str]:
    """Of all tables."""
    names: set[str] = set()
    token = None
    while True:
        page = base.list_tables(page_token=token)
        names.update(page.tables)
        token = page.page_token
        if not token:
            return names


def _pages(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[begin : begin + PAGE] for begin in range(0, len(ids), PAGE))


def _lists(rows: F32, kind: pa.DataType) -> pa.Array:
    values = np.ascontiguousarray(rows).astype(kind.value_type.to_pandas_dtype()).ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(values), type=kind)


def _matrix(column: pa.ChunkedArray, width: int) -> F32:
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat, np.float32).reshape(-1, width)


def _joined(rows: pa.Table, blocks: Mapping[str, int], first: int = 0) -> F32:
    """Vectors from their columns, from the first coordinate on. (n, the last end - first)"""
    begins = [first, *blocks.values()]
    columns = [_matrix(rows[name], end - begin) for begin, (name, end) in zip(begins, blocks.items(), strict=False)]
    return np.concatenate([np.empty((len(rows), 0), np.float32), *columns], axis=1)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _among(what: str, values: Iterable[str]) -> str:
    listed = ", ".join(map(_quoted, values))
    return f"{what} IN ({listed})" if listed else "false"


def _condition(one: Filter) -> str:
    """A filter as SQL over the metadata, never NULL: the same documents meet it as in memory."""
    match one:
        case Joined(parts, word):
            return "(" + f" {word} ".join(map(_condition, parts)) + ")" if parts else "true"
        case Not(part):
            return f"(NOT {_condition(part)})"
        case Missing(field):
            return f"(coalesce({_json(field)}, 'null') = 'null')"
        case Among(field, texts, numbers, truths):
            exact = [json.dumps(value, ensure_ascii=False) for value in (*texts, *truths)]
            return f"(coalesce({_among(_json(field), exact)}, false) OR {_compared(field, '=', numbers)})"
        case Order(field, sign, value):
            if isinstance(value, str):
                name = ".".join(field)
                raise OptionError(f"{name} {sign} {value!r}: LanceDB can't order strings in JSON: compare numbers, or use = and IN")
            return _compared(field, sign, [value])
    raise AssertionError(one)


def _compared(field: Field, sign: str, values: Sequence[int | float]) -> str:
    """A number with any of some: whole ones as such, as 64 bits are more than a float holds."""
    whole = " OR ".join(f"(try_cast({_json(field)} AS bigint) {_whole(sign, value)})" for value in values)
    real = " OR ".join(f"(try_cast({_json(field)} AS double) {sign} CAST({float(value)!r} AS double))" for value in values)
    return f"coalesce({whole}, {real}, false)" if values else "false"


def _whole(sign: str, value: int | float) -> str:
    """A comparison of whole numbers with a number that may lie between two of them, or beyond them all."""
    bound = math.ceil(value) if sign in ("<", ">=") else math.floor(value)
    between = sign == "=" and bound != value
    return f"{sign} CAST({float(value)!r} AS double)" if between or abs(bound) >= BIGGEST else f"{sign} {bound}"


def _json(field: Field) -> str:
    """The field as JSON text, NULL where it is missing; the path is JSONPath with every key quoted."""
    path = "$" + "".join("." + json.dumps(key, ensure_ascii=False) for key in field)
    return f"json_extract(metadata, {_quoted(path)})"
