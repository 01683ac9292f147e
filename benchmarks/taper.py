"""What each policy keeps of the full width's nDCG@10, at which mean width and for how many multiply-adds.

    python benchmarks/taper.py DATASETS [--rotations pca,learned] [--encoders minilm,wordllama] [--collections …] [--out FILE]

PCA is fitted without labels: calibration on the train queries, z on the dev queries by the mean width alone. Learned rotations
come from AdaWidth.fit with labels, with the taper that it calibrated. Everything is measured on the test queries. A share is
of the same rotation's full width with every document ranked, which for every rotation is the frozen encoder's own ranking.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from adawidth.data import Dataset, Queries
from adawidth.formats import load_dataset
from adawidth.hits import Hits
from adawidth.metrics import Measure, evaluate
from adawidth.policies import Fixed, Policy
from adawidth.policies.certify import Certify
from adawidth.policies.funnel import STEPS, Funnel
from adawidth.policies.taper import TaperModel
from adawidth.rotation import Rotation
from adawidth.stages import MemoryBackend
from adawidth.stages.loop import SHORTLIST, by_stages, exhaustive
from adawidth.training.taper import RotatedQueries, fit_taper
from adawidth.types import Rows

COLLECTIONS = ("scifact", "medquad", "nl2bash")
ENCODERS = ("minilm", "wordllama")
FIXED = (32, 48, 64, 80, 96, 128, 192, 256)
BUDGETS = {64: (72, 74, 80, 88, 96, 112), 32: (40, 42, 48, 56, 60, 64, 72, 96)}  # by start width
NDCG = Measure("nDCG", 10)


class Bench:
    """One collection under one rotation: answers to its test queries, measured against the full width."""

    def __init__(self, data: Dataset, rotation: Rotation, seen: Rows) -> None:
        self.index = MemoryBackend(data.documents, rotation)
        test: Queries = data.split("test")
        self.judged, self.own = test.judged, test.own
        assert test.judged is not None
        self.unseen = np.array([not np.isin(test.judged.positives(i), seen).any() for i in range(len(test))])
        self.queries = rotation.apply(test.vectors.all())
        self.full = self.worth(exhaustive(self.index, self.queries, self.index.width, NDCG.k, self.own))

    def worth(self, hits: Hits) -> np.ndarray:
        """nDCG@10 of every test query."""
        assert self.judged is not None
        return evaluate([NDCG], hits.rows, self.judged)[str(NDCG)]

    def row(self, name: str, start: int, hits: Hits, shortlist: int, **more: Any) -> dict[str, Any]:
        """One line of the table. Multiply-adds: the scan at the start width, the query's rotation, and what was read beyond."""
        worth = self.worth(hits)
        size = min(shortlist, len(self.index.documents))
        beyond = size * (hits.mean_width - start)
        total = len(self.index.documents) * start + self.index.width**2 + beyond
        pick = np.random.default_rng(0).integers(len(worth), size=(2_000, len(worth)))
        low, high = np.quantile(worth[pick].mean(axis=1) / self.full[pick].mean(axis=1), [0.025, 0.975])
        row = {
            "policy": name,
            "start": start,
            **more,
            "shortlist": size,
            "mean_width": round(hits.mean_width, 2),
            "mean_width_per_500": round(start + beyond / min(SHORTLIST, size), 2),
            "nDCG@10": round(float(worth.mean()), 4),
            "share": round(float(worth.mean() / self.full.mean()), 4),
            "share_interval": [round(float(low), 4), round(float(high), 4)],
            "multiply_adds": round(total),
        }
        if not self.unseen.all():
            row["unseen"] = {"queries": int(self.unseen.sum()), "nDCG@10": round(float(worth[self.unseen].mean()), 4)}
        return row

    def run(self, policy: Policy, shortlist: int = SHORTLIST, **more: Any) -> dict[str, Any]:
        """A policy over the stage loop."""
        return self.row(
            policy.name,
            policy.start,
            by_stages(self.index, self.queries, policy, NDCG.k, shortlist=shortlist, own=self.own),
            shortlist,
            **more,
        )

    def scan(self, width: int) -> dict[str, Any]:
        """Every document ranked at one width."""
        return self.row("exhaustive", width, exhaustive(self.index, self.queries, width, NDCG.k, self.own), SHORTLIST)


