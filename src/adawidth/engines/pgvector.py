"""PostgreSQL with pgvector: one table, one halfvec column; an HNSW index on its prefix, and any width rescored from the same column.

Every statement is in `statements`, which `adawidth push --sql` writes out for review. Values are bound, names are quoted.
On Citus the same statements run on a table distributed by id.
"""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg_pool import ConnectionPool, PoolTimeout

from ..data import Document
from ..errors import ArtifactError, DataError, EngineError
from ..filters.conditions import Among, Filter, Joined, Missing, Not, Order
from ..types import F32
from . import base
from .base import Engine, Found, Layout, Row, Settings, T, reason

LEAST, EF_SEARCH = 600, 1_000  # candidates kept on the walk through the graph: at least, and the most that pgvector takes
STATEMENT = "60s"  # after which the server cancels a statement
OPTIONS = f"-c statement_timeout={STATEMENT} -c plan_cache_mode=force_custom_plan -c jit=off"  # a plan must know how many are asked for
PAGE = 10_000  # ids fetched at a time
CHUNK = 1 << 20  # bytes of the model in a row
WHOLE = 3_000  # coordinates, at most, that are kept with their row in a page of 8 KB; more are kept apart, and looked up at every read

SCHEMA = """CREATE TABLE {table} (
  id text COLLATE "C" PRIMARY KEY,
  v halfvec({keep}) NOT NULL,
  norms real[] NOT NULL,
  title text NOT NULL DEFAULT '',
  text text NOT NULL DEFAULT '',
  metadata jsonb NOT NULL DEFAULT '{{}}'
);
ALTER TABLE {table} ALTER COLUMN v SET STORAGE {storage};
CREATE TABLE {about} (part integer PRIMARY KEY, layout text, model bytea);"""
INDEX = """CREATE INDEX IF NOT EXISTS {index} ON {table} USING hnsw ((subvector(v, 1, {start})::halfvec({start})) halfvec_cosine_ops)
  WITH (m = 16, ef_construction = 100);"""
# queries are parsed once, before the join, not once for every row
NEAREST = """WITH q AS MATERIALIZED (
  SELECT place, text::halfvec({start}) AS v FROM unnest(%(places)s::int[], %(queries)s::text[]) AS given(place, text)
)
SELECT q.place, d.id, 1 - d.distance, d.norms
FROM q CROSS JOIN LATERAL (
  SELECT id, norms, subvector(v, 1, {start})::halfvec({start}) <=> q.v AS distance
  FROM {table} WHERE {condition} ORDER BY distance LIMIT %(k)s
) AS d;"""
SCORES = """WITH q AS MATERIALIZED (
  SELECT place, text::vector({width}) AS v FROM unnest(%(which)s::int[], %(queries)s::text[]) AS given(place, text)
)
SELECT a.place, a.rank, 1 - (subvector(d.v, 1, {width})::halfvec({width})::vector({width}) <=> q.v)
FROM unnest(%(places)s::int[], %(ranks)s::int[], %(ids)s::text[]) AS a(place, rank, id)
JOIN q ON q.place = a.place
JOIN {table} AS d ON d.id = a.id;"""
WIDENED = """WITH q AS MATERIALIZED (
  SELECT place, narrow::halfvec({start}) AS prefix, text::vector({width}) AS v
  FROM unnest(%(places)s::int[], %(prefixes)s::text[], %(queries)s::text[]) AS given(place, narrow, text)
)
SELECT q.place, w.id, w.score
FROM q CROSS JOIN LATERAL (
  SELECT d.id, 1 - (subvector(d.v, 1, {width})::halfvec({width})::vector({width}) <=> q.v) AS score
  FROM (
    SELECT id, v FROM {table} WHERE {condition}
    ORDER BY subvector(v, 1, {start})::halfvec({start}) <=> q.prefix LIMIT %(shortlist)s
  ) AS d ORDER BY score DESC, d.id LIMIT %(k)s
) AS w;"""
HEAD, FOOT = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"  # of COPY's binary format
REAL = 700  # PostgreSQL's number of the type
REPLACE = """INSERT INTO {table} (id, v, norms, title, text, metadata) SELECT id, v, norms, title, text, metadata FROM incoming
  ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, norms = EXCLUDED.norms, title = EXCLUDED.title, text = EXCLUDED.text,
  metadata = EXCLUDED.metadata"""
