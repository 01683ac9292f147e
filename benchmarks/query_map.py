"""What labels teach on the query side: documents stay under a rotation that no label touched.

    python benchmarks/query_map.py DATASETS [--what figures,curve,dense,cost] [--seeds 3] [--encoders …] [--collections …]

Writes results/query_map.json cell by cell; cells that are there already are kept. All figures are nDCG@10 on the test queries.
`figures`: refit and taper at each budget, with the frozen full width and the unseen queries. `curve`: the same with the labels of
50, 100, … train queries. `dense`: the method of that name, x + W x + b on queries and documents alike, under the same losses,
candidates and looks; its documents are encoded anew. `cost`: time of a mapped query against a rotated one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Dataset, Rotation, Vectors, load_dataset, metrics
from adawidth.baselines.dense import Dense
from adawidth.data import Qrels
from adawidth.evaluation import evaluate
from adawidth.rotation import QueryMap
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages, exhaustive
from adawidth.training.pool import sample
from adawidth.training.ranking import DEPTH
from adawidth.training.ranking import NDCG as MEASURE
from adawidth.training.taper import RotatedQueries, fit_taper
from models import fitted

RESULTS = Path(__file__).parent / "results" / "query_map.json"
COLLECTIONS = ("nl2bash", "medquad", "scifact")
ENCODERS = ("minilm", "wordllama")
BUDGETS = {"nl2bash": (60, 78), "medquad": (60, 74), "scifact": (60, 76, 88)}  # a little below the mean widths promised
LABELS = (50, 100, 200, 400, 800, 1600, 3200, 6400)
NDCG = str(MEASURE)


class Cells:
    """Results by name, written whenever one is added; two runs may write in turn."""

    @property
    def found(self) -> dict[str, Any]:
        return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def missing(self, name: str) -> bool:
        return name not in self.found

    def add(self, name: str, cell: dict[str, Any]) -> None:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(dict(sorted({**self.found, name: cell}.items())), indent=1) + "\n")
        print(name, json.dumps(cell), flush=True)


def label_free(data: Dataset, rotation: str, seed: int) -> AdaWidth:
    """The rotation that documents stay under: PCA, or what `fit` learns from queries without labels."""
    return fitted(data, recipe="pca" if rotation == "pca" else "auto", labels=False, seed=seed)


def measured(model: AdaWidth, data: Dataset, budgets: tuple[int, ...]) -> dict[str, Any]:
    """Widths and budgets of the model's default task, with the unseen queries where some are."""
    points = [evaluate(model, data, widths=[64, "full"], measures=[NDCG])]
    points += [evaluate(model, data, widths=[], measures=[NDCG], budget=budget) for budget in budgets]
    entries = {str(entry.get("budget", entry["width"])): entry for point in points for entry in point.to_json()["results"]}
    if budgets[-1] > 80:  # enough for a wider scan, whose shortlist misses less
        wider = evaluate(model, data, widths=["auto"], measures=[NDCG], budget=budgets[-1], start=64)
        entries[f"{budgets[-1]} from 64"] = wider["auto"].to_json()
    return {name: _short(entry) for name, entry in entries.items()}


def _short(entry: dict[str, Any]) -> dict[str, Any]:
    unseen = entry.get("unseen", {"queries": 0})
    short = {"mean_width": round(entry["mean_width"], 1), NDCG: round(entry[NDCG], 4)}
    if "start" in entry:
        short["start"] = entry["start"]
    return short | ({"unseen": round(unseen[NDCG], 4), "unseen_queries": unseen["queries"]} if unseen["queries"] else {})


def figures(data: Dataset, rotation: str, seed: int) -> dict[str, Any]:
    """One refit with all labels."""
    model = label_free(data, rotation, seed)
    begun = time.perf_counter()
    refitted = model.refit(data, seed=seed)
    seconds = time.perf_counter() - begun
    record = refitted.tasks["default"].record
    return {
        "chosen": record.chosen,
        "strength": record.strength,
        "target_width": record.target_width,
        "refit_seconds": round(seconds, 1),
        "settings_tried": len({trial.recipe for trial in record.trials}) - 1,
        **measured(refitted, data, BUDGETS[data.name]),
    }


def fewer(data: Dataset, count: int, seed: int) -> Dataset:
    """The labels of `count` train queries alone: dev queries come out of these too."""
    grades = data.qrels["train"].grades
    picked = np.random.default_rng(seed).permutation(len(grades))[:count]
    names = list(grades)
    train = Qrels({names[i]: grades[names[i]] for i in sorted(picked.tolist())}, "train")
    return replace(data, qrels={"test": data.qrels["test"], "train": train})


