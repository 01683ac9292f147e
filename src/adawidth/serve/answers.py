"""Hits as plain values for JSON: documents that several queries found are looked up once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..hits import Hits


def rendered(hits: Hits, fields: Collection[str]) -> list[dict[str, Any]]:
    """One answer per query: id, score, and of these fields those that a document has."""
    if not fields or hits.documents is None:
        names: Sequence[Sequence[Any]] = hits.ids
        known = [[{"id": name} for name in answer] for answer in names]
    else:
        found = np.unique(hits.rows[hits.rows >= 0]).tolist()
        documents = dict(zip(found, hits.documents.describe(found), strict=True))
        parts = {row: {"id": one.id, **{name: value for name in fields if (value := getattr(one, name))}} for row, one in documents.items()}
        known = [[parts[row] for row in answer if row >= 0] for answer in hits.rows.tolist()]
    widths, scores = hits.widths.tolist(), hits.scores.tolist()
    return [
        {"query": 0, "mean_width": width, "hits": [{**one, "score": score} for one, score in zip(answer, row, strict=False)]}
        for width, answer, row in zip(widths, known, scores, strict=True)
    ]
