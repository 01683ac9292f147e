"""Real vectors: ours against ScaNN, RaBitQ, SymphonyQG, faiss, hnswlib, usearch and SVS, one query at a time and in batches, one thread.

    python benchmarks/real.py ../shared/datasets --encoded made [--collections minilm wordllama clues synthetic] [--ways ours_pq4 scann …]

About 15 minutes for the first three on two quiet cores; `synthetic` is a million vectors of 1,024, for some of the ways, and so is
`synthetic_prefix`, for rivals that search 256 coordinates alone: all of them at once don't fit into 24 GB.

All documents of all collections of an encoder are in one index, and so are the queries that are not held out. Of 1,500 test queries
400 are for choosing settings: each way is tried at all of its settings, and for each recall@10 of the exact full-width answer the
quickest that keeps it is taken. The others are timed, all ways in turns. `--encoded` is a folder of more collections of the same
layout (benchmarks/paper_data.py makes it). Every way gets the whole vectors; ours is all of `index.search` on an index folder
(`ours_pq4_24` with codes of 24 bytes a document).
Memory is what the process holds more with an index than before it, by document: also a rotation, which counts where there are few.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import synthetic
from adawidth import AdaWidth, Rotation, Vectors, load_dataset, open_index
from adawidth.data import BLOCK, unit
from adawidth.index.rescore import Rescorer
from adawidth.policies import Fixed
from adawidth.policies.select import Policies
from adawidth.record import Record
from adawidth.rotation import Rotated
from adawidth.stages import MemoryBackend
from adawidth.training.taper import RotatedQueries, fit_taper
from turns import recall, summary, take

K, START, HELD, CHOOSING, TURNS, EACH, BATCH, THREADS = 10, 64, 1_500, 400, 30, 32, 256, 2
AGAIN = 8  # settings of a way that are timed again
RECALLS = (0.95, 0.98, 0.99)
SYNTHETIC = (1_000_000, 1_024)  # documents and width
CALIBRATING = 200_000  # documents that the rotation and the taper learn from
SMALL = 20_000  # rows of an index that is made only to load and compile what it needs: enough that a graph is walked
RESULTS = Path(__file__).parent / "results" / "real.json"
SHORTLISTS = (30, 40, 50, 60, 70, 85, 100, 120, 140, 170, 200, 250, 300, 400, 500, 700, 1_000, 1_400)
READ = ({"quality": 0.98}, {"quality": 0.99}, {"quality": 1.0}, {"width": "full"})  # how far candidates are read
EFS = (12, 18, 24, 30, 36, 48, 64, 80, 96, 128, 160, 192, 256, 384)
PROBES = (4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 384)
SCANNED = (None, 20, 30, 40, 60, 80, 100, 140, 200, 280)  # lists of ours; None is as many as a query needs
REORDERED = (20, 30, 45, 60, 90, 120, 180, 240, 360, 540)  # candidates that ScaNN compares by whole vectors
PREFIX = 256  # leading coordinates that rivals search alone, in two ways …
RERANKED = (30, 60, 100, 150, 250, 400, 600)  # … and how many candidates of theirs are compared by whole rows
Way = Callable[[np.ndarray], np.ndarray]  # queries (Q, D) -> rows (Q, 10)
Ways = Iterator[tuple[dict[str, Any], Way]]


def collection(encoder: str, folders: Iterable[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Documents, with all queries but 1,500 among them, and those. A collection whose queries are documents gives some of these."""
    if encoder in ("synthetic", "synthetic_prefix"):
        made = synthetic.make(*SYNTHETIC, HELD - synthetic.OTHERS)
        return unit(made.documents.astype(np.float32)), unit(np.concatenate([made.others, made.queries]))
    rng, documents, held = np.random.default_rng(0), [], []
    name = "ada002" if encoder == "clues" else encoder
    for path in sorted(
        {path.name: path for folder in folders for path in folder.iterdir() if (path / "embeddings" / name).is_dir()}.values()
    ):
        if (path.name == "union") or ((path.name == "clues") != (encoder == "clues")):
            continue
        data = load_dataset(path, encoder=name)
        documents.append(data.documents.all())
        if encoder != "clues":
            test = set(data.queries_of("test").ids)
            queries, timed = data.queries.all(), np.array([one in test for one in data.queries.ids])
            documents.append(queries[~timed])
            held.append(queries[timed])
    rows = np.concatenate(documents)
    others = np.concatenate(held) if held else rows
    asked = rng.permutation(len(others))[:HELD]
    rest = np.delete(others, asked, axis=0)
    return unit(np.concatenate([rows, rest]) if held else rest), unit(others[asked])


