"""Do two threads answer a batch in half of the time? An index folder over real vectors, on the clock, in turns.

    python benchmarks/threads.py ../shared/datasets [--encoder minilm] [--encoded made]          (writes results/threads.json)

Batches of 1,024 queries that were not used for choosing settings, by `search(queries, threads=…)`. On a machine that others use the
second thread waits for a processor: read the largest ratio as what there is to gain.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from adawidth import open_index
from adawidth.threads import cpus
from real import CHOOSING, K, built, collection

RESULTS = Path(__file__).parent / "results" / "threads.json"
BATCH, TURNS, STORAGES = 1_024, 15, ("pq4", "ivf", "graph")


def measured(rows: np.ndarray, held: np.ndarray, storage: str, threads: int) -> dict[str, float]:
    """Milliseconds of a batch with one thread and with several, and how many times faster several are."""
    queries = held[CHOOSING:][:BATCH]
    taken: dict[int, list[float]] = {1: [], threads: []}
    with tempfile.TemporaryDirectory() as folder:
        built(rows, held[:CHOOSING], Path(folder) / "index", storage)
        with open_index(Path(folder) / "index") as index:
            for turn in range(TURNS + 1):
                for count, times in taken.items():
                    began = time.perf_counter()
                    index.search(queries, K, threads=count)
                    if turn:  # the first reads rows from the disk
                        times.append(1e3 * (time.perf_counter() - began))
    one, several = (np.array(times) for times in taken.values())
    return {
        "one_ms": round(float(np.median(one)), 1),
        "several_ms": round(float(np.median(several)), 1),
        "times": round(float(np.median(one / several)), 2),
        "least": round(float((one / several).min()), 2),
        "most": round(float((one / several).max()), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--encoded", type=Path, help="more collections, encoded")
    options = parser.parse_args()
    rows, held = collection(options.encoder, [folder for folder in (options.folder, options.encoded) if folder])
    cells = {storage: measured(rows, held, storage, cpus()) for storage in STORAGES}
    facts = {"command": "python benchmarks/threads.py ../shared/datasets", "documents": len(rows), "width": rows.shape[1]}
    text = json.dumps({**facts, "batch": BATCH, "threads": cpus(), "cells": cells}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
