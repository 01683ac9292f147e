"""Routing one query: our kernels against features in NumPy with LightGBM's predict, and with scikit-learn's.

    python benchmarks/routing.py [--out FILE]

All three get one query's 500 sorted stage-1 scores and return one prediction of trees of the same size. They take turns, so
that whatever else the machine does falls on all of them; times are the best turn's, ratios the medians over turns of the same moment.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import lightgbm
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from adawidth.kernels.trees import route
from adawidth.policies.features import order_statistics
from adawidth.training.router import flat

QUERIES, TURNS, CALLS = 2_000, 60, 200
TREES = (50, 100, 300)


def seconds(call: Callable[[np.ndarray], object], rows: np.ndarray) -> float:
    """Per call."""
    began = time.perf_counter()
    for row in rows:
        call(row)
    return (time.perf_counter() - began) / len(rows)


def measure(trees: int) -> dict[str, float]:
    """Microseconds a query, and how many times faster ours is."""
    rng = np.random.default_rng(0)
    scores = -np.sort(-rng.normal(0.35, 0.08, (QUERIES, 500)).astype(np.float32), axis=1)
    x = order_statistics(scores)
    y = x[:, 0] - 2 * x[:, 8] + rng.normal(scale=0.3, size=QUERIES)
    options = {"num_leaves": 15, "max_depth": 6, "min_data_in_leaf": 20, "learning_rate": 0.05, "num_threads": 1, "verbose": -1}
    booster = lightgbm.train(options, lightgbm.Dataset(x, y), trees)
    arrays = tuple(flat(booster.dump_model()["tree_info"]).tensors().values())
    forest = HistGradientBoostingRegressor(max_leaf_nodes=15, max_depth=6, max_iter=trees, early_stopping=False).fit(x, y)
    ways: dict[str, tuple[Callable[[np.ndarray], object], int]] = {
        "ours": (lambda row: route(row, *arrays), CALLS),
        "lightgbm": (lambda row: booster.predict(order_statistics(row[None]), raw_score=True, num_threads=1), CALLS // 4),
        "lightgbm_without_features": (lambda row: booster.predict(x[:1], raw_score=True, num_threads=1), CALLS // 4),
        "sklearn": (lambda row: forest.predict(order_statistics(row[None])), CALLS // 20),
    }
    for call, _ in ways.values():
        call(scores[0])
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(TURNS):
        for name, (call, calls) in ways.items():
            times[name].append(seconds(call, scores[turn : turn + calls]))
    found = {f"{name}_us": round(min(taken) * 1e6, 2) for name, taken in times.items()}
    ours = times.pop("ours")
    ratios = {f"{name}_over_ours": round(float(np.median(np.divide(taken, ours))), 1) for name, taken in times.items()}
    return {"trees": trees, **found, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "routing.json")
    options = parser.parse_args()
    found = [measure(trees) for trees in TREES]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"candidates": 500, "features": 18, "results": found}, indent=1) + "\n")
    for row in found:
        print(row)


if __name__ == "__main__":
    main()
