"""The router at several budgets against the fixed width of the same mean, the paper's own set-up and the oracle.

    python benchmarks/router.py DATASETS [--rotations pca,identity,learned] [--encoders minilm,wordllama] [--collections …]
                                [--seed 0] [--out FILE]

Routers are fitted on train and chosen on dev; every figure is of the test queries. "Fixed" is the fixed width of the realised
mean, rounded up, over the same shortlist; intervals are paired bootstraps over queries. Learned rotations come from
AdaWidth.fit, whose router is cross-fitted: its rotation has not seen the queries that teach it.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from adawidth.data import Dataset, Queries
from adawidth.experiments.routing import credit, leave_one_out, oracle_widths, patience, routed_widths, values_at
from adawidth.formats import load_dataset
from adawidth.metrics import evaluate
from adawidth.policies import Fixed
from adawidth.policies.features import columns
from adawidth.policies.router import RouterModel
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import by_stages
from adawidth.training.examples import Examples, examples
from adawidth.training.ranking import NDCG
from adawidth.training.router import TreeSettings, fit_router
from models import fitted

COLLECTIONS = ("scifact", "medquad", "nl2bash")
ENCODERS = ("minilm", "wordllama")
BUDGETS = (80, 96, 128, 160)


class Bench:
    """One collection under one rotation."""

    def __init__(self, data: Dataset, rotation: Rotation, noise: float | None = None) -> None:
        self.collection, self.rotation, self.index = data.name, rotation, MemoryBackend(data.documents, rotation)
        self.queries = data.split("test")
        self.noise = noise
        self.fixed_at = cache(self._fixed_at)

    def examples(self, queries: Queries) -> Examples:
        rotated = self.rotation.apply(queries.vectors.all())
        found = examples(self.index, rotated, queries.judged, own=queries.own, noise=self.noise)
        self.noise = found.noise
        return found

    def _fixed_at(self, width: int) -> np.ndarray:
        """nDCG@10 of every test query, the start width's shortlist read to this width."""
        rotated = self.rotation.apply(self.queries.vectors.all())
        hits = by_stages(self.index, rotated, Fixed(width, 64), NDCG.k, own=self.queries.own)
        assert self.queries.judged is not None
        return evaluate([NDCG], hits.rows, self.queries.judged)[str(NDCG)]


Differences = dict[str, dict[str, list[np.ndarray]]]  # policy -> collection -> of each cell, routed less fixed of every test query


def rows_of(bench: Bench, test: Examples, models: dict[str, RouterModel], differences: Differences) -> list[dict[str, Any]]:
    """One row a policy and budget."""
    found = []
    for budget in BUDGETS:
        if budget >= test.widths[-1]:
            continue
        oracle = credit(test, oracle_widths(test, test.widths, budget), bench.fixed_at)
        honest = credit(test, oracle_widths(test, test.widths, budget, only_changed=True), bench.fixed_at)
        for name, model in models.items():
            chosen = routed_widths(model, test, budget)
            row = asdict(credit(test, chosen, bench.fixed_at))
            cells = differences.setdefault(name, {}).setdefault(bench.collection, [])
            cells.append(values_at(test, chosen) - bench.fixed_at(row["fixed_width"]))
            captured = row["credit"] / oracle.credit if oracle.credit > 0.01 else None
            found.append({"policy": name, "budget": budget, **row, "oracle_credit": oracle.credit, "captured": captured})
        found.append({"policy": "oracle", "budget": budget, **asdict(oracle)})
        found.append({"policy": "oracle (changed top 10 only)", "budget": budget, **asdict(honest)})
    return [*found, {"policy": "patience", "budget": None, **asdict(credit(test, patience(test, 2), bench.fixed_at))}]


def predictability(model: RouterModel, test: Examples) -> dict[str, float]:
    """Correlations over test queries: how far the gain of width can be foretold at all."""
    gain = (test.values[:, 1:] - test.values[:, :1]).mean(axis=1)
    changed = test.changed(test.widths[0], test.widths[-1])
    found = {
        "true change of the top 10 with the gain": _correlation(changed, gain),
        "queries without any gain or loss": float((np.ptp(test.values, axis=1) == 0).mean()),
    }
    if model.heads:
        head = model.heads[-1]
        score = head.trees.predict(test.features[:, columns(head.features, model.start)])
        found |= {"score with the gain": _correlation(score, gain), "score with the true change": _correlation(score, changed)}
    return found


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else 0.0


