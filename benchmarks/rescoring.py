"""From 500 given candidates to the 10 best at full width, one query at a time on one thread: the fused taper and router
against NumPy, which widens all 500, and scikit-learn, which predicts.

    python benchmarks/rescoring.py [--widths 384 1024]

NumPy has the best way we know: gather, one matrix-vector product, argpartition; once over the rows that we read, float16, and once
over float32 rows, which take twice the memory and need no conversion.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path

import faiss
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

import synthetic
from adawidth.data import Vectors
from adawidth.index.rescore import Rescorer
from adawidth.policies.features import order_statistics
from adawidth.policies.router import Head, Router
from adawidth.policies.taper import Taper
from adawidth.rotation import Rotated, Rotation
from adawidth.stages import MemoryBackend
from adawidth.training.router import flat
from adawidth.training.taper import RotatedQueries, fit_taper
from turns import recall, summary, take

DOCUMENTS, QUERIES, EACH, CANDIDATES, START, K = 100_000, 400, 10, 500, 64, 10
SAMPLE = 100_000  # documents that the taper is calibrated on


def fitted(vectors: synthetic.Vectors, quality: float) -> Taper:
    """The taper from 64 to the full width that keeps this share of what widening all candidates gives, on other queries."""
    rows = vectors.documents[:SAMPLE].astype(np.float32)
    asked = vectors.others
    index = MemoryBackend(Vectors.of(rows), Rotation.identity(rows.shape[1]))
    model = fit_taper(index, RotatedQueries(asked[:200]), RotatedQueries(asked[200:]), target=rows.shape[1])
    return model.policy(quality=quality * model.curves[model.starts.index(START)][0].best, start=START)


def predictors(scores: np.ndarray, widths: tuple[int, int]) -> tuple[Router, HistGradientBoostingRegressor]:
    """Trees of the paper's size for made-up gains: half of the queries go on to the second width."""
    import lightgbm

    x = order_statistics(scores)
    gain = x[:, 0] - np.median(x[:, 0]) + np.random.default_rng(0).normal(scale=0.02, size=len(x))
    options = {"num_leaves": 15, "max_depth": 6, "min_data_in_leaf": 20, "learning_rate": 0.05, "num_threads": 1, "verbose": -1}
    trees = flat(lightgbm.train(options, lightgbm.Dataset(x, gain), 100).dump_model()["tree_info"])
    knots = np.array([-1.0, 1.0])
    router = Router(Head(widths, "paper", trees, knots, np.stack([np.zeros(2), knots], axis=1)), START, 0.0, 0.0)
    return router, HistGradientBoostingRegressor(max_leaf_nodes=15, max_depth=6, max_iter=100, early_stopping=False).fit(x, gain)


def measure(width: int) -> dict[str, object]:
    """One width."""
    vectors = synthetic.make(DOCUMENTS, width, QUERIES)
    queries, half, rows = vectors.queries, vectors.documents, vectors.documents.astype(np.float32)
    prefixes = np.ascontiguousarray(rows[:, :START])
    faiss.normalize_L2(prefixes)
    candidates = faiss.knn(np.ascontiguousarray(queries[:, :START]), prefixes, CANDIDATES, metric=faiss.METRIC_INNER_PRODUCT)[1]

    @cache
    def norms(m: int) -> np.ndarray:
        return np.linalg.norm(rows[:, :m], axis=1)

    def ranked(scores: np.ndarray, near: np.ndarray) -> np.ndarray:
        best = np.argpartition(-scores, K)[:K]
        return near[best[np.argsort(-scores[best])]]

    def widened(i: int) -> np.ndarray:
        near = candidates[i]
        return ranked(rows[near] @ queries[i], near)

    def widened_half(i: int) -> np.ndarray:
        near = candidates[i]
        return ranked(half[near].astype(np.float32) @ queries[i], near)

    def routed(i: int) -> np.ndarray:
        near, query = candidates[i], queries[i]
        scores = rows[near, :START] @ query[:START] / (norms(START)[near] * np.linalg.norm(query[:START]))
        chosen = wide if forest.predict(order_statistics(scores[None]))[0] > 0 else START
        if chosen > START:
            scores = rows[near, :chosen] @ query[:chosen] / norms(chosen)[near]
        return ranked(scores, near)

    policy, wide = fitted(vectors, 0.99), min(256, width)
    lengths = np.linalg.norm(queries[:, :START], axis=1, keepdims=True)
    stage = np.einsum("qcm,qm->qc", prefixes[candidates], queries[:, :START]) / lengths
    router, forest = predictors(stage, (START, wide))
    fused = Rescorer([half], norms, np.arange(len(rows)))
    part = [slice(i, i + 1) for i in range(QUERIES)]
    asked = Rotated(queries, Rotation.identity(width))
    tapered = {
        "taper": lambda i: fused.answer(asked[i : i + 1], candidates[part[i]], policy, K),
        "numpy": widened,
        "numpy_half": widened_half,
    }
    routing = {
        "router": lambda i: fused.answer(asked[i : i + 1], candidates[part[i]], router, K),
        "numpy_sklearn": routed,
    }
    answers = fused.answer(asked, candidates, policy, K)
    return {
        "width": width,
        "mean_width": round(float(answers.widths.mean()), 1),
        "recall_of_widened": recall(answers.rows, np.stack([widened(i) for i in range(QUERIES)])),
        "router_mean_width": round(float(fused.answer(asked, candidates, router, K).widths.mean()), 1),
        **summary(take(tapered, QUERIES // EACH, EACH), "taper"),
        **summary(take(routing, QUERIES // EACH, EACH), "router"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[384, 1024])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "rescoring.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    found = []
    for width in options.widths:
        found.append(measure(width))
        print(found[-1])
    options.out.write_text(json.dumps({"documents": DOCUMENTS, "candidates": CANDIDATES, "k": K, "results": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
