"""Text in, documents out: an index folder together with the encoder it was made with, loaded once for any number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..encoders import Encoder, encoder_of
from ..errors import DataError
from ..index import IndexFolder
from .adawidth import AdaWidth, open_index
from .index import Searcher


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

    def to_json(self) -> dict[str, Any]:
        """As `search --json` prints it."""
        hits = [{"id": one.id, "score": one.score, **({"title": one.title} if one.title else {})} for one in self.found]
        return {"query": self.query, "mean_width": self.mean_width, "hits": hits}


@dataclass(frozen=True, eq=False)
class TextSearcher:
    """Searches an index folder by text."""

    searcher: Searcher
    encoder: Encoder

    @classmethod
    def open(cls, path: str | Path, encoder: str | None = None) -> TextSearcher:
        """An index folder; `encoder` says where its encoder is found now, where that has changed."""
        return cls.over(open_index(path), encoder)

    @classmethod
    def over(cls, searcher: Searcher, encoder: str | None = None) -> TextSearcher:
        """An index folder that is open, with whichever model."""
        record = AdaWidth.load(searcher.folder.path / "model").record
        return cls(searcher, encoder_of(record.get("encoding", {}), encoder))

    @property
    def index(self) -> IndexFolder:
        """The index folder."""
        return self.searcher.folder

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
        known = self.index.described(hits)
        return [
            Answer(text, width, tuple(Found(one.id, score, one.title, one.text) for one, score in zip(found, scores, strict=False)))
            for text, width, found, scores in zip(texts, hits.widths.tolist(), known, hits.scores.tolist(), strict=True)
        ]
