"""How the scan grows with the number of documents: four-bit codes of 64 coordinates in one list (pq4) and in many (ivf), one thread.

    python benchmarks/growth.py [--documents 10000 100000 1000000 10000000]

The 500 best for single queries and for batches of 64; recall is the share of the exact 10 nearest at these 64 coordinates. Beside it
the time that memory needs to give all codes once, at the speed at which it gives a large array to be added up.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import faiss
import numpy as np

import synthetic
from adawidth.index.codes import build
from turns import recall, summary, take

WIDTH, CANDIDATES, SINGLES, EACH, BATCH, BATCH_TURNS = 64, 500, 200, 4, 64, 3
PART = 50_000


def unit_prefixes(rows: np.ndarray) -> np.ndarray:
    """The block that codes are made of."""
    block = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), PART):
        block[start : start + PART] = rows[start : start + PART]
    faiss.normalize_L2(block)
    return block


def bandwidth() -> float:
    """Bytes a second that one thread reads, the best of some turns."""
    large = np.ones(64_000_000, np.int64)
    taken = []
    for _ in range(5):
        began = time.thread_time()
        large.sum()
        taken.append(time.thread_time() - began)
    return large.nbytes / min(taken)


def measure(documents: int) -> dict[str, object]:
    """One number of documents."""
    vectors = synthetic.make(documents, WIDTH, max(SINGLES, BATCH * BATCH_TURNS))
    queries, block = vectors.queries, unit_prefixes(vectors.documents)
    del vectors
    truth = faiss.knn(queries, block, 10, metric=faiss.METRIC_INNER_PRODUCT)[1]
    codes = {storage: build(block, storage, seed=0) for storage in ("pq4", "ivf")}
    del block
    singles = {name: lambda i, made=made: made.search(queries[i : i + 1], CANDIDATES) for name, made in codes.items()}
    batches = {name: lambda i, made=made: made.search(queries[i * BATCH : (i + 1) * BATCH], CANDIDATES) for name, made in codes.items()}
    times, batch = take(singles, SINGLES // EACH, EACH), summary(take(batches, BATCH_TURNS), "ivf", BATCH)
    return {
        "documents": documents,
        "share_scanned": round(codes["ivf"].share_scanned, 3),
        **{f"{name}_recall": recall(made.search(queries, CANDIDATES), truth) for name, made in codes.items()},
        "single": summary(times, "ivf"),
        "p99_us": {name: round(float(np.quantile(taken, 0.99)) * 1e6, 1) for name, taken in times.items()},
        "batch": batch,
        "queries_per_second": {name: round(1e6 / batch[f"{name}_us"]) for name in codes},
        "memory_us": round(codes["pq4"].bytes_per_document * documents / bandwidth() * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "growth.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    cells = json.loads(options.out.read_text())["cells"] if options.out.exists() else {}
    for documents in options.documents:
        cells[str(documents)] = measure(documents)
        print(cells[str(documents)], flush=True)
        settings = {"width": WIDTH, "candidates": CANDIDATES, "batch": BATCH}
        options.out.write_text(json.dumps({**settings, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
