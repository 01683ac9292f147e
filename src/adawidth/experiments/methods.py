"""The measurement that most experiments have parts of: one method, fitted once, at every width, all documents ranked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..baselines import REGISTRY, Baseline
from ..data import Dataset, Learning, Queries
from ..evaluation.compare import MEASURE, Row, measured
from ..evaluation.points import unseen_queries
from ..evaluation.shortlist import EXHAUSTIVE, limits, under
from ..evaluation.widths import FULL, in_numbers, usable_widths
from ..training.task import DEV_WIDTHS
from ..types import F64, Mask
from .base import Cell, Part, Settings, pairs

DIGITS = 4
QUALITY, UNSEEN = "quality", "unseen"  # arrays of a cell: nDCG@10 (points, queries), and queries on documents that no label named
MEASURING = ("experiments.methods:at_most", "evaluation.points:unseen_queries", "metrics:evaluate", "data:held_out")


def method_part(method: str, seed: int, settings: Settings, make: Callable[[Learning], Baseline] | None = None) -> Part:
    """The part of a method of the registry, or of one that `make` fits."""
    measure = partial(_measure, method=method, seed=seed, settings=settings, make=make)
    made_by = f"baselines.{REGISTRY[method]}" if make is None else _root(make)
    name = f"{method} seed {seed}" + ("" if settings.protocol == EXHAUSTIVE else f" {settings.protocol}")
    return Part(name, head(settings), measure, (made_by, *MEASURING))


def head(settings: Settings) -> dict[str, Any]:
    """The settings that a method is measured with."""
    return {"train_queries": settings.train_queries} | ({} if settings.protocol == EXHAUSTIVE else {"protocol": settings.protocol})


def _root(make: Callable[[Learning], Baseline]) -> str:
    """The function that makes a method, as a definition of this package."""
    function = getattr(make, "func", make)
    return f"{function.__module__.partition('.')[2]}:{function.__qualname__}"


def method_parts(methods: Sequence[str], settings: Settings) -> list[Part]:
    """Every method with every seed."""
    return [method_part(method, seed, settings) for seed in range(settings.seeds) for method in methods]


def _measure(data: Dataset, *, method: str, seed: int, settings: Settings, make: Callable[[Learning], Baseline] | None) -> dict[str, Any]:
    learning = at_most(data.learning(seed=seed), settings.train_queries, seed)
    queries = under(settings.protocol, data.documents, data.split("test"))
    widths = usable_widths(None, (*DEV_WIDTHS, FULL), data.documents.width)
    rows = list(measured(method, seed, learning, queries, widths, None if make is None else partial(make, learning)))
    (frozen,) = measured("truncation", seed, learning, queries, (FULL,))
    assert queries.judged is not None  # a split has labels
    unseen = unseen_queries(queries.judged, learning.positives)
    return {
        "method": method,
        "seed": seed,
        "test_queries": len(queries),
        "unseen_queries": int(unseen.sum()),
        "train_queries": len(learning.train),
        "frozen": round(frozen.quality, DIGITS),
        "parameters": rows[0].parameters,
        "fit_seconds": round(rows[0].fit_seconds, 1),
        **_shortlist(queries),
        "points": [_point(row) for row in rows],
        "asked": hashlib.sha256("\n".join(map(str, queries.vectors.ids)).encode()).hexdigest()[:16],
        QUALITY: np.stack([row.per_query for row in rows]).astype(np.float16),
        UNSEEN: unseen,
    }


def _shortlist(queries: Queries) -> dict[str, Any]:
    """What the candidates that all methods rank allow at best, where there are such."""
    if queries.candidates is None or queries.judged is None:
        return {}
    return {"shortlist": limits(queries.candidates, queries.vectors.width, queries.judged, [MEASURE])}


def _point(row: Row) -> dict[str, Any]:
    unseen = row.unseen or {"queries": 0}
    return {
        "width": row.width,
        "mean_width": round(row.mean_width, 2),
        str(MEASURE): round(row.quality, DIGITS),
        "unseen": round(unseen[str(MEASURE)], DIGITS) if unseen["queries"] else None,
        "multiply_adds": round(row.multiply_adds),
        "stored_floats_per_document": row.stored_floats_per_document,
    }


def at_most(learning: Learning, count: int, seed: int) -> Learning:
    """The same with at most so many train queries, drawn at random."""
    if len(learning.train) <= count:
        return learning
    picked = np.random.default_rng(seed).choice(len(learning.train), count, replace=False)
    return replace(learning, train=learning.train.select(np.sort(picked)))


Pair = tuple[str, str]  # dataset and encoder


class Measured:
    """Cells of methods as arrays: nDCG@10 of every query, mean over the seeds. Widths are numbers, full width the encoder's.

    `unseen` leaves the queries that no seed's labels gave away, and the pairs that have any.
    """

    def __init__(self, cells: Sequence[Cell], *, unseen: bool = False) -> None:
        found = [cell for cell in cells if "method" in cell]
        self.unseen, kept = unseen, _unseen(found)
        self.cells = [cell for cell in found if not unseen or kept[_pair(cell)].any()]
        self.pairs: list[Pair] = pairs(self.cells)
        self.methods: list[str] = list(dict.fromkeys(cell["method"] for cell in self.cells))
        grouped: dict[tuple[Pair, str, int], list[F64]] = {}
        for cell in self.cells:
            mask = kept[_pair(cell)] if unseen else slice(None)
            for point, values in zip(cell["points"], np.asarray(cell[QUALITY], np.float64), strict=True):
                width = in_numbers(point["width"], cell["encoder_width"])
                grouped.setdefault((_pair(cell), cell["method"], width), []).append(values[mask])
        self._spent = _spent(self.cells)
        self._values = {key: np.mean(found, axis=0) for key, found in grouped.items()}
        self._means = {key: float(values.mean()) for key, values in self._values.items()}
        self._spreads = {key: float(np.std([v.mean() for v in found], ddof=1)) if len(found) > 1 else 0.0 for key, found in grouped.items()}

    def only(self, encoder: str) -> Measured:
        """The pairs of one encoder."""
        return Measured([cell for cell in self.cells if cell["encoder"] == encoder], unseen=self.unseen)

    def clusters(self) -> list[list[Pair]]:
        """Pairs whose queries are the same, under several encoders."""
        found: dict[str, list[Pair]] = {}
        for pair in self.pairs:
            found.setdefault(self.of_pair(pair, "asked"), []).append(pair)
        return list(found.values())

    @property
    def described(self) -> str:
        """Pairs, queries (once under several encoders) and seeds, in words."""
        queries = sum(len(self.values(cluster[0], self.methods[0], self.widths(cluster[0])[0])) for cluster in self.clusters())
        counts = [sum(_pair(c) == pair and c["method"] == method for c in self.cells) for pair in self.pairs for method in self.methods]
        seeds = [count for count in counts if count]
        many = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
        return f"{_count(len(self.pairs), 'pair')}, {queries:,} queries, {many} {'seed' if max(seeds) == 1 else 'seeds'}"

    def draws(self, methods: Sequence[str], samples: int = 400, seed: int = 0) -> list[dict[tuple[Pair, str], list[float]]]:
        """The curves of these methods when queries are drawn again, each with all its encoders, seeds and widths."""
        rng = np.random.default_rng(seed)
        found: list[dict[tuple[Pair, str], list[float]]] = [{} for _ in range(samples)]
        for cluster in self.clusters():
            count = len(self.values(cluster[0], methods[0], self.widths(cluster[0])[0]))
            weights = rng.multinomial(count, np.full(count, 1 / count), size=samples) / count
            for pair in cluster:
                for method in methods:
                    values = np.stack([self.values(pair, method, m) for m in self.curve(pair, method)[0]])
                    for draw, means in zip(found, (weights @ values.T).tolist(), strict=True):
                        draw[pair, method] = means
        return found

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

    def spent(self, pair: Pair, method: str, width: int) -> float:
        """The mean width that a method read where it was given this one, mean over the seeds."""
        return self._spent[pair, method, width]

    def rivals(self, ours: Sequence[str]) -> list[str]:
        """Every other method that reads no test label."""
        return [method for method in self.methods if method not in ours and not method.endswith(":oracle")]


def _spent(cells: Sequence[Cell]) -> dict[tuple[Pair, str, int], float]:
    found: dict[tuple[Pair, str, int], list[float]] = {}
    for cell in cells:
        for point in cell["points"]:
            key = _pair(cell), cell["method"], in_numbers(point["width"], cell["encoder_width"])
            found.setdefault(key, []).append(point["mean_width"])
    return {key: float(np.mean(widths)) for key, widths in found.items()}


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _pair(cell: Cell) -> Pair:
    return cell["dataset"], cell["encoder"]


def _unseen(cells: Sequence[Cell]) -> dict[Pair, Mask]:
    """Of each pair the queries that were unseen in every cell."""
    found: dict[Pair, Mask] = {}
    for cell in cells:
        mask = np.asarray(cell[UNSEEN], np.bool_)
        found[_pair(cell)] = mask & found.get(_pair(cell), mask)
    return found
