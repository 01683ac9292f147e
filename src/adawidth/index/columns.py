"""What the documents of one commit hold in a field of their metadata, as numbers: a new filter is asked of each value once.

SQLite would read the metadata of every document for every filter. A field is read as a whole where a filter first asks for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..filters.conditions import Field, Filter, Leaf, held, nested
from ..types import I32, I64, Mask
from .store.manifest import Manifest

FIELDS = 16  # that are kept
VALUES = 50_000  # a field of more different values is left to SQLite


class Column(NamedTuple):
    """The values of a field, and which of them each document has."""

    values: list[object]
    places: I32  # (documents,)

    def mask(self, field: Field, meets: Callable[[dict[str, object]], bool]) -> Mask:
        """Which documents meet a condition on this field alone. (documents,)"""
        return np.array([meets(nested(field, value)) for value in self.values], np.bool_)[self.places]


class Columns:
    """The fields that filters asked for. Safe for concurrent use: at worst a field is read twice."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._numbers: I64 | None = None
        self._columns: dict[Field, Column | None] = {}  # None: too many values

    def matching(self, wanted: Filter) -> I64:
        """The numbers of the documents that meet a filter."""
        columns = {field: self._column(field) for field in wanted.fields()}
        if self._numbers is None or None in columns.values():
            return self._manifest.matching(*wanted.sql())

        def asked(leaf: Leaf) -> Mask:
            column = columns[leaf.field]
            assert column is not None
            return column.mask(leaf.field, leaf.matches)

        return self._numbers[np.broadcast_to(wanted.mask(asked), self._numbers.shape)]

    def _column(self, field: Field) -> Column | None:
        if field not in self._columns:
            text, bound = held(field)
            found = self._manifest.query(f"SELECT number, {text} FROM documents ORDER BY number", bound)
            place_of: dict[str | None, int] = {}
            places = np.array([place_of.setdefault(text, len(place_of)) for _, text in found], np.int32)
            few = len(place_of) <= VALUES
            values = [None if text is None else json.loads(text) for text in place_of] if few else []
            kept = dict(list(self._columns.items())[1 - FIELDS :])
            self._numbers = np.array([number for number, _ in found], np.int64)
            self._columns = {**kept, field: Column(values, places) if few else None}
        return self._columns[field]
