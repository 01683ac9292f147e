"""Document ids of an index folder, decoded on demand, and their tie-break order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..data import Document, Documents
from ..types import I64, Id
from .store.manifest import Manifest
from .store.segment import Segment


class StoredDocuments(Documents):
    """The documents of an index folder as of one commit, rows of all segments one after the other."""

    def __init__(self, manifest: Manifest, segments: Sequence[Segment], firsts: Sequence[int]) -> None:
        super().__init__(Ids(segments, firsts, numbered=manifest.head.settings.numbered))
        self.segments = segments
        self.firsts = firsts
        self.manifest = manifest

    def describe(self, rows: Iterable[int]) -> list[Document]:
        """What is known of the documents in these rows, even if they have been removed since."""
        places = [(bisect_right(self.firsts, row) - 1, row) for row in rows]
        numbers = [int(self.segments[place].numbers[row - self.firsts[place]]) for place, row in places]
        found = self.manifest.documents_of(numbers)
        return [found[number] for number in numbers]

    @cached_property
    def tie_rank(self) -> I64:
        """The tie-break order, by ids, descending: those of the other segments are inserted into the order of the largest."""
        rank = np.empty(self.firsts[-1], np.int64)
        if not self.segments:
            return rank
        large, *rest = sorted(range(len(self.segments)), key=lambda place: len(self.segments[place]), reverse=True)
        rows = np.concatenate([np.empty(0, np.int64), *(self.segments[place].order() + self.firsts[place] for place in rest)])
        names = [name for place in rest for name in self.segments[place].descending()]
        low = np.concatenate([np.empty(0, np.int64), *(self.segments[place].inserted(self.segments[large]) for place in rest)])
        order = sorted(range(len(names)), key=names.__getitem__, reverse=True)  # Python's sort merges runs that are sorted
        step = len(rows) + 1  # leaves numbers free before each of the largest segment, for the others
        np.multiply(self.segments[large].arrays["places"], step, out=rank[self.firsts[large] : self.firsts[large + 1]], dtype=np.int64)
        rank[self.firsts[large] : self.firsts[large + 1]] += step
        rank[rows[order]] = low[order] * step + np.arange(1, step)
        return rank


class Ids(Sequence[Id]):
    """Ids of documents, decoded on demand."""

    def __init__(self, segments: Sequence[Segment], firsts: Sequence[int], *, numbered: bool) -> None:
        self._segments = segments
        self._firsts = firsts
        self._numbered = numbered

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        if not 0 <= row < len(self):
            raise IndexError(row)
        place = bisect_right(self._firsts, row) - 1
        name = self._segments[place].id_of(row - self._firsts[place])
        return int(name) if self._numbered and name.isdecimal() else name