def curve(data: Dataset, model: AdaWidth, count: int, seed: int) -> dict[str, Any]:
    """One refit with few labels, against the frozen full width, with the standard error of the paired difference."""
    part = fewer(data, count, seed)
    refitted = model.refit(part, seed=seed)
    record = refitted.tasks["default"].record
    budget = BUDGETS[data.name][1]
    point = evaluate(refitted, part, widths=["full"], measures=[NDCG], budget=budget)
    frozen = point["frozen"].per_query[NDCG]
    cell = {"chosen": record.chosen, "strength": record.strength, "frozen": round(float(frozen.mean()), 4)}
    for width in ("full", "auto"):
        gain = point[width].per_query[NDCG] - frozen
        error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
        cell[width] = {**_short(point[width].to_json()), "gain": round(float(gain.mean()), 4), "error": round(error, 4)}
    return cell


def dense(data: Dataset, seed: int) -> dict[str, Any]:
    """The dense map on both sides, documents encoded anew: fixed widths, and the taper over what it made."""
    begun = time.perf_counter()
    learning, test, width = data.learning(seed=seed), data.split("test"), data.documents.width
    method, pool = Dense().fit(learning, seed), sample(learning, seed)

    def indexed(documents: Vectors) -> MemoryBackend:
        encoded = method.encode(documents.all(), "document", width)
        return MemoryBackend(Vectors(encoded, documents.ids, documents.name), Rotation.identity(width))

    train, dev, queries = (method.encode(part.vectors.all(), "query", width) for part in (pool.train, pool.dev, test))
    asked = RotatedQueries(train, pool.train.own), RotatedQueries(dev, pool.dev.own, pool.dev.judged)
    taper = fit_taper(indexed(pool.documents), *asked, target=width)
    seconds, index = time.perf_counter() - begun, indexed(data.documents)
    hits = {"64": exhaustive(index, queries, 64, DEPTH, test.own), "full": exhaustive(index, queries, width, DEPTH, test.own)}
    for budget in BUDGETS[data.name]:
        hits[str(budget)] = by_stages(index, queries, taper.policy(budget=budget), DEPTH, own=test.own)
    worth = {name: metrics.evaluate([MEASURE], found.rows, test.judged)[NDCG].mean() for name, found in hits.items()}
    cells = {name: {"mean_width": round(hits[name].mean_width, 1), NDCG: round(float(worth[name]), 4)} for name in hits}
    return {"fit_seconds": round(seconds, 1), **cells}


def cost() -> dict[str, Any]:
    """Microseconds a query, one at a time: rotated, and rotated and mapped; the two alternate."""
    cell: dict[str, Any] = {}
    rng = np.random.default_rng(0)
    for width in (384, 1024):
        rotation = Rotation(np.ascontiguousarray(Rotation.random(width).matrix), "random")  # laid out as a loaded model's
        query_map = QueryMap.fold(rotation, 0.01 * rng.standard_normal((width, width)), 0.01 * rng.standard_normal(width))
        x = rng.standard_normal((1, width)).astype(np.float32)
        seconds: dict[str, list[float]] = {"rotated": [], "mapped": []}
        for _ in range(300):
            for name, turn in (("rotated", rotation.apply), ("mapped", query_map.apply)):
                begun = time.perf_counter()
                for _ in range(20):
                    turn(x)
                seconds[name].append((time.perf_counter() - begun) / 20)
        medians = {name: float(np.median(values)) * 1e6 for name, values in seconds.items()}
        cell[str(width)] = {name: round(value, 1) for name, value in medians.items()} | {
            "ratio": round(medians["mapped"] / medians["rotated"], 3)
        }
    return cell


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, int, Dataset]]:
    """(what, seed, data), seed by seed, so that an unfinished run has the first seed of everything."""
    for seed in range(options.seeds):
        for what in options.what:
            for encoder in options.encoders:
                for name in options.collections:
                    yield what, seed, load_dataset(options.datasets / name, encoder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--what", type=lambda text: text.split(","), default=["figures", "curve", "dense", "cost"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rotations", type=lambda text: text.split(","), default=["pca", "learned"])
    parser.add_argument("--encoders", type=lambda text: text.split(","), default=list(ENCODERS))
    parser.add_argument("--collections", type=lambda text: text.split(","), default=list(COLLECTIONS))
    options = parser.parse_args()
    cells = Cells()
    if "cost" in options.what:
        options.what.remove("cost")
        cells.add("cost", cost())
    for what, seed, data in wanted(options):
        place = f"{data.name}/{data.encoder}/seed {seed}"
        if what == "figures":
            for rotation in options.rotations:
                if cells.missing(name := f"figures/{rotation}/{place}"):
                    cells.add(name, figures(data, rotation, seed))
        elif what == "curve":
            counts = [count for count in LABELS if count < len(data.qrels["train"])]
            missing = [count for count in counts if cells.missing(f"curve/{place}/{count}")]
            model = label_free(data, "pca", 0) if missing else None
            for count in missing:
                assert model is not None
                cells.add(f"curve/{place}/{count}", curve(data, model, count, seed))
        elif cells.missing(name := f"dense/{place}"):
            cells.add(name, dense(data, seed))


if __name__ == "__main__":
    main()
