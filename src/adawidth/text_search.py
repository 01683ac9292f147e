"""Text in, documents out: an index folder together with the encoder it was made with, loaded once for any number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .encoders import Encoder, encoder_of
from .errors import DataError
from .index import PrefixIndex
from .model import AdaWidth
from .search import Searcher


@dataclass(frozen=True)
class Found:
    """A document of an answer."""

    id: str
    score: float
    title: str
    text: str


@dataclass(frozen=True)
class Answer:
    """What was found, best first, and the mean width at which candidates were read."""

    query: str
    mean_width: float
    found: tuple[Found, ...]


@dataclass(frozen=True, eq=False)
class TextSearcher:
    """Searches an index folder by text."""

    index: PrefixIndex
    searcher: Searcher
    encoder: Encoder

    @classmethod
    def open(cls, path: str | Path, *, model: AdaWidth | None = None, encoder: str | None = None) -> TextSearcher:
        """An index folder with its own model, or another of the same rotation; `encoder` says where the encoder is found now."""
        index = PrefixIndex(path)
        own = AdaWidth.load(index.path / "model")
        return cls(index, (model or own).open(index), encoder_of(own.record.get("encoding", {}), encoder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close()

    def search(self, texts: Sequence[str], k: int = 10, **options: Any) -> list[Answer]:
        """The k best documents for each text, or all where there are fewer; options as in `Searcher.search`."""
        for text in texts:
            if not text.strip():
                raise DataError("the query is empty: give some words")
        if not texts:
            return []
        hits = self.searcher.search(self.encoder.encode(texts, "query"), min(k, len(self.index)), **options)
        return [
            Answer(text, float(width), self._described(ids, scores[: len(ids)].tolist()))
            for text, ids, scores, width in zip(texts, hits.ids, hits.scores, hits.widths, strict=True)
        ]

    def _described(self, ids: Sequence[Any], scores: Sequence[float]) -> tuple[Found, ...]:
        known = self.index.documents(ids)
        return tuple(Found(one.id, score, one.title, one.text) for one, score in zip(known, scores, strict=True))
