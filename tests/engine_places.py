"""What the contract is tested on: documents with a spectrum, and somewhere to keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from adawidth import AdaWidth, Client, Index, open_index
from adawidth.data import Vectors
from adawidth.formats.documents import of_vectors
from adawidth.model.collections import connect, layout_of, push
from adawidth.serve.run import Running, running
from adawidth.types import F32
from small_service import KEY

WIDTH, START, COUNT = 96, 32, 600
NUMBERS = count()


@dataclass(frozen=True)
class Corpus:
    """Documents with a spectrum, queries near some of them, and the model fitted on them."""

    model: AdaWidth
    documents: F32
    ids: list[str]
    queries: F32
    titles: list[str]
    texts: list[str]
    metadata: list[dict[str, Any]]

    @property
    def known(self) -> dict[str, Sequence[Any]]:
        return {"titles": self.titles, "texts": self.texts, "metadata": self.metadata}


class Place:
    """Somewhere to keep documents: makes indexes, and opens them again."""

    def __init__(self, name: str, folder: Path, url: str | None) -> None:
        self.name, self.folder, self.url = name, folder, url
        self.collection = f"c{next(NUMBERS)}"
        self._kept: Index | None = None
        self.service: Running | None = None

    @property
    def is_engine(self) -> bool:
        return self.url is not None

    def made(self, corpus: Corpus, rows: slice = slice(None)) -> Index:
        """A new index of some of the documents."""
        vectors = Vectors.of(corpus.documents[rows], corpus.ids[rows])
        known = {name: values[rows] for name, values in corpus.known.items()}
        if self.url is not None:
            push(corpus.model, of_vectors(vectors, **known), self.url, self.collection, layout=layout_of(corpus.model, widths=(START, 64)))
            return connect(self.url, self.collection)
        path = None if self.name == "memory" else self.folder / "index"
        self._kept = corpus.model.index(vectors, path=path, **known)
        if self.name == "service":
            self.service = running(self._kept, key=KEY, rate=0)
            self._kept = Client(self.service.url, KEY)
        return self._kept

    def again(self) -> Index:
        """The same, as another client sees it."""
        if self.url is not None:
            return connect(self.url, self.collection)
        if self.name == "disk":
            return open_index(self.folder / "index")
        assert self._kept is not None
        return self._kept

    def close(self) -> None:
        """Ends the service, where there is one."""
        if self.service is not None:
            self.service.close()