def measure(
    data: Dataset, kind: str, seed: int, differences: Differences
) -> tuple[dict[str, Any], tuple[Examples, Examples, Examples], Bench]:
    """All rows of one collection, encoder and rotation."""
    began, learning = time.perf_counter(), data.learning(seed=seed)
    if kind == "learned":
        model = fitted(data, seed=seed)
        assert model.policies.router is not None
        bench = Bench(data, model.rotation, model.policies.router.noise)
        models = {"router": model.policies.router}
        train = dev = bench.examples(learning.dev)
    else:
        bench = Bench(data, Rotation.pca(data.documents) if kind == "pca" else Rotation.identity(data.documents.width))
        train, dev = bench.examples(learning.train), bench.examples(learning.dev)
        models = {
            "router": fit_router(train, dev, one_rotation=True),
            "paper": fit_router(train, dev, multi=False, sets=("paper",), settings=(TreeSettings(),), one_rotation=True),
        }
    test = bench.examples(bench.queries)
    chosen = models["router"].heads
    record = {
        "collection": data.name, "encoder": data.encoder, "rotation": kind,
        "queries": {"train": len(learning.train), "dev": len(dev), "test": len(test)},
        "features": chosen[-1].features if chosen else None, "trees": len(chosen[-1].trees.roots) if chosen else 0,
        "fixed": {str(m): float(test.at(m).mean()) for m in test.widths},
        "predictability": predictability(models["router"], test),
        "results": rows_of(bench, test, models, differences), "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip
    return record, (train, dev, test), bench


def transfers(parts: dict[str, tuple[tuple[Examples, Examples, Examples], Bench]]) -> list[dict[str, Any]]:
    """A router taught by the other collections, used on each."""
    found = []
    for held, ((_, _, test), bench) in parts.items():
        models = leave_one_out({name: three[:2] for name, (three, _) in parts.items()}, held)
        for features, model in models.items():
            for budget in BUDGETS:
                row = credit(test, routed_widths(model, test, budget), bench.fixed_at)
                found.append({"held_out": held, "features": features, "budget": budget, **asdict(row)})
    return found


def pooled(records: list[dict[str, Any]], policy: str, cells: dict[str, list[np.ndarray]]) -> dict[str, Any]:
    """Mean credit over all cells, collections counting alike, and how often a cell's own interval lies above or below zero.

    The interval draws the test queries of each collection anew; a query's credit is its mean over encoders, rotations and budgets.
    """
    rows = [row for record in records for row in record["results"] if row["policy"] == policy]
    captured = [row["captured"] for row in rows if row["captured"] is not None]
    rng, means = np.random.default_rng(0), []
    for differences in cells.values():
        per_query = np.mean(differences, axis=0)
        means.append([per_query[rng.integers(len(per_query), size=len(per_query))].mean() for _ in range(10_000)])
    low, high = np.quantile(np.mean(means, axis=0), [0.025, 0.975])
    return {
        "cells": len(rows), "credit": float(np.mean([row["credit"] for row in rows])), "low": float(low), "high": float(high),
        "ahead": sum(row["credit"] > 0 for row in rows), "interval_above_zero": sum(row["low"] > 0 for row in rows),
        "interval_below_zero": sum(row["high"] < 0 for row in rows), "captured": float(np.mean(captured)) if captured else None,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--rotations", default="pca,identity")
    parser.add_argument("--encoders", default=",".join(ENCODERS))
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--seed", type=int, default=0, help="of the fit that learns a rotation")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "router.json")
    options = parser.parse_args()
    records, moved = [], []
    differences: Differences = {}
    for encoder in options.encoders.split(","):
        for kind in options.rotations.split(","):
            parts = {}
            for collection in options.collections.split(","):
                record, three, bench = measure(load_dataset(options.datasets / collection, encoder), kind, options.seed, differences)
                records.append(record)
                parts[collection] = three, bench
                print(collection, encoder, kind, record["features"], record["predictability"])
                for row in record["results"]:
                    print(f"  {row['policy']:30} {row['budget']!s:5} {row['mean_width']:6.1f} {row['routed']:.4f} "
                          f"{row['credit']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]", flush=True)  # fmt: skip
            if kind != "learned" and len(parts) > 2:
                moved += [{"encoder": encoder, "rotation": kind, **row} for row in transfers(parts)]
            summary = {policy: pooled(records, policy, cells) for policy, cells in differences.items()}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps({"summary": summary, "collections": records, "leave_one_out": moved}, indent=1) + "\n")
            print(json.dumps(summary, indent=1), flush=True)


if __name__ == "__main__":
    main()
