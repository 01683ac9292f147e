"""The same 256 coordinates, the same exact answer: codes and the taper against graphs and inverted files, one query at a time, one thread.

    python benchmarks/rivals.py [--documents 200000]

Every way has its one knob set on other queries, to the least at which it keeps a recall@10 of .98 there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import faiss
import hnswlib
import numpy as np

import synthetic
from adawidth.data import Vectors
from adawidth.index import MemoryIndex
from adawidth.index.codes import build
from adawidth.index.fused import Rescorer
from adawidth.policies.taper import LADDER, Taper
from adawidth.rotation import Rotation
from adawidth.training.taper import calibrate
from latency import lengths, unit_prefixes
from rescoring import START, K
from turns import recall, summary, take

WIDTH, QUERIES, WANTED, SAMPLE = 256, 400, 0.98, 50_000
Way = Callable[[np.ndarray], np.ndarray]


def hnswlib_way(rows: np.ndarray, try_all: Callable[[Iterable[tuple[float, Way]]], Way]) -> Way:
    graph = hnswlib.Index("ip", rows.shape[1])
    graph.init_index(len(rows), ef_construction=200, M=16, random_seed=0)
    graph.set_num_threads(1)
    graph.add_items(rows)

    def at(ef: int) -> Way:
        def search(queries: np.ndarray) -> np.ndarray:
            graph.set_ef(ef)
            return graph.knn_query(queries, K, num_threads=1)[0].astype(np.int64)

        return search

    return try_all((ef, at(ef)) for ef in (20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640))


def faiss_hnsw(rows: np.ndarray, try_all: Callable[[Iterable[tuple[float, Way]]], Way]) -> Way:
    graph = faiss.IndexHNSWFlat(rows.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 200
    graph.add(rows)

    def at(ef: int) -> Way:
        return lambda queries: graph.search(queries, K, params=faiss.SearchParametersHNSW(efSearch=ef))[1]

    return try_all((ef, at(ef)) for ef in (20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640))


def faiss_ivf(rows: np.ndarray, try_all: Callable[[Iterable[tuple[float, Way]]], Way]) -> Way:
    """The strongest we found: lists of four-bit codes of residuals, refined with float32 rows."""
    lists = 2 ** round(np.log2(len(rows)) / 2 + 1)
    index = faiss.index_factory(rows.shape[1], f"RR,IVF{lists},PQ128x4fsr,RFlat", faiss.METRIC_INNER_PRODUCT)
    index.train(rows[:: max(1, len(rows) // (64 * lists))])
    index.add(rows)

    def at(probes: int, factor: int) -> Way:
        inner = faiss.SearchParametersPreTransform(index_params=faiss.SearchParametersIVF(nprobe=probes))
        options = faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=inner)
        return lambda queries: index.search(queries, K, params=options)[1]

    return try_all((probes, at(probes, factor)) for probes in (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256) for factor in (4, 8))


def ours(rows: np.ndarray, asked: np.ndarray, storage: str, try_all: Callable[[Iterable[tuple[float, Way]]], Way]) -> Way:
    half, whole = rows.astype(np.float16), lengths(rows)
    codes = build(unit_prefixes(rows, START), storage, seed=0)
    rescorer = Rescorer([half], lambda _: whole, np.arange(len(rows)))
    index = MemoryIndex(Vectors.of(rows[:SAMPLE]), Rotation.identity(rows.shape[1]))
    calibration = calibrate(index, asked[:200], tuple(width for width in LADDER if START <= width <= WIDTH))

    def at(candidates: int, z: float) -> Way:
        policy = Taper(calibration, z, K)
        return lambda queries: rescorer.answer(queries, codes.search(queries[:, :START], candidates), policy, K).rows

    return try_all((count, at(count, z)) for count in (200, 300, 500, 700, 1_000, 1_500, 2_000) for z in (1.0, 1.5, 2.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--ways", nargs="+", default=["hnswlib", "faiss_hnsw", "faiss_ivf"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "rivals.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    vectors = synthetic.make(options.documents, WIDTH, QUERIES)
    rows, queries, asked = vectors.documents.astype(np.float32), vectors.queries, vectors.others
    faiss.normalize_L2(rows)
    truth, known = (faiss.knn(x, rows, K, metric=faiss.METRIC_INNER_PRODUCT)[1] for x in (queries, asked))
    chosen: dict[str, float] = {}

    def tried(name: str) -> Callable[[Iterable[tuple[float, Way]]], Way]:
        def try_all(points: Iterable[tuple[float, Way]]) -> Way:
            for knob, way in points:
                chosen[name] = knob
                if recall(way(asked), known) >= WANTED:
                    break
            return way

        return try_all

    makers = {"hnswlib": hnswlib_way, "faiss_hnsw": faiss_hnsw, "faiss_ivf": faiss_ivf}
    ways: dict[str, Way] = {}
    built: dict[str, float] = {}
    for name in ("ours_pq4", "ours_ivf", *options.ways):
        began = time.thread_time()
        storage = name.removeprefix("ours_")
        ways[name] = ours(rows, asked, storage, tried(name)) if name.startswith("ours") else makers[name](rows, tried(name))
        built[name] = round(time.thread_time() - began, 1)
        print(name, chosen[name], built[name], flush=True)
    times = take({name: lambda i, way=way: way(queries[i : i + 1]) for name, way in ways.items()}, QUERIES)
    found = {
        "documents": options.documents,
        "recall": {name: recall(way(queries), truth) for name, way in ways.items()},
        "knob": chosen,
        "build_and_choose_seconds": built,
        "single": summary(times, "ours_pq4"),
    }
    print(found)
    cells = json.loads(options.out.read_text())["cells"] if options.out.exists() else {}
    cells[str(options.documents)] = found
    options.out.write_text(json.dumps({"width": WIDTH, "k": K, "wanted": WANTED, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
