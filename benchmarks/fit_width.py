"""How does the time of a fit grow with the encoder width? The same queries and documents, one thread, its processor time.

    OMP_NUM_THREADS=1 python benchmarks/fit_width.py ../shared/datasets/clues       (writes results/fit_width.json)

Vectors of 1,536 are ada-002's own; those of 384 and 768 are its leading principal coordinates, brought to unit length; those of 4,096 have
noise beside it, a tenth of the energy, and are turned at random. Every width takes its turn. A cell has the seconds of `fit` with
`auto`, and test nDCG@10 at some widths, so that speed is not bought with quality; nothing is chosen on test. Finished cells are kept, so an
interrupted run goes on where it stopped.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from adawidth import AdaWidth, Dataset, Rotation, Vectors, load_dataset
from adawidth.data import unit
from adawidth.metrics import Measure, evaluate
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import exhaustive
from adawidth.training import choose

RESULTS = Path(__file__).parent / "results" / "fit_width.json"
WIDTHS = (384, 1536, 768, 4096)
NOISE = 0.1  # of the energy of the widest vectors
NDCG = Measure.parse("nDCG@10")


def of_width(data: Dataset, width: int) -> Dataset:
    """The collection with vectors of this width."""
    rng = np.random.default_rng(0)
    whole = data.documents.width
    documents, queries = data.documents.all(), data.queries.all()
    if width < whole:
        pca = Rotation.pca(data.documents)
        documents, queries = (unit(pca.apply(x, width)) for x in (documents, queries))
    elif width > whole:
        turn, scale = Rotation.random(width), np.sqrt(NOISE / (1 - NOISE) / (width - whole))
        noise = (scale * rng.standard_normal((len(x), width - whole)) for x in (documents, queries))
        documents, queries = (turn.apply(unit(np.concatenate([x, n], axis=1))) for x, n in zip((documents, queries), noise, strict=True))
    made = (Vectors.of(x, old.ids, name=old.name) for x, old in ((documents, data.documents), (queries, data.queries)))
    return Dataset(*made, data.qrels, data.name, data.encoder, data.queries_are_documents)


def cell(data: Dataset) -> dict:
    """Seconds of a fit and what it gives on test."""
    began = time.process_time()
    model = AdaWidth.fit(data)
    taken = time.process_time() - began
    test, index = data.split("test"), MemoryBackend(data.documents, model.rotation)
    queries, figures = model.rotation.apply(test.vectors.all()), {}
    for width in (32, 64, 128, 256):
        values = evaluate([NDCG], exhaustive(index, queries, width, 10, test.own).rows, test.judged)[str(NDCG)]
        figures[str(width)] = round(float(values.mean()), 4)
    steps = sum(trial.steps for trial in model.record.trials)
    dev = next(trial.mean for trial in model.record.trials if trial.recipe == model.record.chosen)
    return {"seconds": round(taken, 1), "steps": steps, "chosen": model.record.chosen, "dev": round(dev, 4), "test": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--steps", type=int, help="of each recipe, at most: the rest of a fit grows with the width and then weighs more")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":
        parser.error("set OMP_NUM_THREADS=1: processor time of several threads says nothing of their speed")
    if options.steps is not None:
        choose.LABELLED = tuple(replace(recipe, steps=min(recipe.steps, options.steps)) for recipe in choose.LABELLED)
    data = load_dataset(options.dataset, encoder="ada002")
    command = "OMP_NUM_THREADS=1 python benchmarks/fit_width.py ../shared/datasets/clues"
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"command": command, "cells": {}}
    for turn in range(options.turns):
        for width in options.widths:
            name = f"{width}/{turn}" if options.steps is None else f"{width}/{turn}/{options.steps} steps"
            if name not in found["cells"]:
                found["cells"][name] = cell(of_width(data, width))
                print(name, found["cells"][name], flush=True)
                found["times_384"] = ratios(found["cells"])
                RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def ratios(cells: dict) -> dict[str, float]:
    """Seconds of each width over those of 384, medians over turns, of whole fits."""
    whole = {name.split("/")[0]: [] for name in cells if name.count("/") == 1}
    for name, found in cells.items():
        if name.count("/") == 1:
            whole[name.split("/")[0]].append(found["seconds"])
    return {width: round(float(np.median(taken) / np.median(whole["384"])), 2) for width, taken in whole.items()} if "384" in whole else {}


if __name__ == "__main__":
    main()
