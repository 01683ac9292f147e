"""Hits as JSON. What is told of a document is kept for the next queries that find it, until there is a new commit."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from pydantic_core import to_json

from ..data import Documents
from ..hits import Hits

KEPT = 4_096  # documents
LARGEST_KEPT = 4_096  # characters of one as JSON

Told = dict[int, str]  # by row: the members of a JSON object, without its braces


class Renderer:
    """Looks documents up for answers, each once. Threads share it: what is kept is replaced as a whole, and nothing is taken from it."""

    def __init__(self) -> None:
        self._kept: tuple[Callable[[], Documents | None], dict[tuple[str, ...], Told]] = (lambda: None, {})

    def rendered(self, hits: Hits, fields: tuple[str, ...]) -> list[str]:
        """One answer per query, as members of a JSON object: of each hit its id, its score, and of these fields those that it has."""
        if hits.documents is None:
            known = [[members({"id": name}) for name in answer] for answer in hits.ids]
        else:
            rows = [[row for row in answer if row >= 0] for answer in hits.rows.tolist()]
            told = self._told(hits.documents, fields, sorted(set(chain.from_iterable(rows))))
            known = [[told[row] for row in answer] for answer in rows]
        widths, scores = hits.widths.tolist(), hits.scores.tolist()
        each = [",".join([f'{{{one},"score":{score!r}}}' for one, score in zip(answer, row, strict=False)])
                for answer, row in zip(known, scores, strict=True)]  # fmt: skip
        return [f'"mean_width":{width!r},"hits":[{listed}]' for width, listed in zip(widths, each, strict=True)]

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
        small = {row: one for row, one in found.items() if len(one) <= LARGEST_KEPT}
        if len(kept) + len(small) <= KEPT:
            kept.update(small)
        else:
            by_fields[fields] = small
        return whole


def members(of: Mapping[str, Any]) -> str:
    """As JSON, without the braces."""
    return to_json(of)[1:-1].decode()


def _looked_up(documents: Documents, fields: tuple[str, ...], rows: list[int]) -> list[str]:
    if not fields:
        return [members({"id": documents.ids[row]}) for row in rows]
    known = documents.describe(rows)
    return [members({"id": one.id, **{name: value for name in fields if (value := getattr(one, name))}}) for one in known]