def lists(rows: np.ndarray) -> int:
    return 2 ** round(math.log2(len(rows)) / 2 + 1)


def built(rows: np.ndarray, asked: np.ndarray, folder: Path, storage: str, size: int | None = None) -> None:
    """An index folder; the taper is calibrated for the full width, on the queries for choosing settings."""
    some = Vectors.of(rows[:CALIBRATING])
    rotation = Rotation.pca(some)
    train, dev = (RotatedQueries(rotation.apply(part)) for part in np.array_split(asked, 2))
    taper = fit_taper(MemoryBackend(some, rotation), train, dev, target=rotation.width, starts=(START,))
    wanted = {"bytes_per_document": size} if size else {}
    AdaWidth(rotation, Policies(rotation.width, taper, None), Record()).index(rows, folder, storage=storage, **wanted).close()


def ours(storage: str, size: int | None = None) -> Callable[[np.ndarray, np.ndarray], Ways]:
    def ways(rows: np.ndarray, asked: np.ndarray) -> Ways:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "index"
            process = get_context("fork").Process(target=built, args=(rows, asked, path, storage, size))  # whose memory does not count
            process.start()
            process.join()
            index = open_index(path)
            for nprobe, shortlist, further in product(SCANNED if storage == "ivf" else (None,), SHORTLISTS, READ):
                options = {"shortlist": shortlist, **further, **({"nprobe": nprobe} if nprobe else {})}
                yield options, lambda q, o=options: index.search(q, K, **o).rows

    return ways


