"""Milvus: a vector field per width, an HNSW index on the narrowest, and given ids scored or brought through `id in [...]`.

Servers before 2.4 have one vector field a collection: there a second collection keeps all coordinates, and widths between are scored
with a query that is zero beyond them. `milvus_filters` says how filters are asked. Ids are percent-encoded, so that no client or
server has to unquote them.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import grpc
import numpy as np
from pymilvus import DataType, MilvusClient
from pymilvus.exceptions import MilvusException

from ..data import Document
from ..errors import ArtifactError, DataError, EngineError, OptionError
from ..filters import Filter
from ..types import F32
from . import base, milvus_lite
from .base import Engine, Found, Layout, Row, Settings, T, cosines
from .milvus_filters import expression, facets

ANSWER = 60.0  # seconds until a question is given up
BUILD = 3_600.0  # the same for a bulk load's last step
FIELDS = 4  # vector fields that a server takes unless it is told otherwise
SEVERAL = (2, 4)  # the version that first took more than one
EF_SEARCH, WIDEST_SEARCH = 1_000, 32_768
TOGETHER = 7  # queries whose candidates the server scores, each for all of them; of more, bringing the vectors takes less
IDS = 2_000  # in one question
ANSWERS = 16_384  # scores in one answer
PACKET = 16_000_000  # bytes in one write
LONGEST = 65_535  # bytes of a text
PART = 48_000  # bytes of the model in a row: 64,000 as text
SEALED = 10_000  # documents from which an index is worth its building; fewer are scanned
LEVELS = {level.lower(): level for level in ("Strong", "Bounded", "Session", "Eventually")}

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # its errors reach the user as ours

Kind = tuple[DataType, dict[str, Any]]  # of a field, with its options


class Away(Exception):
    """No connection."""


class Silent(Exception):
    """No answer, after the client has tried again by itself."""


class Refused(Exception):
    """The server says no."""


class Milvus(Engine):
    """A collection in Milvus. `url` is milvus+http://user:password@host:19530/database for a server or a cluster, or milvus:///file.db
    for milvus-lite. `?consistency=bounded` reads what may be seconds old, `?partition=name` reads and writes that partition alone."""

    name = "milvus"
    unreachable = (Away,)
    spent = (Silent,)
    refused = (Refused,)

    def __init__(self, url: str, collection: str) -> None:
        super().__init__(url, collection)
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        self._consistency = LEVELS.get(options.pop("consistency", "strong").lower(), "")
        self._partition = options.pop("partition", None)
        if options or not self._consistency:
            raise OptionError(
                f"{base.without_password(url)}: after the question mark stand consistency={'|'.join(LEVELS)} and partition=name, "
                f"not {parts.query!r}"
            )
        self._lite = parts.scheme == "milvus"
        file = unquote(parts.netloc + parts.path)
        if self._lite and not file.endswith(".db"):
            raise OptionError(f"{base.without_password(url)}: a file of milvus-lite ends in .db; a server is milvus+http://host:19530")
        if self._lite and self._partition is not None:
            raise OptionError(f"{base.without_password(url)}: milvus-lite has no partitions: leave partition={self._partition} out")
        if self._lite:
            milvus_lite.prepare()
            self._login = {"uri": file}
        else:
            host = parts.netloc.rpartition("@")[2]
            self._login = {
                "uri": f"{parts.scheme.partition('+')[2]}://{host}",
                "user": unquote(parts.username or ""),
                "password": unquote(parts.password or ""),
                "db_name": parts.path.strip("/"),
            }
        self._about, self._wide = f"{collection}_adawidth", f"{collection}_adawidth_wide"
        self._homes: dict[int, str] = {}  # which collection has the vectors of a width

    @cached_property
    def _client(self) -> MilvusClient:
        return MilvusClient(**self._login, timeout=base.PATIENCE)

    def exists(self) -> bool:
        return self._has(self._about)

    def create(self, layout: Layout, model: bytes) -> None:
        if self._has(self.collection):
            raise EngineError(f"{self.where}: there is such a collection, and AdaWidth did not make it: choose another name")
        self.layout = layout
        parts = [model[begin : begin + PART] for begin in range(0, len(model), PART)] or [b""]
        rows = [
            {"part": number, "parts": len(parts), "layout": layout.to_json(), "model": base64.b64encode(part).decode(), "none": [0.0, 0.0]}
            for number, part in enumerate(parts)
        ]
        self._make(
            self._about,
            {"part": (DataType.INT64, {"is_primary": True}), "parts": (DataType.INT64, {}), "layout": _text(), "model": _text()},
            {"none": 2},
        )
        for begin in range(0, len(rows), 100):
            self._do("upsert", self._about, rows[begin : begin + 100])
        known = {"title": _text(), "text": _text(), "metadata": (DataType.JSON, {}), "facets": (DataType.JSON, {})}
        own: dict[str, Kind] = {
            "id": (DataType.VARCHAR, {"is_primary": True, "max_length": LONGEST}),
            **{norm: (DataType.FLOAT, {}) for norm in self._norms},
        }
        if self._several:
            widths = layout.widths if len(layout.widths) <= FIELDS else (layout.start, *layout.widths[1 - FIELDS :])
            self._make(self.collection, {**own, **known}, {f"w{width}": width for width in widths}, indexed=f"w{layout.start}")
        else:
            self._make(self._wide, own, {f"w{layout.keep}": layout.keep})
            self._make(self.collection, {**own, **known}, {f"w{layout.start}": layout.start}, indexed=f"w{layout.start}")
        self._find_homes()
        for name in (self._about, *set(self._homes.values())):
            self._load(name)

    def open(self) -> bytes:
        if not self.exists():
            raise ArtifactError(f"{self.where}: there is no such collection: make it with `adawidth push`")
        self._load(self._about)
        count = int(self._query(self._about, "", ["count(*)"])[0]["count(*)"])
        rows = [
            row
            for begin in range(0, count, 100)
            for row in self._query(self._about, f"part in {list(range(begin, begin + 100))}", ["part", "parts", "layout", "model"])
        ]
        if not rows or len(rows) != rows[0]["parts"] or not self._has(self.collection):
            raise ArtifactError(f"{self.where}: a push was cut off before the collection was made: push it again with --force")
        rows.sort(key=lambda row: row["part"])
        self.layout = Layout.of_json(rows[0]["layout"], self.where)
        self._find_homes()
        for name in set(self._homes.values()):
            self._load(name)
        return b"".join(base64.b64decode(row["model"]) for row in rows)

    def settings(self) -> Settings:
        if not self._homes:  # neither made nor opened by this client
            self._load(self._about)
        rows = self._query(self._about, "part <= 0", ["part", "layout"])
        return Settings.of_json(min(rows, key=lambda row: row["part"])["layout"] if rows else "", self.where)

    def settle(self, settings: Settings) -> None:
        """As one more row, before all others: a row that is replaced is gone for a moment."""
        first = min(row["part"] for row in self._query(self._about, "part <= 0", ["part"]))
        row = {"part": first - 1, "parts": 0, "layout": settings.to_json(), "model": "", "none": [0.0, 0.0]}
        self._do("insert", self._about, [row])

    def clear(self) -> None:
        for name in (self.collection, self._wide):
            if self._has(name):
                self._do("drop_collection", name)

    def drop(self) -> None:
        for name in (self.collection, self._wide, self._about):
            if self._has(name):
                self._do("drop_collection", name)

    def count(self) -> int:
        return int(self._query(self.collection, "", ["count(*)"], **self._part)[0]["count(*)"])

    def ids(self) -> Iterator[str]:
        pages = self._do("query_iterator", self.collection, batch_size=IDS, output_fields=["id"], **self._reading)
        while page := self._ask(pages.next):
            yield from (unquote(row["id"]) for row in page)
        pages.close()

    def present(self, ids: Sequence[str]) -> set[str]:
        return {name for name, _ in self._known(self.collection, ids, ["id"])}

    def write(self, rows: Sequence[Row], *, update: bool) -> None:
        """Documents last, so that none is found whose wider vector is not there yet. Sent again, they replace themselves."""
        for packet in _packets(rows, 4 * sum(self._homes)):
            for home in sorted(set(self._homes.values()), key=lambda name: name == self.collection):
                sent = [self._sent(row, home) for row in packet]
                self._do("upsert", home, sent, **self._into)

    def remove(self, ids: Sequence[str]) -> None:
        keys = [_key(name) for name in ids]
        for home in sorted(set(self._homes.values()), key=lambda name: name != self.collection):
            for begin in range(0, len(keys), IDS):
                self._do("delete", home, keys[begin : begin + IDS], **self._into)

    def finish(self) -> None:
        """Seals what was written: its index is built at once, not when the server comes to it."""
        if not self._lite and self.count() >= SEALED:
            for home in set(self._homes.values()):
                self._do("flush", home, timeout=BUILD)

    def documents(self, ids: Sequence[str]) -> Mapping[str, Document]:
        rows = self._known(self.collection, ids, ["id", "title", "text", "metadata"])
        return {name: Document(name, row["title"], row["text"], row["metadata"]) for name, row in rows}

    def vectors(self, ids: Sequence[str]) -> Mapping[str, F32]:
        field = f"w{self.layout.keep}"
        rows = self._known(self._homes[self.layout.keep], ids, ["id", field])
        return {name: np.asarray(row[field], np.float32) for name, row in rows}

    def nearest(self, queries: F32, k: int, condition: Filter | None, *, exact: bool = False) -> list[Found]:
        """`exact` searches as widely as the server can."""
        wanted = "" if condition is None else expression(condition, exists=not self._lite)
        found = []
        for answer in self._search(self.layout.start, queries, k, wanted, self._norms, ef=WIDEST_SEARCH if exact else EF_SEARCH):
            norms = np.array([[hit["entity"][norm] for norm in self._norms] for hit in answer], np.float32)
            scores = np.array([hit["distance"] for hit in answer], np.float32)
            found.append(Found([unquote(hit["id"]) for hit in answer], scores, norms.reshape(-1, len(self._norms))))
        return found

    def scores(self, queries: F32, ids: Sequence[Sequence[str]]) -> list[F32]:
        """A search has one condition for all of its queries, so each gets the scores of all candidates: of many queries, the
        coordinates are brought here instead."""
        home = min(stored for stored in self._homes if stored >= queries.shape[1])
        scored = self._scored_there if len(ids) <= TOGETHER else self._scored_here
        return scored(queries, ids, home)

    def _scored_here(self, queries: F32, ids: Sequence[Sequence[str]], home: int) -> list[F32]:
        asked = list(dict.fromkeys(chain.from_iterable(ids)))
        fetched = list(self._known(self._homes[home], asked, ["id", f"w{home}"]))
        row_of = {name: place for place, (name, _) in enumerate(fetched)}
        vectors = np.array([row[f"w{home}"] for _, row in fetched], np.float32).reshape(-1, home)
        return cosines(queries, ids, row_of, vectors[:, : queries.shape[1]])

    def _scored_there(self, queries: F32, ids: Sequence[Sequence[str]], home: int) -> list[F32]:
        width = queries.shape[1]
        padded = np.zeros((len(queries), home), np.float32)
        padded[:, :width] = queries
        norms = [] if home == width else [f"n{home}", f"n{width}"]
        names = list(dict.fromkeys(chain.from_iterable(ids)))
        found: list[dict[str, float]] = [{} for _ in ids]
        for begin in range(0, len(names), ANSWERS // TOGETHER):
            some = names[begin : begin + ANSWERS // TOGETHER]
            for scores, answer in zip(found, self._search(home, padded, len(some), _among(some), norms, ef=len(some)), strict=True):
                for hit in answer:
                    longer, shorter = (hit["entity"][norm] for norm in norms) if norms else (1.0, 1.0)
                    scores[unquote(hit["id"])] = hit["distance"] * longer / shorter
        return [np.array([scores.get(name, np.nan) for name in own], np.float32) for scores, own in zip(found, ids, strict=True)]

    def facts(self) -> dict[str, Any]:
        return {
            "server": "milvus-lite" if self._lite else self._do("get_server_version"),
            "consistency": self._consistency.lower(),
            "vectors": {str(width): home for width, home in self._homes.items()},
        }

    def close(self) -> None:
        if "_client" in vars(self):
            self._client.close()
            del self._client

    @property
    def _norms(self) -> list[str]:
        """Fields with the lengths of the prefixes."""
        return [f"n{width}" for width in self.layout.widths]

    @property
    def _part(self) -> dict[str, Any]:
        return {} if self._partition is None else {"partition_names": [self._partition]}

    @property
    def _into(self) -> dict[str, Any]:
        return {} if self._partition is None else {"partition_name": self._partition}

    @property
    def _reading(self) -> dict[str, Any]:
        return {"consistency_level": self._consistency, **self._part}

    @property
    def _several(self) -> bool:
        """Whether a collection may have several vector fields."""
        if self._lite:
            return True
        version = self._do("get_server_version")
        return tuple(int(number) for number in re.findall(r"\d+", version)[:2]) >= SEVERAL

    def _ask(self, question: Callable[[], T]) -> T:
        def ask() -> T:
            try:
                return question()
            except grpc.RpcError as error:
                raise Silent(str(error.code())) from None
            except MilvusException as error:
                if "Fail connecting" in error.message:
                    raise Away("no server answers") from None
                if isinstance(error.code, grpc.StatusCode):
                    raise Silent(str(error.code)) from None
                raise Refused(error.message) from None

        return super()._ask(ask)

    def _do(self, verb: str, *given: Any, timeout: float = ANSWER, **options: Any) -> Any:
        """A verb of the client, which may be asked again."""
        return self._ask(lambda: getattr(self._client, verb)(*given, timeout=timeout, **options))

    def _has(self, name: str) -> bool:
        return bool(self._do("has_collection", name))

    def _load(self, name: str, *, wait: bool = True) -> None:
        """Servers take seconds for it, and as long for several at once: they are all begun before the first is waited for."""
        if self._partition is not None and name != self._about and not self._do("has_partition", name, self._partition):
            self._do("create_partition", name, self._partition)
        self._do("load_collection", name, _async=not wait)

    def _find_homes(self) -> None:
        fields = self._do("describe_collection", self.collection)["fields"]
        widths = [int(field["name"][1:]) for field in fields if re.fullmatch(r"w\d+", field["name"])]
        self._homes = {**dict.fromkeys(widths, self.collection), self.layout.keep: self.collection}
        if self.layout.keep not in widths:
            self._homes[self.layout.keep] = self._wide

    def _make(
        self, name: str, fields: Mapping[str, tuple[DataType, dict[str, Any]]], vectors: Mapping[str, int], indexed: str = ""
    ) -> None:
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        indexes = MilvusClient.prepare_index_params()
        for field, (kind, options) in fields.items():
            schema.add_field(field, kind, **options)
        for field, width in vectors.items():
            schema.add_field(field, DataType.FLOAT_VECTOR, dim=width)
            graph = field == indexed and not self._lite
            settings = {"M": 16, "efConstruction": 100} if graph else {}
            indexes.add_index(field, index_type="HNSW" if graph else "FLAT", metric_type="COSINE", params=settings)
        self._do("create_collection", name, schema=schema, consistency_level=self._consistency)
        self._do("create_index", name, indexes, sync=False)  # there is nothing to build yet
        self._load(name, wait=False)

    def _query(self, name: str, wanted: str, fields: list[str], **options: Any) -> list[dict[str, Any]]:
        return list(self._do("query", name, filter=wanted, output_fields=fields, consistency_level=self._consistency, **options))

    def _known(self, home: str, ids: Sequence[str], fields: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for begin in range(0, len(ids), IDS):
            for row in self._query(home, _among(ids[begin : begin + IDS]), fields, **self._part):
                yield unquote(row["id"]), row

    def _search(self, width: int, queries: F32, k: int, wanted: str, fields: list[str], *, ef: int) -> list[list[dict[str, Any]]]:
        found = self._do(
            "search",
            self._homes[width],
            list(queries),
            anns_field=f"w{width}",
            filter=wanted,
            limit=k,
            output_fields=fields,
            search_params={"metric_type": "COSINE", "params": {"ef": max(ef, k)}},
            **self._reading,
        )
        return [list(answer) for answer in found]

    def _sent(self, row: Row, home: str) -> dict[str, Any]:
        """A document as a collection takes it."""
        norms = dict(zip(self._norms, row.norms.tolist(), strict=True))
        vectors = {f"w{width}": row.vector[:width] for width, name in self._homes.items() if name == home}
        one = row.document
        sent = {"id": _key(str(one.id)), **norms, **vectors}
        if home == self.collection:
            sent |= {"title": one.title, "text": one.text, "metadata": dict(one.metadata), "facets": facets(one)}
        return sent


def _text() -> Kind:
    return DataType.VARCHAR, {"max_length": LONGEST}


def _key(name: str) -> str:
    return quote(name, safe="/:@+,=")


def _among(names: Sequence[str]) -> str:
    return "id in [" + ", ".join(f'"{_key(name)}"' for name in names) + "]"


def _packets(rows: Sequence[Row], vectors: int) -> Iterator[list[Row]]:
    """Documents that are sent together, with so many bytes of vectors each."""
    packet: list[Row] = []
    size = 0
    for row in rows:
        name, title, text, metadata = row.document.plain()
        for what, value in (("id", _key(name)), ("title", title), ("text", text), ("metadata", metadata)):
            if len(value.encode()) > LONGEST:
                raise DataError(f"document {name!r}: its {what} has {len(value.encode())} bytes, Milvus takes {LONGEST}: cut it")
        own = vectors + sum(len(part) for part in (name, title, text)) + 4 * len(metadata)
        if packet and size + own > PACKET:
            yield packet
            packet, size = [], 0
        packet.append(row)
        size += own
    if packet:
        yield packet
