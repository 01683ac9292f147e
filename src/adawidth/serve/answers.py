"""Hits as plain values for JSON. What is told of a document is kept for the next queries that find it, until there is a new commit."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic_core import to_json

from ..data import Documents
from ..hits import Hits

KEPT = 4_096  # documents
LARGEST_KEPT = 4_096  # bytes of one as JSON

Told = dict[int, dict[str, Any]]  # by row


class Renderer:
    """Looks documents up for answers, each once. Threads share it: what is kept is replaced as a whole, and nothing is taken from it."""

    def __init__(self) -> None:
        self._kept: tuple[Callable[[], Documents | None], dict[tuple[str, ...], Told]] = (lambda: None, {})

    def rendered(self, hits: Hits, fields: tuple[str, ...]) -> list[dict[str, Any]]:
        """One answer per query: id, score, and of these fields those that a document has."""
        if hits.documents is None:
            known = [[{"id": name} for name in answer] for answer in hits.ids]
        else:
            told = self._told(hits.documents, fields, np.unique(hits.rows[hits.rows >= 0]).tolist())
            known = [[told[row] for row in answer if row >= 0] for answer in hits.rows.tolist()]
        widths, scores = hits.widths.tolist(), hits.scores.tolist()
        return [
            {"query": 0, "mean_width": width, "hits": [{**one, "score": score} for one, score in zip(answer, row, strict=False)]}
            for width, answer, row in zip(widths, known, scores, strict=True)
        ]

    def _told(self, documents: Documents, fields: tuple[str, ...], rows: list[int]) -> Told:
        """What is told of at least these rows."""
        of, by_fields = self._kept
        if of() is not documents:
            of, by_fields = self._kept = (weakref.ref(documents), {})
        kept = by_fields.setdefault(fields, {})
        new = [row for row in rows if row not in kept]
        if not new:
            return kept
        found = dict(zip(new, _looked_up(documents, fields, new), strict=True))
        whole = found | {row: kept[row] for row in rows if row not in found}
        small = {row: one for row, one in found.items() if len(to_json(one)) <= LARGEST_KEPT}
        if len(kept) + len(small) <= KEPT:
            kept.update(small)
        else:
            by_fields[fields] = small
        return whole


def _looked_up(documents: Documents, fields: tuple[str, ...], rows: list[int]) -> list[dict[str, Any]]:
    if not fields:
        return [{"id": documents.ids[row]} for row in rows]
    return [{"id": one.id, **{name: value for name in fields if (value := getattr(one, name))}} for one in documents.describe(rows)]
