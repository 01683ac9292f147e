"""How good the answers of an index are, as it gives them: from memory, from disk, or through an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import metrics
from ..data import Dataset, Documents
from ..hits import Hits
from ..model import Index
from ..types import Rows
from .evaluate import MEASURES
from .points import Evaluation, Point, unseen_queries
from .widths import AUTO, FULL, Width, usable_widths

WIDTHS: tuple[Width, ...] = (AUTO, FULL)


def evaluate_index(
    index: Index,
    dataset: Dataset,
    *,
    split: str = "test",
    widths: Sequence[Width] | None = None,
    measures: Sequence[str] = MEASURES,
    **options: Any,
) -> Evaluation:
    """The index's answers to a split's queries at each of `widths` (default auto, full); "auto" is a search with `options`: policy, budget,
    quality, task. Multiply-adds count the scoring of candidates, not the search for them, which each index does in its own way."""
    asked = usable_widths(widths, WIDTHS, index.model.width, (FULL, AUTO))
    wanted = metrics.parse_measures(" ".join(measures))
    queries, depth = dataset.split(split), max(measure.k for measure in wanted)
    assert queries.judged is not None  # a split has labels
    row_of = {str(name): row for name, row in dataset.documents.row_of.items()}
    seen = np.array([row_of[str(name)] for name in index.model.seen if str(name) in row_of], np.int64)
    unseen = unseen_queries(queries.judged, seen) if index.model.labelled else None
    points = []
    for width in asked:
        chosen = options if width == AUTO else {"width": width, "task": options.get("task")}
        found = index.search(queries.vectors, depth + 1, **chosen)
        rows = _rows(found, row_of, queries.own)[:, :depth]
        hits = Hits(rows, found.scores[:, : rows.shape[1]], found.widths, Documents(dataset.documents.ids))
        cost = 0.0 if found.read is None else float(found.read.coordinates.mean())
        points.append(Point(width, found.mean_width, cost, metrics.measured(wanted, rows, queries.judged), hits, unseen))
    names = tuple(queries.vectors.ids)
    return Evaluation(dataset.name, dataset.encoder, index.model.width, split, len(index), names, "index", tuple(points))


def _rows(hits: Hits, row_of: Mapping[str, int], own: Rows) -> Rows:
    """The dataset's rows of the answers; documents that it does not have, and a query's own, are left out."""
    rows = np.full(hits.rows.shape, -1, np.int64)
    for place, names in enumerate(hits.ids):
        found = [row_of[str(name)] for name in names if str(name) in row_of and row_of[str(name)] != own[place]]
        rows[place, : len(found)] = found
    return rows