INCOMING = "CREATE TEMP TABLE IF NOT EXISTS incoming (LIKE {table}) ON COMMIT DELETE ROWS"
COPY = "COPY {into} (id, v, norms, title, text, metadata) FROM STDIN (FORMAT BINARY)"


class PgVector(Engine):
    """A table in PostgreSQL. `url` is libpq's: postgresql://user:password@host:port/database."""

    name = "pgvector"
    any_width = True
    transactional = True
    one_request = True
    unreachable = (psycopg.OperationalError,)
    spent = (PoolTimeout,)
    refused = (psycopg.Error,)

    def __init__(self, url: str, collection: str) -> None:
        super().__init__(url, collection)
        self._pool = ConnectionPool(
            url,
            min_size=0,
            max_size=8,
            timeout=base.PATIENCE,
            reconnect_timeout=base.PATIENCE,
            kwargs={"connect_timeout": max(1, round(base.PATIENCE)), "options": OPTIONS},
            open=True,
        )
        self._transaction = threading.local()  # its connection, while this thread writes: other threads search beside it
        self._names = _names(collection)

    @property
    def transacting(self) -> bool:
        return self._writing is not None

    def exists(self) -> bool:
        return bool(self._rows("SELECT to_regclass(%(name)s)", name=self._names["about"].as_string())[0][0])

    def create(self, layout: Layout, model: bytes) -> None:
        self.layout = layout
        parts = [model[begin : begin + CHUNK] for begin in range(0, len(model), CHUNK)] or [b""]

        def make() -> None:
            with self._connection() as connection, connection.cursor() as cursor:
                cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
                cursor.execute(self._made(SCHEMA))
                for number, part in enumerate(parts):
                    cursor.execute(
                        self._made("INSERT INTO {about} VALUES (%s, %s, %s)"), (number, layout.to_json() if number == 0 else None, part)
                    )

        self._ask(make)

    def open(self) -> bytes:
        if not self.exists():
            raise ArtifactError(f"{self.where}: there is no such collection: make it with `adawidth push`")
        rows = self._rows("SELECT layout, model FROM {about} ORDER BY part")
        if not rows:
            raise ArtifactError(f"{self.where}: its table of settings is empty: push it again")
        self.layout = Layout.of_json(rows[0][0] or "", self.where)
        return b"".join(bytes(part) for _, part in rows)

    def settings(self) -> Settings:
        """Within a transaction the row is locked: who holds writes back waits for those that have begun."""
        lock = "" if self._writing is None else " FOR SHARE"
        rows = self._rows("SELECT layout FROM {about} WHERE part = 0" + lock)
        return Settings.of_json(rows[0][0] if rows else "", self.where)

    def settle(self, settings: Settings) -> None:
        self._do("UPDATE {about} SET layout = %(layout)s WHERE part = 0", layout=settings.to_json())

    def clear(self) -> None:
        self._do("DROP TABLE IF EXISTS {table}")

    def drop(self) -> None:
        self._do("DROP TABLE IF EXISTS {table}, {about}")

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM {table}")[0][0])

    def ids(self) -> Iterator[str]:
        last = ""
        while page := self._rows("SELECT id FROM {table} WHERE id > %(last)s ORDER BY id LIMIT %(page)s", last=last, page=PAGE):
            yield from (name for (name,) in page)
            last = page[-1][0]

    def present(self, ids: Sequence[str]) -> set[str]:
        return {name for (name,) in self._rows("SELECT id FROM {table} WHERE id = ANY(%(ids)s)", ids=list(ids))}

    def write(self, rows: Sequence[Row], *, update: bool) -> None:
        """Straight into the table. Where it has some of the ids, by way of another one, from which they replace those."""

        def send() -> None:
            with self._connection() as connection:
                try:
                    with connection.transaction(), connection.cursor() as cursor:
                        self._copy(cursor, "{table}", rows)
                except psycopg.errors.UniqueViolation:
                    if not update:
                        raise
                    with connection.cursor() as cursor:
                        cursor.execute(self._made(INCOMING))
                        cursor.execute("TRUNCATE incoming")
                        self._copy(cursor, "incoming", rows)
                        cursor.execute(self._made(REPLACE))

        self._ask(send)

    def _copy(self, cursor: psycopg.Cursor[Any], into: str, rows: Sequence[Row]) -> None:
        with cursor.copy(self._made(COPY.replace("{into}", into))) as copy:
            copy.write(HEAD + b"".join(map(_binary, rows)) + FOOT)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction."""
        try:
            with self._pool.connection() as connection:
                self._transaction.connection = connection
                try:
                    yield
                finally:
                    self._transaction.connection = None
        except psycopg.Error as error:
            raise EngineError(f"{self.where}: nothing was written ({reason(error)}): try again") from None

    def remove(self, ids: Sequence[str]) -> None:
        self._do("DELETE FROM {table} WHERE id = ANY(%(ids)s)", ids=list(ids))

    def finish(self) -> None:
        """The HNSW index, which is built faster over rows that are there."""

        def build() -> None:
            with self._connection() as connection, connection.cursor() as cursor:
                cursor.execute("SET LOCAL statement_timeout = 0")
                cursor.execute("SET LOCAL maintenance_work_mem = '512MB'")
                cursor.execute(self._made(INDEX))
                cursor.execute(self._made("ANALYZE {table}"))

        self._ask(build)

    def documents(self, ids: Sequence[str]) -> Mapping[str, Document]:
        rows = self._rows("SELECT id, title, text, metadata FROM {table} WHERE id = ANY(%(ids)s)", ids=list(ids))
        return {name: Document(name, title, text, metadata) for name, title, text, metadata in rows}

    def vectors(self, ids: Sequence[str]) -> Mapping[str, F32]:
        rows = self._rows("SELECT id, v::text FROM {table} WHERE id = ANY(%(ids)s)", ids=list(ids))
        return {name: np.array(json.loads(vector), np.float32) for name, vector in rows}

    def nearest(self, queries: F32, k: int, condition: Filter | None, *, exact: bool = False) -> list[Found]:
        text, values = _where(condition)
        rows = self._rows(
            NEAREST.replace("{condition}", text),
            settings={"enable_indexscan": "off"} if exact else _effort(k),
            places=list(range(len(queries))),
            queries=_texts(queries),
            k=k,
            **values,
        )
        found: list[list[tuple[str, float, list[float]]]] = [[] for _ in queries]
        for place, name, score, norms in rows:
            found[place].append((name, score, norms))
        return [_found(answer, len(self.layout.widths)) for answer in found]

    def widened(self, queries: F32, k: int, shortlist: int, condition: Filter | None) -> list[Found]:
        text, values = _where(condition)
        rows = self._rows(
            WIDENED.replace("{condition}", text).replace("{width}", str(queries.shape[1])),
            settings=_effort(shortlist),
            places=list(range(len(queries))),
            prefixes=_texts(queries[:, : self.layout.start]),
            queries=_texts(queries),
            shortlist=shortlist,
            k=k,
            **values,
        )
        found: list[list[tuple[str, float, list[float]]]] = [[] for _ in queries]
        for place, name, score in rows:
            found[place].append((name, score, []))
        return [_found(answer, 0) for answer in found]

    def scores(self, queries: F32, ids: Sequence[Sequence[str]]) -> list[F32]:
        answers = [np.full(len(names), np.nan, np.float32) for names in ids]
        asked = [(place, rank, name) for place, names in enumerate(ids) for rank, name in enumerate(names)]
        if asked:
            places, ranks, names = map(list, zip(*asked, strict=True))
            statement = SCORES.replace("{width}", str(queries.shape[1]))
            rows = self._rows(statement, places=places, ranks=ranks, ids=names, which=list(range(len(queries))), queries=_texts(queries))
            for place, rank, score in rows:
                answers[place][rank] = score
        return answers

    def facts(self) -> dict[str, Any]:
        size = self._rows(
            "SELECT pg_total_relation_size(to_regclass(%(table)s)), COALESCE(pg_relation_size(to_regclass(%(index)s)), 0)",
            table=self._names["table"].as_string(),
            index=self._names["index"].as_string(),
        )[0]
        return {"bytes": int(size[0]), "index_bytes": int(size[1])}

    def close(self) -> None:
        self._pool.close()

    @property
    def _writing(self) -> psycopg.Connection[Any] | None:
        """The connection of the transaction that this thread is in."""
        found: psycopg.Connection[Any] | None = getattr(self._transaction, "connection", None)
        return found

    def _made(self, text: str) -> sql.Composed:
        return _composed(text, self._names, getattr(self, "layout", None))

    def _ask(self, question: Callable[[], T]) -> T:
        """Within a transaction nothing is tried again: if it fails, all of it does. A connection that broke is mended with all others
        of the pool, which the server may have closed too."""

        def once() -> T:
            try:
                return question()
            except psycopg.OperationalError as error:
                if not isinstance(error, PoolTimeout):
                    self._pool.check()
                raise

        return super()._ask(once) if self._writing is None else question()

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        """The one of the transaction at hand, or one from the pool, committed at the end."""
        if self._writing is not None:
            yield self._writing
        else:
            with self._pool.connection() as connection:
                yield connection

    def _rows(self, text: str, *, settings: Mapping[str, str] | None = None, **values: Any) -> list[Any]:
        def ask() -> list[Any]:
            with self._connection() as connection, connection.cursor() as cursor:
                if settings:
                    with connection.pipeline():  # all of it in one trip
                        for name, value in settings.items():
                            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
                        cursor.execute(self._made(text), values)
                else:
                    cursor.execute(self._made(text), values)
                return list(cursor.fetchall())

        return self._ask(ask)

    def _do(self, text: str, **values: Any) -> None:
        def do() -> None:
            with self._connection() as connection:
                connection.execute(self._made(text), values)

        self._ask(do)


def statements(collection: str, layout: Layout) -> str:
    """All that is sent to the server, as a file to read."""
    parts = [
        ("Once, when the collection is made", "CREATE EXTENSION IF NOT EXISTS vector;\n" + SCHEMA),
        ("After a bulk load", INDEX),
        ("Stage 1: the nearest at the start width", NEAREST.replace("{condition}", "true")),
        (
            "Both stages at once, with one width for all queries",
            WIDENED.replace("{condition}", "true").replace("{width}", str(layout.keep)),
        ),
        ("Every further stage: given ids, at a width", SCORES.replace("{width}", str(layout.keep))),
        ("Writing", COPY.replace("{into}", "{table}") + ";"),
        ("Writing ids that are there already", f"{INCOMING};\n{COPY.replace('{into}', 'incoming')};\n{REPLACE};"),
    ]
    return "\n\n".join(f"-- {title}.\n{_composed(text, _names(collection), layout).as_string()}" for title, text in parts) + "\n"


def _names(collection: str) -> dict[str, sql.Identifier]:
    return {
        "table": sql.Identifier(collection),
        "about": sql.Identifier(f"{collection}_adawidth"),
        "index": sql.Identifier(f"{collection}_prefix"),
    }


def _composed(text: str, names: Mapping[str, sql.Identifier], layout: Layout | None) -> sql.Composed:
    if layout is None:
        return sql.SQL(text).format(**names)
    storage = sql.SQL("PLAIN" if layout.keep <= WHOLE else "EXTERNAL")
    return sql.SQL(text).format(**names, start=sql.SQL(str(layout.start)), keep=sql.SQL(str(layout.keep)), storage=storage)


def _effort(k: int) -> dict[str, str]:
    """Settings of a search through the graph that brings k."""
    return {"hnsw.ef_search": str(min(EF_SEARCH, max(2 * k, LEAST))), "hnsw.iterative_scan": "strict_order"}


def _where(condition: Filter | None) -> tuple[str, dict[str, Any]]:
    return ("true", {}) if condition is None else _condition(condition)


def _condition(condition: Filter) -> tuple[str, dict[str, Any]]:
    """A filter as SQL over jsonb, every value bound: the same documents meet it as in memory."""
    values: dict[str, Any] = {}

    def bound(value: Any) -> str:
        values[f"f{len(values)}"] = value
        return f"%(f{len(values) - 1})s"

    def text_of(one: Filter) -> str:
        match one:
            case Joined(parts, word):
                return "(" + f" {word} ".join(map(text_of, parts)) + ")" if parts else "true"
            case Not(part):
                return f"NOT {text_of(part)}"
            case Missing(field):
                return f"(COALESCE(jsonb_typeof(metadata #> {bound(list(field))}::text[]), 'null') = 'null')"
            case Among(field, texts, numbers, truths):
                wanted = [json.dumps(value) for value in (*texts, *numbers, *truths)]
                return f"(COALESCE(metadata #> {bound(list(field))}::text[] = ANY({bound(wanted)}::jsonb[]), false))"
            case Order(field, sign, value):
                path, kind = bound(list(field)), "string" if isinstance(value, str) else "number"
                inner = f"metadata #>> {path}::text[]"
                as_text = f'({inner}) COLLATE "C" {sign} {bound(value)}'
                compared = as_text if kind == "string" else f"({inner})::numeric {sign} {bound(value)}::numeric"
                return f"(CASE WHEN jsonb_typeof(metadata #> {path}::text[]) = '{kind}' THEN {compared} ELSE false END)"
        raise AssertionError(one)

    return text_of(condition).replace("{", "{{").replace("}", "}}"), values


def _found(answer: list[tuple[str, float, list[float]]], widths: int) -> Found:
    answer.sort(key=lambda one: -one[1])
    norms = np.array([one[2] for one in answer], np.float32).reshape(len(answer), widths)
    return Found([one[0] for one in answer], np.array([one[1] for one in answer], np.float32), norms)


def _binary(row: Row) -> bytes:
    """A row as COPY's binary format has it: the number of fields, and each with its length before it."""
    name, title, text, metadata = (part.encode() for part in row.document.plain())
    if b"\0" in name + title + text or b"\\u0000" in metadata:
        raise DataError(f"document {row.document.id!r} has a NUL character, which PostgreSQL can't keep: remove it")
    vector = struct.pack(">hh", len(row.vector), 0) + row.vector.astype(">f2").tobytes()
    lengths = np.empty(len(row.norms), [("bytes", ">i4"), ("value", ">f4")])
    lengths["bytes"], lengths["value"] = 4, row.norms
    norms = struct.pack(">iiiii", 1, 0, REAL, len(lengths), 1) + lengths.tobytes()  # one dimension, no nulls, counted from 1
    fields = (name, vector, norms, title, text, b"\1" + metadata)
    return struct.pack(">h", len(fields)) + b"".join(struct.pack(">i", len(field)) + field for field in fields)


def _texts(queries: F32) -> list[str]:
    return ["[" + ",".join(map(repr, row.tolist())) + "]" for row in queries.astype(float)]
