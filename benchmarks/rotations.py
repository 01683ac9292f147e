"""What does each rotation keep at each width? Test nDCG@10, every document ranked.

    python benchmarks/rotations.py ../shared/datasets            (about an hour; writes results/rotations.json)

Truncation, PCA and Ky Fan against `fit` with and without labels and the paper's recipe, three seeds, each collection with each
encoder, the queries whose documents were never a positive beside all of them. Choices are made on dev inside `fit`; nothing
here is chosen on test. Finished cells are kept in the JSON, so an interrupted run goes on where it stopped.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from adawidth import AdaWidth, Dataset, Rotation, bundled, load_dataset
from adawidth.metrics import Measure, evaluate
from adawidth.rotation import second_moment
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import exhaustive
from adawidth.training.choose import choose_rotation
from adawidth.training.ground import Ground
from adawidth.training.pool import limited
from models import datasets, fitted, seconds

WIDTHS = (32, 48, 64, 96, 128, 192, 256)
RESULTS = Path(__file__).parent / "results" / "rotations.json"
NDCG = Measure.parse("nDCG@10")


def figures(data: Dataset, rotation: Rotation, seen: frozenset) -> dict[str, dict[str, float]]:
    """nDCG@10 by width, on all test queries and on the unseen ones."""
    test, index = data.split("test"), MemoryBackend(data.documents, rotation)
    queries = rotation.apply(test.vectors.all())
    ids = data.documents.ids
    unseen = np.array([not seen.intersection(ids[row] for row in test.judged.positives(i).tolist()) for i in range(len(test))])
    out: dict[str, dict[str, float]] = {"all": {}, "unseen": {}}
    for width in sorted({*(m for m in WIDTHS if m < data.documents.width), data.documents.width}):
        values = evaluate([NDCG], exhaustive(index, queries, width, 10, test.own).rows, test.judged)[str(NDCG)]
        out["all"][str(width)] = round(float(values.mean()), 4)
        if unseen.any():
            out["unseen"][str(width)] = round(float(values[unseen].mean()), 4)
    return out


def trained(data: Dataset, method: str, seed: int) -> AdaWidth:
    if method == "paper":
        return fitted(data, seed=seed, recipe="paper")
    return fitted(data, seed=seed, labels=method == "adawidth")


def rotation_of(data: Dataset, method: str, seed: int) -> tuple[Rotation, dict]:
    if method == "truncation":
        return Rotation.identity(data.documents.width), {}
    if method == "pca":
        return Rotation.pca(data.documents), {}
    if method == "kyfan":
        ground = Ground.of(limited(data.learning(seed=seed), seed), second_moment(data.documents), seed=seed)
        return ground.span.lift(choose_rotation(ground, recipe="kyfan", seed=seed).chosen.rotation), {}
    model = trained(data, method, seed)
    return model.rotation, {"chosen": model.record.chosen, "fit_seconds": seconds(model)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", default="truncation,pca,kyfan,adawidth,adawidth-no-labels,paper")
    parser.add_argument("--only", default="", help="collection/encoder pairs, by comma")
    parser.add_argument("--anew", action="store_true", help="measure cells again that the JSON has")
    options = parser.parse_args()
    collections = [*datasets(options.folder), load_dataset(bundled.path(), encoder="minilm")]
    if options.only:
        collections = [data for data in collections if f"{data.name}/{data.encoder}" in options.only.split(",")]
    for seed in range(options.seeds):
        for data in collections:
            for method in options.methods.split(","):
                if seed == 0 or method not in ("truncation", "pca"):
                    measure(data, method, seed, anew=options.anew)


def measure(data: Dataset, method: str, seed: int, *, anew: bool) -> None:
    """Adds one cell to the JSON, unless it is there."""
    cell = f"{data.name}/{data.encoder}/{method}/{seed}"
    if cell in read()["cells"] and not anew:
        return
    learning = data.learning(seed=seed)
    seen = frozenset(learning.documents.ids[row] for row in learning.positives.tolist())
    rotation, facts = rotation_of(data, method, seed)
    found = {**figures(data, rotation, seen), **facts}
    done = read()
    done["cells"][cell] = found
    RESULTS.write_text(json.dumps(done, indent=1) + "\n")
    print(cell, found, flush=True)


def read() -> dict:
    """What is measured so far."""
    if RESULTS.exists():
        return json.loads(RESULTS.read_text())
    return {"command": "python benchmarks/rotations.py ../shared/datasets", "measure": "nDCG@10, test, every document ranked", "cells": {}}


if __name__ == "__main__":
    main()
