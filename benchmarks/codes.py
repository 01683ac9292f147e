"""Four bits a coordinate of 64, or two bits a coordinate of 128: which codes of 32 bytes hold more of the answer in their shortlist?
And what is left of nDCG@10 when an index on disk answers, from codes to the taper?

    python benchmarks/codes.py ../shared/datasets                 (writes results/codes.json)

Real collections under PCA, test queries. The answer is the exact top 10 at a target width; the shortlist is what the codes find. The
index is searched as it is by default: the taper at quality .99, 500 candidates.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import faiss
import numpy as np

from adawidth import AdaWidth, Dataset, Rotation
from adawidth.data import unit
from adawidth.index import MemoryIndex
from adawidth.index.codes import FourBit
from adawidth.metrics import Measure, evaluate
from adawidth.search import exhaustive
from models import datasets
from turns import recall

WAYS = {"64 at four bits": (64, 4), "128 at two bits": (128, 2)}
SHORTLISTS = (100, 200, 500)
TARGETS = (80, 96, 128, 160, 192, 256)  # and the encoder's width
STORAGES = ("flat", "pq4", "ivf")
K = 10
NDCG = Measure("nDCG", K)
RESULTS = Path(__file__).parent / "results" / "codes.json"


def measure(data: Dataset) -> dict[str, dict[str, dict[str, float]]]:
    """Shares of the exact top 10 by target width, way and shortlist."""
    rotation = Rotation.pca(data.documents)
    documents, queries = (rotation.apply(vectors.all()) for vectors in (data.documents, data.queries_of("test")))
    found = {}
    for way, (width, bits) in WAYS.items():
        codes = FourBit.build(unit(documents[:, :width]), seed=0, bits=bits)
        found[way] = codes.search(unit(queries[:, :width]), max(SHORTLISTS))
    out: dict[str, dict[str, dict[str, float]]] = {}
    for target in sorted({*(m for m in TARGETS if m < rotation.width), rotation.width}):
        truth = faiss.knn(unit(queries[:, :target]), unit(documents[:, :target]), K, metric=faiss.METRIC_INNER_PRODUCT)[1]
        out[str(target)] = {way: {str(n): recall(rows[:, :n], truth) for n in SHORTLISTS} for way, rows in found.items()}
    return out


def answered(data: Dataset) -> dict[str, float]:
    """nDCG@10 of the exact ranking at full width, and of an index on disk by its storage."""
    test = data.split("test")
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    index = MemoryIndex(data.documents, model.rotation)
    ranked = {"exact": exhaustive(index, model.rotation.apply(test.vectors.all()), model.width, K, test.own).rows}
    with tempfile.TemporaryDirectory() as folder:
        for storage in STORAGES:
            found = model.index(data.documents, Path(folder) / storage, storage=storage).search(test.vectors, K + 1)
            rows = [[data.documents.row_of[name] for name in names] for names in found.ids]
            ranked[storage] = np.array([[r for r in row if r != own][:K] for row, own in zip(rows, test.own, strict=True)])
    return {way: round(float(evaluate([NDCG], rows, test.judged)[str(NDCG)].mean()), 4) for way, rows in ranked.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    collections = {f"{data.name}/{data.encoder}": data for data in datasets(options.folder)}
    cells = {name: measure(data) for name, data in collections.items()}
    ndcg = {name: answered(data) for name, data in collections.items()}
    found = {"command": "python benchmarks/codes.py ../shared/datasets", "cells": cells, "ndcg": ndcg}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(ndcg, indent=1))
    for target in map(str, (*TARGETS, 384)):
        held = [cell[target] for cell in cells.values() if target in cell]
        print(target, {way: {n: round(float(np.mean([row[way][n] for row in held])), 4) for n in held[0][way]} for way in WAYS})


if __name__ == "__main__":
    main()
