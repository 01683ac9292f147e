"""What an index knows of its documents besides their vectors: ids, tie-break order, titles, texts, metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import DataError
from ..types import I64, Id

PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
SIMPLE = frozenset((str, int, float, bool, type(None)))


@dataclass(frozen=True)
class Document:
    """What an index knows of a document besides its vector.

    >>> Document("d7", title="Umbrella", metadata={"year": 2024}).title
    'Umbrella'
    """

    id: Id
    title: str = ""
    text: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def plain(self) -> tuple[str, str, str, str]:
        """Id, title, text and metadata (JSON), as they are stored; a DataError where they can't be.

        >>> Document("d7", metadata={"year": 2024}).plain()
        ('d7', '', '', '{"year": 2024}')
        """
        name, metadata = self.id, self.metadata
        if (type(name) is not str and not isinstance(name, str | int)) or name == "":
            known = str(self.title or self.text)[:40]
            raise DataError(f"a document, {known!r}, has an empty id, or one that is no text ({name!r}): give every document one")
        if type(metadata) is not dict:
            if not isinstance(metadata, Mapping):
                raise DataError(f"document {name!r}: metadata must be a dictionary, not {type(metadata).__name__}")
            metadata = dict(metadata)
        try:
            texts = (str(name), self.title, self.text, PLAIN(metadata))
            "".join(texts).encode()
            for key, value in metadata.items():
                if type(key) is not str or type(value) not in SIMPLE:  # asking what is inside takes longer
                    _check_keys(metadata)
                    break
        except (TypeError, ValueError, RecursionError) as error:
            raise DataError(f"document {name!r}: title, text and metadata must be plain text and JSON: {error}") from None
        return texts


def _check_keys(value: Any) -> None:
    """Refuses keys that are no text, also those of what is inside: JSON would turn them into text silently."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a key of the metadata is no text")
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for inner in value:
        _check_keys(inner)


class Documents:
    """The documents of an index by row: their ids, the tie-break order of ids, and what else is known of them."""

    def __init__(self, ids: Sequence[Id]) -> None:
        self.ids = ids

    @cached_property
    def tie_rank(self) -> I64:
        """Tie-break order, as trec_eval's: the rank of each row when ids are sorted as strings, descending."""
        order = sorted(range(len(self.ids)), key=lambda row: str(self.ids[row]), reverse=True)
        rank = np.empty(len(self.ids), np.int64)
        rank[order] = np.arange(len(self.ids))
        return rank

    def describe(self, rows: Iterable[int]) -> list[Document]:
        """What is known of the documents in these rows."""
        return [Document(self.ids[row]) for row in rows]


class ChainedDocuments(Documents):
    """The documents of several, one after the other."""

    def __init__(self, parts: Sequence[Documents]) -> None:
        super().__init__([name for part in parts for name in part.ids])
        self._parts = parts

    def describe(self, rows: Iterable[int]) -> list[Document]:
        firsts = np.cumsum([0, *(len(part.ids) for part in self._parts)])
        owners = [(row, int(np.searchsorted(firsts, row, side="right")) - 1) for row in rows]
        return [self._parts[owner].describe([row - int(firsts[owner])])[0] for row, owner in owners]
