"""What do codes of a few bytes find: four bits of few coordinates, two of more, or one of many? And what is left of nDCG@10?

    python benchmarks/codes.py ../shared/datasets                 (writes results/codes.json)

Real collections under PCA, fitted without labels, test queries. `cells`: codes of 32 bytes by target width. `bytes`: 16 to 48 bytes;
the answer is the exact top 10 at full width, the shortlist is what the codes find; nDCG@10 is that of an index with `storage="pq4"` and
`bytes_per_document`, searched with the defaults, beside that of the exact full-width ranking.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from adawidth import AdaWidth, Dataset, Rotation
from adawidth.data import unit
from adawidth.index.codes import FourBit
from adawidth.index.codes.base import synthetic_queries
from adawidth.index.codes.shapes import Shape, chosen_shape, shapes
from adawidth.types import BYTES
from models import ENCODERS, datasets
from storages import exact_and, ndcg
from turns import recall

WORDS = {4: "four bits", 2: "two bits", 1: "one bit"}
TODAY = (Shape(64, 4), Shape(128, 2))
SHORTLISTS = (100, 200, 500)
TARGETS = (80, 96, 128, 160, 192, 256)  # and the encoder's width
K, ASKED = 10, 500
RESULTS = Path(__file__).parent / "results" / "codes.json"


def named(shape: Shape) -> str:
    return f"{shape.width} at {WORDS[shape.bits]}"


def found(documents: np.ndarray, queries: np.ndarray, shape: Shape) -> dict[int, np.ndarray]:
    """What codes of this shape find, by the size of the shortlist."""
    codes = FourBit.build(unit(documents[:, : shape.width]), seed=0, bits=shape.bits)
    return {n: codes.search(unit(queries[:, : shape.width]), n) for n in SHORTLISTS}


def held(by_size: dict[int, np.ndarray], truth: np.ndarray) -> dict[str, float]:
    return {str(n): recall(rows, truth) for n, rows in by_size.items()}


def synthetic(documents: np.ndarray, shape: Shape) -> float:
    """The share of the top 10 of synthetic queries, on which shapes and nprobe are chosen, that the codes find among 100."""
    queries = synthetic_queries(documents, ASKED, seed=1)
    truth = faiss.knn(queries, documents, K, metric=faiss.METRIC_INNER_PRODUCT)[1]
    return recall(found(documents, queries, shape)[SHORTLISTS[0]], truth)


def measure(data: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """Shares of the exact top 10: by target width for codes of 32 bytes, and by bytes at full width."""
    rotation = Rotation.pca(data.documents)
    documents, queries = (rotation.apply(vectors.all()) for vectors in (data.documents, data.queries_of("test")))
    every = sorted({*TODAY, *(shape for size in BYTES for shape in shapes(size, rotation.width))})
    rows = {shape: found(documents, queries, shape) for shape in every}
    targets = {}
    for target in sorted({*(m for m in TARGETS if m < rotation.width), rotation.width}):
        truth = faiss.knn(unit(queries[:, :target]), unit(documents[:, :target]), K, metric=faiss.METRIC_INNER_PRODUCT)[1]
        targets[str(target)] = {named(shape): held(rows[shape], truth) for shape in TODAY}
    sizes: dict[str, Any] = {
        str(size): {
            "shapes": {named(shape): held(rows[shape], truth) for shape in shapes(size, rotation.width)},
            "chosen": named(chosen_shape(documents.astype(np.float16), size, seed=0)),
            "synthetic": {named(shape): synthetic(unit(documents), shape) for shape in shapes(size, rotation.width)},
        }
        for size in BYTES
    }
    return targets, sizes


def quality(data: Dataset, sizes: dict[str, Any]) -> dict[str, Any]:
    """The same, with nDCG@10 of an index on disk, and of the exact full-width ranking."""
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    with tempfile.TemporaryDirectory() as folder:
        indexes = {size: model.index(data.documents, Path(folder) / size, storage="pq4", bytes_per_document=int(size)) for size in sizes}
        ranked = exact_and(model, data, indexes)
    scores = ndcg(ranked, data)
    return {"exact": scores["exact"], **{size: {**cell, "nDCG@10": scores[size]} for size, cell in sizes.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoders", nargs="+", default=ENCODERS)
    options = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    cells, by_bytes = stored.get("cells", {}), stored.get("bytes", {})
    for data in datasets(options.folder, tuple(options.encoders)):
        name = f"{data.name}/{data.encoder}"
        cells[name], sizes = measure(data)
        by_bytes[name] = quality(data, sizes)
        print(name, json.dumps(by_bytes[name]), flush=True)
        command = "python benchmarks/codes.py ../shared/datasets"
        RESULTS.write_text(json.dumps({"command": command, "cells": cells, "bytes": by_bytes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
