"""What is saved, and what lost, by reading only candidates whose codes come near the k-th best?

    python benchmarks/gaps.py ../shared/datasets                 (writes results/gaps.json)

Real collections under PCA, test queries, the default search of an index folder, with the gap that was measured when it was written
(index/codes/gap.py) and with none: candidates and coordinates read, how many of the top 10 are the same, and nDCG@10.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from pathlib import Path

from adawidth import AdaWidth, Dataset, Index
from adawidth.index.view import View
from models import datasets
from storages import K, exact_and, ndcg
from turns import recall

STORAGES = ("pq4", "ivf")
RESULTS = Path(__file__).parent / "results" / "gaps.json"


def measure(data: Dataset, model: AdaWidth, index: Index) -> dict[str, float]:
    """One storage, with its gap and without."""
    view, queries = index.store.view, data.queries_of("test")
    assert isinstance(view, View)
    near, gaps, exact = index.search(queries, K), view._gaps, exact_and(model, data, {"near": index})
    view._gaps = [math.inf for _ in gaps]
    whole, every = index.search(queries, K), exact_and(model, data, {"whole": index})["whole"]
    assert near.read is not None
    assert whole.read is not None
    kept = ndcg({**exact, "whole": every}, data)
    return {
        "gap": round(gaps[0], 3),
        "candidates": round(float(near.read.candidates.mean()), 1),
        "of": round(float(whole.read.candidates.mean()), 1),
        "coordinates": round(float(near.read.coordinates.mean() / whole.read.coordinates.mean()), 3),
        "same": recall(near.rows, whole.rows),
        "nDCG@10": kept["near"],
        "nDCG@10, whole": kept["whole"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    cells = {}
    for data in datasets(options.folder):
        model = AdaWidth.fit(data, recipe="pca", labels=False)
        with tempfile.TemporaryDirectory() as folder:
            for storage in STORAGES:
                with model.index(data.documents, Path(folder) / storage, storage=storage) as index:
                    cells[f"{data.name}/{data.encoder}/{storage}"] = measure(data, model, index)
    text = json.dumps({"command": "python benchmarks/gaps.py ../shared/datasets", "cells": cells}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