def scann(trees: bool) -> Callable[[np.ndarray, np.ndarray], Ways]:
    """Anisotropic codes, and whole vectors to reorder by; with a tree of lists and a second assignment (SOAR), or a scan of all codes."""

    def ways(rows: np.ndarray, _: np.ndarray) -> Ways:
        from scann import scann_ops_pybind

        leaves = lists(rows) // 2
        made = scann_ops_pybind.builder(rows, K, "dot_product").set_n_training_threads(THREADS)
        if trees:
            made = made.tree(leaves, max(1, leaves // 10), training_sample_size=len(rows), soar_lambda=1.5, overretrieve_factor=2.0)
        made = made.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(100).build()
        for probes, reorder in product(PROBES if trees else (None,), REORDERED):
            options = {"pre_reorder_num_neighbors": reorder} | ({"leaves_to_search": probes} if trees else {})
            yield options, lambda q, o=options: np.atleast_2d((made.search(q[0], **o) if len(q) == 1 else made.search_batched(q, **o))[0])

    return ways


def on_prefix(
    rows: np.ndarray, find: Callable[[np.ndarray], Iterator[tuple[dict[str, Any], Callable[[np.ndarray, int], np.ndarray]]]]
) -> Ways:
    """A rival over the leading 256 coordinates under our rotation, whose candidates our kernel compares by whole rows."""
    rotation = Rotation.pca(Vectors.of(rows[:CALIBRATING]))
    whole = np.concatenate([rotation.stored(rows[start : start + BLOCK], rotation.width) for start in range(0, len(rows), BLOCK)])
    norms, ties = np.ones(len(rows), np.float32), np.arange(len(rows))
    rescorer, policy = Rescorer([whole], lambda width: norms, ties), Fixed(rotation.width, START)

    def search(queries: np.ndarray, found: Callable[[np.ndarray, int], np.ndarray], count: int) -> np.ndarray:
        rotated = Rotated(queries, rotation)
        asked = rescorer.asked(rotated, PREFIX)
        candidates = found(np.ascontiguousarray(rotated.values[:, :PREFIX]), count).astype(np.int64)
        return rescorer.answer(rotated, candidates, policy, K, asked).rows

    for options, found in find(unit(whole[:, :PREFIX].astype(np.float32))):
        for count in RERANKED:
            yield options | {"candidates": count}, lambda q, f=found, c=count: search(q, f, c)


def scann_prefix(rows: np.ndarray, _: np.ndarray) -> Ways:
    """ScaNN with SOAR, for candidates alone."""

    def find(prefixes: np.ndarray) -> Iterator[tuple[dict[str, Any], Callable[[np.ndarray, int], np.ndarray]]]:
        from scann import scann_ops_pybind

        leaves = lists(prefixes) // 2
        made = scann_ops_pybind.builder(prefixes, K, "dot_product").set_n_training_threads(THREADS)
        made = made.tree(leaves, max(1, leaves // 10), training_sample_size=200_000, soar_lambda=1.5, overretrieve_factor=2.0)
        made = made.score_ah(2, anisotropic_quantization_threshold=0.2).build()
        for probes in PROBES:

            def found(queries: np.ndarray, count: int, probes: int = probes) -> np.ndarray:
                search = made.search_batched if len(queries) > 1 else lambda q, **o: [made.search(q[0], **o)[0][None]]
                return np.asarray(search(queries, final_num_neighbors=count, leaves_to_search=probes)[0])

            yield {"leaves_to_search": probes}, found

    return on_prefix(rows, find)


def faiss_prefix(rows: np.ndarray, _: np.ndarray) -> Ways:
    """Lists of four-bit codes of residuals, for candidates alone."""

    def find(prefixes: np.ndarray) -> Iterator[tuple[dict[str, Any], Callable[[np.ndarray, int], np.ndarray]]]:
        index = faiss.index_factory(PREFIX, f"RR,IVF{lists(prefixes)},PQ{PREFIX // 2}x4fsr", faiss.METRIC_INNER_PRODUCT)
        index.train(prefixes[:: max(1, len(prefixes) // (64 * lists(prefixes)))])
        index.add(prefixes)
        for probes in PROBES:
            options = faiss.SearchParametersPreTransform(index_params=faiss.SearchParametersIVF(nprobe=probes))
            yield {"nprobe": probes}, lambda q, n, o=options: index.search(q, n, params=o)[1]

    return on_prefix(rows, find)


def rabitq(rows: np.ndarray, _: np.ndarray) -> Ways:
    """Lists of four-bit codes with error bounds."""
    from rabitqlib import IvfIndex

    learner = faiss.Kmeans(rows.shape[1], lists(rows), niter=10, seed=0, spherical=True, max_points_per_centroid=64)
    learner.train(rows)
    index = IvfIndex(rows.shape[1], len(rows), lists(rows), 4, "l2")
    index.build(rows, learner.centroids, learner.index.search(rows, 1)[1][:, 0].astype(np.uint32), num_threads=THREADS)
    for probes in PROBES:
        yield {"nprobe": probes}, lambda q, n=probes: index.search(q, K, n)[0].astype(np.int64)


def symphony(rows: np.ndarray, _: np.ndarray) -> Ways:
    """A graph whose neighbours carry one-bit codes."""
    from rabitqlib import SymqgIndex

    index = SymqgIndex(rows.shape[1], 32, "l2")
    index.build(rows, 200, num_threads=THREADS)
    for ef in EFS:
        yield {"ef": ef}, lambda q, ef=ef: index.search(q, K, ef)[0].astype(np.int64).reshape(len(q), -1)


def faiss_ivf(rows: np.ndarray, _: np.ndarray) -> Ways:
    """Lists of four-bit codes of residuals, refined with whole vectors."""
    half = rows.shape[1] // 2
    index = faiss.index_factory(rows.shape[1], f"RR,IVF{lists(rows)},PQ{half}x4fsr,RFlat", faiss.METRIC_INNER_PRODUCT)
    index.train(rows)
    index.add(rows)
    for probes, factor in product(PROBES, (3, 6, 12)):
        inner = faiss.SearchParametersPreTransform(index_params=faiss.SearchParametersIVF(nprobe=probes))
        options = faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=inner)
        yield {"nprobe": probes, "factor": factor}, lambda q, o=options: index.search(q, K, params=o)[1]


def faiss_hnsw(rows: np.ndarray, _: np.ndarray) -> Ways:
    graph = faiss.IndexHNSWFlat(rows.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 200
    graph.add(rows)
    for ef in EFS:
        yield {"ef": ef}, lambda q, ef=ef: graph.search(q, K, params=faiss.SearchParametersHNSW(efSearch=ef))[1]


def hnswlib(rows: np.ndarray, _: np.ndarray) -> Ways:
    from hnswlib import Index

    graph = Index("ip", rows.shape[1])
    graph.init_index(len(rows), ef_construction=200, M=16, random_seed=0)
    graph.add_items(rows, num_threads=THREADS)

    def search(queries: np.ndarray, ef: int) -> np.ndarray:
        graph.set_ef(ef)
        return graph.knn_query(queries, K, num_threads=1)[0].astype(np.int64)

    for ef in EFS:
        yield {"ef": ef}, lambda q, ef=ef: search(q, ef)


def usearch(rows: np.ndarray, _: np.ndarray) -> Ways:
    """A graph over float16 vectors."""
    from usearch.index import Index

    graph = Index(ndim=rows.shape[1], metric="ip", dtype="f16", connectivity=16, expansion_add=200)
    graph.add(np.arange(len(rows)), rows, threads=THREADS)

    def search(queries: np.ndarray, ef: int) -> np.ndarray:
        graph.expansion_search = ef
        return np.atleast_2d(graph.search(queries if len(queries) > 1 else queries[0], K, threads=1).keys).astype(np.int64)

    for ef in EFS:
        yield {"ef": ef}, lambda q, ef=ef: search(q, ef)


def vamana(rows: np.ndarray, _: np.ndarray) -> Ways:
    """A graph over whole vectors, of scalable-vs. Its compressed ones, LVQ and LeanVec, run on Intel's CPUs only: others end it."""
    import svs

    how = svs.VamanaBuildParameters(graph_max_degree=32, window_size=200, alpha=0.95)
    graph = svs.Vamana.build(how, rows, svs.DistanceType.MIP, num_threads=THREADS)
    graph.num_threads = 1

    def search(queries: np.ndarray, window: int) -> np.ndarray:
        graph.search_window_size = window
        return np.asarray(graph.search(queries, K)[0]).astype(np.int64)

    for window in EFS:
        yield {"window": window}, lambda q, w=window: search(q, w)


MAKERS: dict[str, Callable[[np.ndarray, np.ndarray], Ways]] = {
    "ours_pq4": ours("pq4"), "ours_pq4_24": ours("pq4", 24), "ours_pq4_16": ours("pq4", 16),
    "ours_ivf": ours("ivf"), "ours_graph": ours("graph"), "scann": scann(trees=True),
    "scann_flat": scann(trees=False), "scann_prefix": scann_prefix, "faiss_prefix": faiss_prefix, "rabitq": rabitq, "symphony": symphony,
    "faiss_ivf": faiss_ivf, "faiss_hnsw": faiss_hnsw, "hnswlib": hnswlib, "usearch": usearch, "vamana": vamana,
}  # fmt: skip


def resident() -> int:
    """Bytes that this process holds of its own, not counting pages of files."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))


def singles(way: Way, queries: np.ndarray) -> tuple[np.ndarray, float]:
    """The answers to one query at a time, and the processor seconds of one: the least of three parts' means."""
    found, taken = [], []
    for part in np.array_split(queries, 3):
        began = time.thread_time()
        found += [way(part[i : i + 1]) for i in range(len(part))]
        taken.append((time.thread_time() - began) / len(part))
    return np.concatenate(found), min(taken)


def chosen(ways: Ways, queries: np.ndarray, truth: np.ndarray) -> dict[float, tuple[dict[str, Any], Way]]:
    """The quickest settings that keep each recall: those that seem so are timed again in turns, as the machine is quicker at times."""
    tried: list[tuple[float, float, dict[str, Any], Way]] = []
    for knob, way in ways:
        found, seconds = singles(way, queries)
        tried.append((seconds, recall(found, truth), knob, way))
    tried.sort(key=lambda one: one[0])
    best: dict[float, tuple[dict[str, Any], Way]] = {}
    for wanted in RECALLS:
        if quick := [(knob, way) for _, kept, knob, way in tried if kept >= wanted][:AGAIN]:
            times = take({str(i): lambda q, way=way: way(queries[q : q + 1]) for i, (_, way) in enumerate(quick)}, CHOOSING // EACH, EACH)
            best[wanted] = min(enumerate(quick), key=lambda one: float(np.median(times[str(one[0])])))[1]
    return best


def measure(name: str, folders: Iterable[Path], makers: Iterable[str]) -> dict[str, Any]:
    """All ways over one collection."""
    rows, held = collection(name, folders)
    truth = faiss.knn(held, rows, K, metric=faiss.METRIC_INNER_PRODUCT)[1]
    asked, known, queries, answers = held[:CHOOSING], truth[:CHOOSING], held[CHOOSING:], truth[CHOOSING:]
    made: dict[str, dict[float, tuple[dict[str, Any], Way]]] = {}
    facts: dict[str, Any] = {"documents": len(rows), "width": rows.shape[1], "bytes_per_document": {}, "build_processor_seconds": {}}
    running = []  # so that what they hold stays
    for maker in makers:
        next(MAKERS[maker](rows[:SMALL], asked))[1](asked[:1])  # loads what would count as its memory otherwise
        before, began = resident(), time.process_time()
        ways = MAKERS[maker](rows, asked)
        first = next(ways)
        first[1](asked[:50])
        facts["build_processor_seconds"][maker] = round(time.process_time() - began, 1)
        held = round((resident() - before) / len(rows), 1)
        facts["bytes_per_document"][maker] = held if held > 0 else None  # where more of others' memory was given back meanwhile
        running.append(ways)
        made[maker] = chosen(_chained(first, ways), asked, known)
        print(name, maker, facts["bytes_per_document"][maker], {w: k for w, (k, _) in made[maker].items()}, flush=True)
    facts["recalls"] = {}
    for wanted in RECALLS:
        here = {maker: found[wanted] for maker, found in made.items() if wanted in found}
        if not any(maker.startswith("ours") for maker in here):
            print(name, wanted, "is reached by none of ours", flush=True)
            continue
        times = take({m: lambda i, way=way: way(queries[i : i + 1]) for m, (_, way) in here.items()}, TURNS, EACH)
        batches = take({m: lambda i, way=way: way(queries[i * BATCH : (i + 1) * BATCH]) for m, (_, way) in here.items()}, 3)
        best = min((m for m in here if m.startswith("ours")), key=lambda m: float(np.median(times[m])))
        facts["recalls"][str(wanted)] = {
            "ours": best,
            "settings": {maker: knob for maker, (knob, _) in here.items()},
            "recall": {maker: recall(singles(way, queries)[0], answers) for maker, (_, way) in here.items()},
            "single": summary(times, best),
            "batch": summary(batches, best, BATCH),
        }
        print(json.dumps(facts["recalls"][str(wanted)], indent=1), flush=True)
    return facts


def _chained(first: tuple[dict[str, Any], Way], rest: Ways) -> Ways:
    yield first
    yield from rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoded", type=Path, help="more collections, encoded")
    parser.add_argument("--collections", nargs="+", default=["minilm", "wordllama", "clues"])
    parser.add_argument("--ways", nargs="+", default=[way for way in MAKERS if not way.endswith("prefix")])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    for name in options.collections:
        found = measure(name, [folder for folder in (options.folder, options.encoded) if folder], options.ways)
        stored = json.loads(options.out.read_text())["cells"] if options.out.exists() else {}
        command = "python benchmarks/real.py ../shared/datasets --encoded made"
        options.out.write_text(json.dumps({"command": command, "k": K, "cells": {**stored, name: found}}, indent=1) + "\n")


if __name__ == "__main__":
    main()
