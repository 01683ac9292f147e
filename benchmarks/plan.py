"""Does `adawidth plan` foretell what an index takes? Memory, disk and latency, by storage and size, beside what a real index takes.

    python benchmarks/plan.py                     (writes results/plan.json)

Vectors as synthetic.py makes them. The machine's table is measured before each storage, as `adawidth bench` does, so that whatever else
the machine does falls on both. Latency is processor time of single queries on one thread, lower quartile as in the table. Memory is what
a new process that searches holds, less what one with hardly any documents does.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import synthetic
from adawidth import AdaWidth, Vectors, plan
from adawidth.planning.bench import bench, machine
from adawidth.planning.memory import STORAGES
from ours import fitted
from resident import held

SIZES, WIDTH, QUERIES, FEW = (10_000, 60_000), 384, 100, 1_000
RESULTS = Path(__file__).parent / "results" / "plan.json"


def measure(model: AdaWidth, rows: np.ndarray, queries: np.ndarray, storage: str, home: Path) -> dict[str, float]:
    """What an index of these rows takes."""
    documents = Vectors(rows, [f"{row:08}" for row in range(len(rows))])
    with model.index(documents, home / "index", storage=storage, force=True) as index:
        for query in queries[:20]:
            index.search(query)
        spent = []
        for query in queries:
            began = time.thread_time()
            index.search(query)
            spent.append(time.thread_time() - began)
    disk = sum(file.stat().st_size for file in (home / "index").rglob("*") if file.is_file() and file.parent.name != "model")
    return {
        "milliseconds": 1e3 * float(np.quantile(spent, 0.25)),
        "disk_bytes": disk,
        "held_bytes": held(home / "index", home / "queries.npy"),
    }


def compared(model: AdaWidth, vectors: synthetic.Vectors, home: Path) -> list[dict[str, object]]:
    """Every storage at every size: foretold, measured, and the ratio."""
    found = []
    for storage in STORAGES:
        table = bench()
        least = measure(model, vectors.documents[:FEW], vectors.queries, storage, home)["held_bytes"]
        for size in SIZES:
            real = measure(model, vectors.documents[:size], vectors.queries, storage, home)
            real["memory_bytes"] = real.pop("held_bytes") - least
            option = next(one for one in plan(size, model=model, table=table).options if one.storage == storage)
            row: dict[str, object] = {"storage": storage, "documents": size}
            for name, value in real.items():
                foretold = getattr(option, name) - (FEW * option.bytes_per_document if name == "memory_bytes" else 0)
                row[name] = {"plan": round(foretold, 3), "measured": round(value, 3), "ratio": round(foretold / value, 2)}
            print(json.dumps(row), flush=True)
            found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    vectors = synthetic.make(SIZES[-1], WIDTH, QUERIES)
    model = fitted(vectors)
    with tempfile.TemporaryDirectory() as name:
        np.save(Path(name) / "queries.npy", vectors.queries[:20])
        cells = compared(model, vectors, Path(name))
    result = {"command": "python benchmarks/plan.py", "width": WIDTH, "machine": machine(), "cells": cells}
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
