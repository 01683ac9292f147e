"""Search, one thread, width 1,024: codes of the first coordinates, then the taper, against faiss' exact scan at full width.

    python benchmarks/latency.py [--documents 200000 1000000] [--storages pq4 ivf]

Single queries and batches of 256 take turns with faiss. Recall is of faiss' exact top 10. The taper and the number of candidates are
chosen on other queries: the fewest candidates, and the cheapest taper among them, that keep a recall of .983 there.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import faiss
import numpy as np

import synthetic
from adawidth.data import Vectors
from adawidth.index import MemoryIndex
from adawidth.index.codes import Codes, build
from adawidth.index.fused import Rescorer
from adawidth.policies.taper import LADDER, Taper
from adawidth.rotation import Rotation
from adawidth.training.taper import calibrate
from rescoring import START, K
from turns import recall, summary, take

WIDTH, BATCH, TURNS, BATCH_TURNS = 1_024, 256, 60, 2
WANTED = 0.983
CANDIDATES = (500, 700, 1_000, 1_400, 2_000, 3_000, 4_000, 6_000)
KNOBS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, np.inf)
SAMPLE = 50_000  # documents that the taper is calibrated on
PART = 50_000


def exact(rows: np.ndarray) -> faiss.IndexFlatIP:
    """faiss over float32 copies of the rows."""
    index = faiss.IndexFlatIP(rows.shape[1])
    for start in range(0, len(rows), PART):
        index.add(rows[start : start + PART].astype(np.float32))
    return index


def unit_prefixes(rows: np.ndarray, width: int) -> np.ndarray:
    """The block that codes are made of."""
    block = np.empty((len(rows), width), np.float32)
    for start in range(0, len(rows), PART):
        block[start : start + PART] = rows[start : start + PART, :width]
    faiss.normalize_L2(block)
    return block


def lengths(rows: np.ndarray) -> np.ndarray:
    """Of the rows as stored."""
    parts = [np.linalg.norm(rows[start : start + PART].astype(np.float32), axis=1) for start in range(0, len(rows), PART)]
    return np.concatenate(parts)


class Ours:
    """Codes, rescorer, and the settings chosen."""

    def __init__(self, vectors: synthetic.Vectors, codes: Codes, truth: np.ndarray) -> None:
        """`truth` is the exact answer to the queries that settings are chosen on."""
        rows = vectors.documents
        whole = lengths(rows)
        self.codes, self.width = codes, codes.width
        self.rescorer = Rescorer([rows], lambda _: whole, np.arange(len(rows)))
        self.candidates, self.policy, self.chosen_recall = self._choose(vectors, truth)

    def __call__(self, queries: np.ndarray) -> np.ndarray:
        near = self.codes.search(queries[:, : self.width], self.candidates)
        return self.rescorer.answer(queries, near, self.policy, K).rows

    def _choose(self, vectors: synthetic.Vectors, truth: np.ndarray) -> tuple[int, Taper, float]:
        asked, target = vectors.others, vectors.documents.shape[1]
        index = MemoryIndex(Vectors.of(vectors.documents[:SAMPLE].astype(np.float32)), Rotation.identity(target))
        ladder = tuple(width for width in LADDER if START <= width <= target)
        calibration = calibrate(index, asked[:200], ladder)
        near = self.codes.search(asked[:, : self.width], CANDIDATES[-1])
        enough = [candidates for candidates in CANDIDATES if recall(near[:, :candidates], truth) >= WANTED + 0.004]
        candidates = enough[0] if enough else CANDIDATES[-1]
        near = np.ascontiguousarray(near[:, :candidates])
        for z in KNOBS:
            policy = Taper(calibration, z, K)
            kept = recall(self.rescorer.answer(asked, near, policy, K).rows, truth)
            if kept >= WANTED:
                break
        return candidates, policy, kept


def measure(documents: int, stretch: float, storages: list[str], widths: list[int]) -> list[dict[str, object]]:
    """All storages at one number of documents."""
    vectors = synthetic.make(documents, WIDTH, BATCH * BATCH_TURNS, stretch)
    queries = vectors.queries
    flat = exact(vectors.documents)
    truth = flat.search(queries, K)[1]
    other = flat.search(vectors.others, K)[1]
    singles = [queries[i : i + 1] for i in range(TURNS)]
    batches = [queries[i * BATCH : (i + 1) * BATCH] for i in range(BATCH_TURNS)]

    def timed(storage: str, width: int) -> dict[str, object]:
        ours = Ours(vectors, build(unit_prefixes(vectors.documents, width), storage, seed=0), other)
        single = take({"ours": lambda i: ours(singles[i]), "faiss": lambda i: flat.search(singles[i], K)}, TURNS)
        batch = take({"ours": lambda i: ours(batches[i]), "faiss": lambda i: flat.search(batches[i], K)}, BATCH_TURNS)
        near = ours.codes.search(queries[:, :width], ours.candidates)
        answers = ours.rescorer.answer(queries, near, ours.policy, K)
        found = {
            "documents": documents, "stretch": stretch, "storage": storage, "coded": width,
            "candidates": ours.candidates, "z": str(ours.policy.z),
            "recall": recall(answers.rows, truth), "recall_when_chosen": ours.chosen_recall, "shortlist_recall": recall(near, truth),
            "mean_width": round(float(answers.widths.mean()), 1), "bytes_per_document": ours.codes.bytes_per_document,
            "single": summary(single, "ours"), "batch": summary(batch, "ours", BATCH),
        }  # fmt: skip
        print(found, flush=True)
        return found

    return [timed(storage, width) for storage in storages for width in widths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--storages", nargs="+", default=["pq4", "ivf"])
    parser.add_argument("--stretch", type=float, default=1.0, help="draws the spectrum out: 2.67 for 1,024 axes like 384")
    parser.add_argument("--coded", type=int, nargs="+", default=[START])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "latency.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    found = [row for documents in options.documents for row in measure(documents, options.stretch, options.storages, options.coded)]
    cells = json.loads(options.out.read_text())["cells"] if options.out.exists() else {}
    cells |= {f"{row['documents']}/{row['stretch']}/{row['storage']}/{row['coded']}": row for row in found}
    options.out.write_text(json.dumps({"width": WIDTH, "k": K, "batch": BATCH, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
