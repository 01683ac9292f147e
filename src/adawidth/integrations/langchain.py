"""LangChain: a VectorStore and a Retriever over an Index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from ..data import Document as Known
from ..encoders import Encoder
from ..errors import OptionalDependencyError
from ..hits import Hit
from ..model import AdaWidth, Index
from ..types import StrPath

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pydantic import ConfigDict
except ModuleNotFoundError:
    raise OptionalDependencyError("langchain-core", "langchain") from None

Where = str | Mapping[str, Any] | None


class IndexEmbeddings(Embeddings):
    """An AdaWidth encoder as LangChain knows them, with its prompts for queries and documents."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        found: list[list[float]] = self._encoder.encode(texts, "document").tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        found: list[float] = self._encoder.encode([text], "query")[0].tolist()
        return found


class AdaWidthVectorStore(VectorStore):
    """An Index as a vector store of LangChain. Without an `embedding`, texts go to the index's own encoder.

    `filter` is a filter of AdaWidth, as a dictionary or a text. Whatever else `index.search` takes (`budget`, `quality`, `width`,
    `task`, …) may be given with any search. Scores are cosines. The asynchronous methods run these in a thread.
    """

    def __init__(self, index: Index, embedding: Embeddings | None = None) -> None:
        self.index = index
        self._embedding = embedding

    @property
    def embeddings(self) -> Embeddings:
        """What turns texts into vectors."""
        if self._embedding is None:
            self._embedding = IndexEmbeddings(self.index.encoder)
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        model: AdaWidth | None = None,
        path: StrPath | None = None,
        **kwargs: Any,
    ) -> AdaWidthVectorStore:
        """A new index of these texts, in memory or at `path`. Without a `model`, one is fitted on the texts alone (PCA, no labels)."""
        vectors = np.array(embedding.embed_documents(list(texts)), np.float32)
        model = AdaWidth.fit(vectors, recipe="pca") if model is None else model
        names = ids or [str(uuid4()) for _ in texts]
        return cls(model.index(vectors, path, ids=names, texts=list(texts), metadata=metadatas), embedding)

    def add_texts(
        self, texts: Iterable[str], metadatas: list[dict[str, Any]] | None = None, *, ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Adds texts, or replaces those that have the same ids. Texts without an id get one."""
        given = list(texts)
        names = [name or str(uuid4()) for name in ids or [None] * len(given)]
        if not given:
            return names
        last = {name: row for row, name in enumerate(names)}  # of texts with one id, the last counts
        rows = sorted(last.values())
        vectors = np.array(self.embeddings.embed_documents([given[row] for row in rows]), np.float32)
        known = None if metadatas is None else [metadatas[row] for row in rows]
        self.index.update(vectors, [names[row] for row in rows], texts=[given[row] for row in rows], metadata=known)
        return names

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Removes these documents, or all; ids that are not there are passed over."""
        gone = list(self.index) if ids is None else [name for name in dict.fromkeys(ids) if name in self.index]
        if gone:
            self.index.remove(gone)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, as far as they are there."""
        return [_document(known) for known in self.index.documents([name for name in ids if name in self.index])]

    def similarity_search(self, query: str, k: int = 4, filter: Where = None, **kwargs: Any) -> list[Document]:
        """The k nearest documents."""
        return [document for document, _ in self.similarity_search_with_score(query, k, filter, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, filter: Where = None, **kwargs: Any) -> list[tuple[Document, float]]:
        """The k nearest documents and their cosines."""
        return [(_document(hit), hit.score) for hit in self._hits(self.embeddings.embed_query(query), k, filter, kwargs)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, filter: Where = None, **kwargs: Any) -> list[Document]:
        """The k documents nearest to a vector."""
        return [_document(hit) for hit in self._hits(embedding, k, filter, kwargs)]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Of the `fetch_k` nearest documents, k that are near to the query and far from one another."""
        return self.max_marginal_relevance_search_by_vector(self.embeddings.embed_query(query), k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """The same for a vector."""
        hits = self._hits(embedding, fetch_k, kwargs.pop("filter", None), kwargs)
        if not hits:
            return []
        query = self.index.model.rotate_queries([embedding], self.index.width, kwargs.get("task"))[0]
        stored = list(self.index.vectors([hit.id for hit in hits]))
        return [_document(hits[row]) for row in maximal_marginal_relevance(query, stored, lambda_mult, k)]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: max(0.0, cosine)

    def _hits(self, embedding: Sequence[float], k: int, where: Where, options: Mapping[str, Any]) -> Sequence[Hit]:
        (answer,) = self.index.search([list(embedding)], k, where=where or None, **options)
        return answer


class AdaWidthRetriever(BaseRetriever):
    """An Index as a retriever of LangChain: texts in, the k best documents out, each with its `score` in the metadata."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    index: Index
    embedding: Embeddings | None = None  # None: the index's own encoder
    k: int = 4
    filter: Any = None
    search_options: dict[str, Any] = {}  # noqa: RUF012, pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any) -> list[Document]:
        store = AdaWidthVectorStore(self.index, self.embedding)
        options = {"k": self.k, "filter": self.filter, **self.search_options, **kwargs}
        found = store.similarity_search_with_score(query, **options)
        return [document.model_copy(update={"metadata": {**document.metadata, "score": score}}) for document, score in found]


def _document(known: Known | Hit) -> Document:
    titled = {"title": known.title} if known.title and "title" not in known.metadata else {}
    return Document(id=str(known.id), page_content=known.text, metadata={**titled, **known.metadata})
