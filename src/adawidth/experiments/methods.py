"""The measurement that most experiments have parts of: one method, fitted once, at every width, all documents ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..baselines import Baseline
from ..data import Dataset, Learning
from ..evaluation.compare import MEASURE, Row, measured
from ..evaluation.widths import FULL, in_numbers, usable_widths
from ..training.task import DEV_WIDTHS
from ..types import F64
from .base import Cell, Part, Settings, pairs

PER_QUERY = "per_query"
DIGITS = 4


def method_part(method: str, seed: int, settings: Settings, make: Callable[[Learning], Baseline] | None = None) -> Part:
    """The part of a method of the registry, or of one that `make` fits."""
    name = f"{method} seed {seed}"
    return Part(name, {"train_queries": settings.train_queries}, partial(_measure, method=method, seed=seed, settings=settings, make=make))


def method_parts(methods: Sequence[str], settings: Settings) -> list[Part]:
    """Every method with every seed."""
    return [method_part(method, seed, settings) for seed in range(settings.seeds) for method in methods]


def _measure(data: Dataset, *, method: str, seed: int, settings: Settings, make: Callable[[Learning], Baseline] | None) -> dict[str, Any]:
    learning = at_most(data.learning(seed=seed), settings.train_queries, seed)
    queries = data.split("test")
    widths = usable_widths(None, (*DEV_WIDTHS, FULL), data.documents.width)
    rows = list(measured(method, seed, learning, queries, widths, None if make is None else partial(make, learning)))
    (frozen,) = measured("truncation", seed, learning, queries, (FULL,))
    return {
        "method": method,
        "seed": seed,
        "test_queries": len(queries),
        "train_queries": len(learning.train),
        "frozen": round(frozen.quality, DIGITS),
        "parameters": rows[0].parameters,
        "fit_seconds": round(rows[0].fit_seconds, 1),
        "points": [_point(row) for row in rows],
    }


def _point(row: Row) -> dict[str, Any]:
    unseen = row.unseen or {"queries": 0}
    return {
        "width": row.width,
        "mean_width": round(row.mean_width, 2),
        str(MEASURE): round(row.quality, DIGITS),
        "unseen": round(unseen[str(MEASURE)], DIGITS) if unseen["queries"] else None,
        "multiply_adds": round(row.multiply_adds),
        "stored_floats_per_document": row.stored_floats_per_document,
        PER_QUERY: np.round(row.per_query, DIGITS).tolist(),
    }


def at_most(learning: Learning, count: int, seed: int) -> Learning:
    """The same with at most so many train queries, drawn at random."""
    if len(learning.train) <= count:
        return learning
    picked = np.random.default_rng(seed).choice(len(learning.train), count, replace=False)
    return replace(learning, train=learning.train.select(np.sort(picked)))


Pair = tuple[str, str]  # dataset and encoder


class Measured:
    """Cells of methods as arrays: nDCG@10 of every query, mean over the seeds. Widths are numbers, full width the encoder's."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = [cell for cell in cells if "method" in cell]
        self.pairs: list[Pair] = pairs(self.cells)
        self.methods: list[str] = list(dict.fromkeys(cell["method"] for cell in self.cells))
        grouped: dict[tuple[Pair, str, int], list[F64]] = {}
        for cell in self.cells:
            for point in cell["points"]:
                width = in_numbers(point["width"], cell["encoder_width"])
                key = (cell["dataset"], cell["encoder"]), cell["method"], width
                grouped.setdefault(key, []).append(np.array(point[PER_QUERY], np.float64))
        self._values = {key: np.mean(found, axis=0) for key, found in grouped.items()}
        self._means = {key: float(values.mean()) for key, values in self._values.items()}
        self._spreads = {key: float(np.std([v.mean() for v in found], ddof=1)) if len(found) > 1 else 0.0 for key, found in grouped.items()}

    def widths(self, pair: Pair | None = None) -> list[int]:
        """The widths of DEV_WIDTHS that a pair has, or that all of them have."""
        here = self.pairs if pair is None else [pair]
        return [m for m in DEV_WIDTHS if all((p, self.methods[0], m) in self._means for p in here)]

    def of_pair(self, pair: Pair, name: str) -> Any:
        """What all cells of a pair have alike: encoder_width, frozen, documents, …"""
        return next(cell[name] for cell in self.cells if (cell["dataset"], cell["encoder"]) == pair)

    def values(self, pair: Pair, method: str, width: int) -> F64:
        """Of every query. (Q,)"""
        return np.asarray(self._values[pair, method, width])

    def mean(self, pair: Pair, method: str, width: int) -> float:
        """Over the queries."""
        return self._means[pair, method, width]

    def spread(self, pair: Pair, method: str, width: int) -> float:
        """Standard deviation over the seeds, 0 for one."""
        return self._spreads[pair, method, width]

    def overall(self, method: str, width: int) -> float:
        """Mean over all pairs."""
        return float(np.mean([self.mean(pair, method, width) for pair in self.pairs]))

    def curve(self, pair: Pair, method: str) -> tuple[list[int], list[float]]:
        """All widths, ascending, and the means there."""
        widths = sorted(m for p, name, m in self._means if (p, name) == (pair, method))
        return widths, [self.mean(pair, method, m) for m in widths]

    def rivals(self, ours: Sequence[str]) -> list[str]:
        """Every other method that reads no test label."""
        return [method for method in self.methods if method not in ours and not method.endswith(":oracle")]