def label_free(data: Dataset) -> tuple[Rotation, TaperModel]:
    """PCA, the taper calibrated on train queries, z set on dev queries; no label is looked at."""
    rotation = Rotation.pca(data.documents)
    learning = data.learning(labels=False)
    train, dev = (RotatedQueries.of(part, rotation) for part in (learning.train, learning.dev))
    backend = MemoryBackend(data.documents, rotation)
    return rotation, fit_taper(backend, train, dev)


def learned(data: Dataset) -> tuple[Rotation, TaperModel]:
    """What a fit with labels ships."""
    from models import fitted  # needs torch, which PCA does not

    model = fitted(data)
    return model.rotation, model.policies.taper


ROTATIONS = {"pca": label_free, "learned": learned}


def rows(data: Dataset, name: str) -> Iterator[dict[str, Any]]:
    """Every policy on one collection with one encoder and one rotation."""
    rotation, taper = ROTATIONS[name](data)
    bench = Bench(data, rotation, data.learning().positives if name == "learned" else np.empty(0, np.int64))
    width = bench.index.width
    for fixed in (*(m for m in FIXED if m < width), width):
        yield bench.scan(fixed)
    for start in taper.starts:
        yield bench.run(Fixed(taper.target, start), width=taper.target)
    for start in taper.starts:
        for budget in BUDGETS[start]:
            if start <= budget <= taper.target:
                yield bench.run(taper.policy(budget=budget, start=start), budget=budget)
    for quality in (0.95, 0.99):
        yield bench.run(taper.policy(quality=quality), quality=quality)
    for start in taper.starts:
        yield bench.run(Certify(start, taper.target))
    yield bench.run(Funnel(max(taper.target, STEPS[0][0])))
    if name == "pca":
        yield from shortlist_of_a_thousand(bench, taper)
        yield from without_queries(bench)


def shortlist_of_a_thousand(bench: Bench, taper: TaperModel) -> Iterator[dict[str, Any]]:
    """From 32 with twice the shortlist, at the z of the budget for 500: compare `mean_width_per_500`, which counts all that was read."""
    policy = taper.policy(budget=56, start=32)
    yield bench.run(policy, shortlist=2 * SHORTLIST, budget=56, note="shortlist of 1,000")


def without_queries(bench: Bench) -> Iterator[dict[str, Any]]:
    """The loss where there are no queries: calibration and z from documents that look for the others."""
    none = RotatedQueries(bench.queries[:0])
    taper = fit_taper(bench.index, none, none)
    for start, budget in ((64, 80), (32, 56)):
        yield bench.run(taper.policy(budget=budget, start=start), budget=budget, note="calibrated on documents")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path)
    parser.add_argument("--rotations", default="pca")
    parser.add_argument("--encoders", default=",".join(ENCODERS))
    parser.add_argument("--collections", default=",".join(COLLECTIONS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "taper.json")
    options = parser.parse_args()
    results = []
    for rotation in options.rotations.split(","):
        for encoder in options.encoders.split(","):
            for collection in options.collections.split(","):
                begun = time.perf_counter()
                data = load_dataset(options.datasets / collection, encoder)
                print(f"{collection}, {encoder}, {rotation}")
                for row in rows(data, rotation):
                    results.append({"collection": collection, "encoder": encoder, "rotation": rotation, **row})
                    knob = row.get("budget") or row.get("quality") or row.get("width") or ""
                    print(
                        f"  {row['policy']:10s} from {row['start']:3d} {knob!s:5s} mean width {row['mean_width']:6.1f} "
                        f"({row['mean_width_per_500']:6.1f})  nDCG@10 {row['nDCG@10']:.4f}  share {row['share']:.4f} "
                        f"{row['share_interval']}  {row['multiply_adds'] / 1e6:6.3f} M  {row.get('note', '')}{row.get('unseen', '')}",
                        flush=True,
                    )
                print(f"  {time.perf_counter() - begun:.0f} s")
    measured = {_cell(row) for row in results}
    before = json.loads(options.out.read_text()) if options.out.exists() else []
    results = [*(row for row in before if _cell(row) not in measured), *results]  # what was not measured anew stays
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


def _cell(row: dict[str, Any]) -> tuple[str, ...]:
    return row["collection"], row["encoder"], row["rotation"]


if __name__ == "__main__":
    main()
