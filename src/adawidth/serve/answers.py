"""Hits as JSON. What is told of a document is kept for the next queries that find it, until there is a new commit."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from pydantic_core import to_json

from ..data import Documents
from ..hits import Hits

KEPT = 8_000_000  # bytes


class Told(dict[int, bytes]):
    """What is told of documents, by row: the members of a JSON object, without its braces."""

    size = 0  # bytes


class Renderer:
    """Looks documents up for answers, each once. Threads share it: what is kept is replaced as a whole, and nothing is taken from it."""

    def __init__(self) -> None:
        self._kept: tuple[Callable[[], Documents | None], dict[tuple[str, ...], Told]] = (lambda: None, {})

    def rendered(self, hits: Hits, fields: tuple[str, ...]) -> list[bytes]:
        """One answer per query, as members of a JSON object: of each hit its id, its score, and of these fields those that it has."""
        if hits.documents is None:
            known = [[members({"id": name}) for name in answer] for answer in hits.ids]
        else:
            rows = [[row for row in answer if row >= 0] for answer in hits.rows.tolist()]
            told = self._told(hits.documents, fields, sorted(set(chain.from_iterable(rows))))
            known = [[told[row] for row in answer] for answer in rows]
        widths, scores = hits.widths.tolist(), hits.scores.tolist()
        answers = zip(known, scores, strict=True)
        each = [b",".join([b'{%b,"score":%a}' % hit for hit in zip(answer, row, strict=False)]) for answer, row in answers]
        return [b'"mean_width":%a,"hits":[%b]' % one for one in zip(widths, each, strict=True)]

    def _told(self, documents: Documents, fields: tuple[str, ...], rows: list[int]) -> Mapping[int, bytes]:
        """What is told of at least these rows."""
        of, by_fields = self._kept
        if of() is not documents:
            of, by_fields = self._kept = (weakref.ref(documents), {})
        kept = by_fields.setdefault(fields, Told())
        new = [row for row in rows if row not in kept]
        if not new:
            return kept
        found = dict(zip(new, _looked_up(documents, fields, new), strict=True))
        whole = found | {row: kept[row] for row in rows if row not in found}
        size = sum(map(len, found.values()))
        if kept.size + size > KEPT:
            kept = by_fields[fields] = Told()
        if size <= KEPT:
            kept.update(found)
            kept.size += size
        return whole


def members(of: Mapping[str, Any]) -> bytes:
    """As JSON, without the braces."""
    return to_json(of)[1:-1]


def _looked_up(documents: Documents, fields: tuple[str, ...], rows: list[int]) -> list[bytes]:
    if not fields:
        return [members({"id": documents.ids[row]}) for row in rows]
    known = documents.describe(rows)
    return [members({"id": one.id, **{name: value for name in fields if (value := getattr(one, name))}}) for one in known]
