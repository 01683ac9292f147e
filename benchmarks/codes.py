"""Four bits a coordinate of 64, or two bits a coordinate of 128: which codes of 32 bytes hold more of the answer in their shortlist?

    python benchmarks/codes.py ../shared/datasets                 (writes results/codes.json)

Real collections under PCA, test queries. The answer is the exact top 10 at a target width; the shortlist is what the codes find.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import faiss

from adawidth import Dataset, Rotation
from adawidth.data import unit
from adawidth.index.codes import FourBit
from models import datasets
from turns import recall

WAYS = {"64 at four bits": (64, 4), "128 at two bits": (128, 2)}
SHORTLISTS = (100, 200, 500)
TARGETS = (80, 96, 128, 160, 192, 256)  # and the encoder's width
K = 10
RESULTS = Path(__file__).parent / "results" / "codes.json"


def measure(data: Dataset) -> dict[str, dict[str, dict[str, float]]]:
    """Shares of the exact top 10 by target width, way and shortlist."""
    rotation = Rotation.pca(data.documents)
    documents, queries = (rotation.apply(vectors.all()) for vectors in (data.documents, data.queries_of("test")))
    found = {}
    for way, (width, bits) in WAYS.items():
        codes = FourBit.build(unit(documents[:, :width]), seed=0, bits=bits)
        found[way] = {n: codes.search(unit(queries[:, :width]), n) for n in SHORTLISTS}
    out: dict[str, dict[str, dict[str, float]]] = {}
    for target in sorted({*(m for m in TARGETS if m < rotation.width), rotation.width}):
        truth = faiss.knn(unit(queries[:, :target]), unit(documents[:, :target]), K, metric=faiss.METRIC_INNER_PRODUCT)[1]
        out[str(target)] = {way: {str(n): recall(rows, truth) for n, rows in by_size.items()} for way, by_size in found.items()}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    cells = {f"{data.name}/{data.encoder}": measure(data) for data in datasets(options.folder)}
    text = json.dumps({"command": "python benchmarks/codes.py ../shared/datasets", "cells": cells}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
