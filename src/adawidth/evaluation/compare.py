"""Methods side by side on one dataset, all documents or one shortlist ranked at every width: the `compare` command as a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from .. import metrics
from ..baselines import REGISTRY, Baseline, baseline
from ..baselines.base import Staged
from ..data import Dataset, Documents, Learning, Queries
from ..errors import OptionError
from ..hits import Hits
from ..model import AdaWidth
from ..progress import progress
from ..rotation import Rotation
from ..stages import MemoryBackend
from ..stages.loop import exhaustive
from ..types import F64, Mask
from .points import on_unseen, unseen_queries
from .shortlist import EXHAUSTIVE, limits, mined_at, under
from .widths import FULL, Width, in_numbers, usable_widths

METHODS = (
    "truncation",
    "pca",
    "kyfan",
    "matryoshka-adaptor",
    "smec",
    "learning-to-select",
    "funnel",
    "int8",
    "adawidth",
    "adawidth-query",
)
WIDTHS: tuple[Width, ...] = (32, 64, 128, 256, FULL)
MEASURE = metrics.Measure("nDCG", 10)


@dataclass(frozen=True)
class Row:
    """One method, fitted with one seed, at one width."""

    method: str
    seed: int
    width: Width
    quality: float  # nDCG@10
    unseen: dict[str, Any] | None  # the same on unseen queries; None where nothing was learned from labels
    mean_width: float  # what was spent
    multiply_adds: float  # of one query: what is done to it, the scan, and what is read after that
    parameters: int
    fit_seconds: float
    stored_floats_per_document: float
    reads_to: int | None  # of a method that reads by stages, the widest that any candidate is read
    per_query: metrics.PerQuery  # quality
    widths: F64  # spent on each query

    def to_json(self) -> dict[str, Any]:
        """One entry of "results"."""
        entry = {"method": self.method, "seed": self.seed, "width": self.width, str(MEASURE): self.quality}
        if np.ptp(self.widths) > 0:
            entry["spent"] = spread_of(self.widths)
        if self.unseen is not None:
            entry["unseen"] = self.unseen
        if self.reads_to is not None:
            entry["reads_to"] = self.reads_to
        return entry | {
            "mean_width": self.mean_width,
            "multiply_adds": round(self.multiply_adds),
            "parameters": self.parameters,
            "fit_seconds": self.fit_seconds,
            "stored_floats_per_document": self.stored_floats_per_document,
        }


@dataclass(frozen=True)
class Comparison:
    """Every method, seed and width, and the frozen encoder's own full-width figure."""

    dataset: str
    encoder: str
    encoder_width: int
    split: str
    queries: int
    documents: int
    frozen: float
    results: tuple[Row, ...]
    protocol: str = EXHAUSTIVE
    shortlist: dict[str, Any] | None = None  # what the candidates that all methods rank allow at best; None: they rank all documents

    def __repr__(self) -> str:
        size = f"{self.queries:,} queries, {len(self.methods)} method(s), widths {', '.join(map(str, self.widths))}"
        return f"Comparison({self.dataset}, {self.encoder}, {self.split}: {size})"

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order asked for."""
        return tuple(dict.fromkeys(row.method for row in self.results))

    @property
    def widths(self) -> tuple[Width, ...]:
        """The widths, in the order asked for."""
        return tuple(dict.fromkeys(row.width for row in self.results))

    def figures(self, method: str, width: Width) -> list[float]:
        """nDCG@10 of a method at a width, one figure per seed."""
        return [row.quality for row in self.results if (row.method, row.width) == (method, width)]

    def to_json(self) -> dict[str, Any]:
        """The object that `adawidth compare --json` prints."""
        cells = [(method, width, self.figures(method, width)) for method in self.methods for width in self.widths]
        return {
            "dataset": self.dataset,
            "encoder": self.encoder,
            "encoder_width": self.encoder_width,
            "split": self.split,
            "queries": self.queries,
            "documents": self.documents,
            "protocol": self.protocol,
            **({} if self.shortlist is None else {"shortlist": self.shortlist}),
            "measure": str(MEASURE),
            "frozen": {str(MEASURE): self.frozen},
            "results": [row.to_json() for row in self.results],
            "summary": [{"method": m, "width": w, "mean": float(np.mean(f)), "sd": _spread(f)} for m, w, f in cells],
        }


def compare(
    dataset: Dataset,
    methods: Sequence[str | AdaWidth] = METHODS,
    *,
    widths: Sequence[Width] | None = None,
    seeds: int = 1,
    split: str = "test",
    labels: bool | None = None,
    protocol: str = EXHAUSTIVE,
) -> Comparison:
    """Fits each method with seeds 0, 1, … on train and dev, and ranks a split at each of `widths` (default 32, 64, 128, 256, full).

    Methods are given by name; a fitted model takes part once, as it is, under the name "adawidth". For a method that spends
    unevenly, a width is its budget: the mean width it may spend. Without labels (`labels=False`, or none for train), every
    method learns from documents and queries alone. Methods rank all documents, or, by the paper's protocol `frozen-shortlist`, the
    500 candidates that the frozen encoder's first 64 coordinates find.

    >>> from adawidth import bundled, load_dataset
    >>> comparison = compare(load_dataset(bundled.path()), ["truncation", "pca"], widths=[64])
    >>> comparison.figures("pca", 64) > comparison.figures("truncation", 64)
    True
    """
    if not isinstance(seeds, int | np.integer) or seeds < 1:
        raise OptionError(f"{seeds} seeds: at least 1 is needed")
    unknown = [method for method in methods if isinstance(method, str) and method not in REGISTRY]
    if unknown or not methods:
        raise OptionError(f"there is no method {', '.join(map(repr, unknown)) or 'given'}; there are {', '.join(REGISTRY)}")
    asked = usable_widths(widths, WIDTHS, dataset.documents.width)
    labels = "train" in dataset.qrels if labels is None else labels
    queries = under(protocol, dataset.documents, dataset.split(split))
    assert queries.judged is not None  # a split has labels
    rows: list[Row] = []
    with progress("comparing", len(methods) * seeds) as advance:
        for seed in range(seeds):
            learning = dataset.learning(labels=labels, seed=seed)
            for method in dict.fromkeys(methods):
                name = method if isinstance(method, str) else "adawidth"
                advance(0, name)
                if isinstance(method, str):
                    rows += measured(name, seed, learning, queries, asked)
                elif seed == 0:
                    rows += measured(name, seed, learning, queries, asked, partial(_as_it_is, method))
                advance()
    width = dataset.documents.width
    index = MemoryBackend(dataset.documents, Rotation.identity(width))
    frozen = exhaustive(index, queries.vectors.all(), width, MEASURE.k, queries.own, queries.candidates)
    ordered = sorted(rows, key=lambda row: _place(row.method, methods))
    return Comparison(
        dataset.name,
        dataset.encoder,
        width,
        split,
        len(queries),
        len(dataset.documents),
        float(_quality(frozen, queries).mean()),
        tuple(ordered),
        protocol,
        None if queries.candidates is None else limits(queries.candidates, width, queries.judged, [MEASURE]),
    )


def _as_it_is(model: AdaWidth) -> Baseline:
    from ..baselines.adawidth import AdaWidthTaper  # loads what fits models, which a user with a fitted one need not have

    return AdaWidthTaper(model.rotation, model.policies.taper)


def spread_of(widths: F64) -> dict[str, int]:
    """How many queries spent a mean width of at most 16, 24, 32, 48, …: the bars of a histogram, empty ends left out."""
    bounds = [b for power in range(4, 13) for b in (2**power, 3 * 2 ** (power - 1))]
    counts = np.bincount(np.searchsorted(bounds, np.round(widths, 6)), minlength=len(bounds))
    first, last = (int(place) for place in np.flatnonzero(counts)[[0, -1]])
    return {str(bounds[place]): int(counts[place]) for place in range(first, last + 1)}


def measured(
    name: str, seed: int, learning: Learning, queries: Queries, widths: Sequence[Width], make: Callable[[], Baseline] | None = None
) -> Iterator[Row]:
    """One method, fitted once, at every width; `make` gives a fitted method that the registry does not have."""
    began = time.perf_counter()
    method = baseline(name).fit(learning, seed) if make is None else make()
    seconds = time.perf_counter() - began
    unseen: Mask | None = None
    if learning.labelled and queries.judged is not None:
        unseen = unseen_queries(queries.judged, learning.positives)
    for width in widths:
        m = in_numbers(width, learning.documents.width)
        hits = method.search(learning.documents, queries, m, MEASURE.k)
        quality = _quality(hits, queries)
        reads_to = method.policy(m, MEASURE.k).reach if isinstance(method, Staged) else None
        stored = method.stored_floats(m) if reads_to is None else min(method.stored_floats(m), reads_to)
        yield Row(
            method=name,
            seed=seed,
            width=width,
            quality=float(quality.mean()),
            unseen=None if unseen is None else on_unseen({str(MEASURE): quality}, unseen),
            mean_width=hits.mean_width,
            multiply_adds=_cost(method, m, hits, queries),
            parameters=method.parameters,
            fit_seconds=seconds,
            stored_floats_per_document=stored,
            reads_to=reads_to,
            per_query=quality,
            widths=hits.widths,
        )


def _cost(method: Baseline, width: int, hits: Hits, queries: Queries) -> float:
    """Multiply-adds of one query. Where there are candidates: finding them, and then as if they were all the documents."""
    if queries.candidates is None or hits.documents is None:
        return method.multiply_adds(width, hits)
    few = replace(hits, documents=Documents(range(queries.candidates.shape[1])))
    return len(hits.documents.ids) * mined_at(queries.vectors.width) + method.multiply_adds(width, few)


def _quality(hits: Hits, queries: Queries) -> metrics.PerQuery:
    """nDCG@10 of every query."""
    assert queries.judged is not None  # a split has labels
    return metrics.evaluate([MEASURE], hits.rows, queries.judged)[str(MEASURE)]


def _place(method: str, methods: Sequence[str | AdaWidth]) -> int:
    names = [name if isinstance(name, str) else "adawidth" for name in methods]
    return names.index(method)


def _spread(figures: Sequence[float]) -> float:
    """Standard deviation over the seeds, 0 for one."""
    return float(np.std(figures, ddof=1)) if len(figures) > 1 else 0.0
