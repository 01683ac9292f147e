"""Search, one thread, width 1,024: an index folder and the taper against faiss' exact scan at full width.

    python benchmarks/latency.py [--documents 200000 1000000] [--storages pq4 ivf] [--stretch 1]

Single queries and batches of 256 take turns with faiss. Ours is all of `index.search`: checks, rotation, codes, taper. Recall is of
faiss' exact top 10; shortlist and quality are chosen on other queries, to keep a recall of .983 there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import faiss
import numpy as np

import synthetic
from ours import K, Ours
from turns import summary, take

WIDTH, BATCH, BATCH_TURNS, TURNS, EACH = 1_024, 256, 2, 30, 8
WANTED = 0.983
PART = 50_000


def exact(rows: np.ndarray) -> faiss.IndexFlatIP:
    """faiss over float32 copies of the rows."""
    index = faiss.IndexFlatIP(rows.shape[1])
    for start in range(0, len(rows), PART):
        index.add(rows[start : start + PART].astype(np.float32))
    return index


def measure(documents: int, stretch: float, storages: list[str]) -> list[dict[str, object]]:
    """All storages at one number of documents."""
    vectors = synthetic.make(documents, WIDTH, BATCH * BATCH_TURNS, stretch)
    queries = vectors.queries
    flat = exact(vectors.documents)
    truth, other = (flat.search(x, K)[1] for x in (queries, vectors.others))
    singles = [queries[i : i + 1] for i in range(TURNS * EACH)]
    batches = [queries[i * BATCH : (i + 1) * BATCH] for i in range(BATCH_TURNS)]

    def timed(storage: str) -> dict[str, object]:
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(Path(folder) / "index", vectors, storage, other, WANTED)
            facts = ours.facts(queries, truth)
            single = take({"ours": lambda i: ours(singles[i]), "faiss": lambda i: flat.search(singles[i], K)}, TURNS, EACH)
            batch = take({"ours": lambda i: ours(batches[i]), "faiss": lambda i: flat.search(batches[i], K)}, BATCH_TURNS)
        found = {
            "documents": documents, "stretch": stretch, "wanted": WANTED, **facts,
            "single": summary(single, "ours"), "batch": summary(batch, "ours", BATCH),
        }  # fmt: skip
        print(found, flush=True)
        return found

    return [timed(storage) for storage in storages]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--storages", nargs="+", default=["pq4", "ivf"])
    parser.add_argument("--stretch", type=float, default=1.0, help="draws the spectrum out: 2.67 for 1,024 axes like 384")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "latency.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    for documents in options.documents:
        found = measure(documents, options.stretch, options.storages)
        cells = json.loads(options.out.read_text())["cells"] if options.out.exists() else {}
        cells |= {f"{row['documents']}/{row['stretch']}/{row['storage']}": row for row in found}
        options.out.write_text(json.dumps({"width": WIDTH, "k": K, "batch": BATCH, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
