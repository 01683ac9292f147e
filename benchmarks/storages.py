"""What is left of nDCG@10 when an index on disk answers, from codes to the taper, by how it stores them?

    python benchmarks/storages.py ../shared/datasets                 (writes results/storages.json)

Real collections under PCA, test queries, against the exact ranking at full width. The index is searched as it is by default: the taper
at quality .99, 500 candidates.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from adawidth import AdaWidth, Dataset, Index
from adawidth.metrics import Measure, evaluate
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import exhaustive
from models import datasets

STORAGES = ("flat", "pq4", "ivf")
K = 10
NDCG = Measure("nDCG", K)
RESULTS = Path(__file__).parent / "results" / "storages.json"


def exact_and(model: AdaWidth, data: Dataset, indexes: Mapping[str, Index]) -> dict[str, np.ndarray]:
    """The rows that the exact ranking at full width gives, and those of indexes, by their names. A query's own document is left out."""
    test = data.split("test")
    index = MemoryBackend(data.documents, model.rotation)
    ranked = {"exact": exhaustive(index, model.rotation.apply(test.vectors.all()), model.width, K, test.own).rows}
    for name, made in indexes.items():
        rows = [[data.documents.row_of[one] for one in names] for names in made.search(test.vectors, K + 1).ids]
        ranked[name] = np.array([[r for r in row if r != own][:K] for row, own in zip(rows, test.own, strict=True)])
    return ranked


def ndcg(ranked: Mapping[str, np.ndarray], data: Dataset) -> dict[str, float]:
    judged = data.split("test").judged
    return {way: round(float(evaluate([NDCG], rows, judged)[str(NDCG)].mean()), 4) for way, rows in ranked.items()}


def measure(data: Dataset) -> dict[str, float]:
    """nDCG@10 of the exact ranking at full width, and of an index on disk by its storage."""
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    with tempfile.TemporaryDirectory() as folder:
        indexes = {storage: model.index(data.documents, Path(folder) / storage, storage=storage) for storage in STORAGES}
        return ndcg(exact_and(model, data, indexes), data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    cells = {f"{data.name}/{data.encoder}": measure(data) for data in datasets(options.folder)}
    text = json.dumps({"command": "python benchmarks/storages.py ../shared/datasets", "cells": cells}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
