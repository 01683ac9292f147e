"""Haystack: a DocumentStore and a Retriever over an Index. Documents without a vector wait beside it until they get one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data import Document as Known
from ..errors import OptionalDependencyError, OptionError
from ..formats.files import lines, write_lines
from ..hits import Hit
from ..model import Index, open_index
from ..types import F32, StrPath
from .haystack_filters import where_of

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.utils.filters import document_matches_filter
except ModuleNotFoundError:
    raise OptionalDependencyError("haystack-ai", "haystack") from None

OWN = "_haystack"  # the key, among the metadata, of what an index has no place for: blobs and the like
Filters = dict[str, Any] | None


class AdaWidthDocumentStore:
    """An Index, or the folder of one, as a document store of Haystack.

    A document without an embedding is kept, filtered and counted, but not found by its vector: beside an index folder in
    `<folder>.waiting.jsonl`, elsewhere in memory. With `return_embedding`, documents come with their vectors, of unit length.
    """

    def __init__(self, index: Index | StrPath, return_embedding: bool = False) -> None:
        self.index = index if isinstance(index, Index) else open_index(index)
        self.return_embedding = return_embedding
        self._file = None if self.index.path is None else self.index.path.with_name(f"{self.index.path.name}.waiting.jsonl")
        self._waiting: dict[str, Document] = {one.id: one for one in _read(self._file)}

    def to_dict(self) -> dict[str, Any]:
        """For a pipeline's YAML: the path of the index folder."""
        if self.index.path is None:
            raise OptionError("an index in memory can't be written into a pipeline: give the path of an index folder")
        made: dict[str, Any] = default_to_dict(self, index=str(self.index.path), return_embedding=self.return_embedding)
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AdaWidthDocumentStore:
        """The store that `to_dict` described."""
        made: AdaWidthDocumentStore = default_from_dict(cls, data)
        return made

    def count_documents(self) -> int:
        """All documents, with and without a vector."""
        return len(self.index) + len(self._waiting)

    def filter_documents(self, filters: Filters = None) -> list[Document]:
        """The documents that meet the filters. Every document is looked at."""
        known = [*self._documents(self.index.documents()), *self._waiting.values()]
        return [one for one in known if not filters or document_matches_filter(filters, one)]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Writes documents, all or none, and returns how many. Ids that are there are refused, unless the policy says otherwise."""
        if not isinstance(documents, list) or not all(isinstance(one, Document) for one in documents):
            raise ValueError("write_documents takes a list of Haystack's Document objects")
        fresh: dict[str, Document] = {}
        for one in documents:
            there = one.id in fresh or one.id in self._waiting or one.id in self.index
            if there and policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
                raise DuplicateDocumentError(f"ID '{one.id}' already exists: write it with DuplicatePolicy.OVERWRITE or SKIP")
            if not there or policy == DuplicatePolicy.OVERWRITE:
                fresh[one.id] = one
        self._put(list(fresh.values()))
        return len(documents) if policy == DuplicatePolicy.OVERWRITE else len(fresh)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Removes these documents; ids that are not there are passed over."""
        gone = [name for name in dict.fromkeys(document_ids) if name in self.index]
        if gone:
            self.index.remove(gone)
        self._wait(one for one in self._waiting.values() if one.id not in document_ids)

    def delete_all_documents(self) -> None:
        """Removes all documents."""
        self.delete_documents([*map(str, self.index), *self._waiting])

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Removes the documents that meet the filters, and returns how many."""
        met = [one.id for one in self.filter_documents(filters)]
        self.delete_documents(met)
        return len(met)

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Adds to the metadata of the documents that meet the filters, and returns how many."""
        met = self.filter_documents(filters)
        there = [one for one in met if one.id in self.index]
        vectors = dict(zip((one.id for one in there), self._vectors([one.id for one in there]).tolist(), strict=True))
        self._put([_changed(one, embedding=vectors.get(one.id), meta={**one.meta, **meta}) for one in met])
        return len(met)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """How many documents meet the filters."""
        return len(self.filter_documents(filters))

    def embedding_retrieval(
        self, query_embedding: Sequence[float], *, filters: Filters = None, top_k: int = 10, **search: Any
    ) -> list[Document]:
        """The documents nearest to a vector, with their cosines as scores. `search` is what `index.search` takes."""
        (answer,) = self.index.search([list(query_embedding)], top_k, where=where_of(filters) if filters else None, **search)
        found = self._documents(answer)
        return [_changed(one, score=hit.score) for one, hit in zip(found, answer, strict=True)]

    async def count_documents_async(self) -> int:
        """As `count_documents`, in a thread."""
        return await asyncio.to_thread(self.count_documents)

    async def filter_documents_async(self, filters: Filters = None) -> list[Document]:
        """As `filter_documents`, in a thread."""
        return await asyncio.to_thread(self.filter_documents, filters)

    async def write_documents_async(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """As `write_documents`, in a thread."""
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """As `delete_documents`, in a thread."""
        await asyncio.to_thread(self.delete_documents, document_ids)

    async def delete_all_documents_async(self) -> None:
        """As `delete_all_documents`, in a thread."""
        await asyncio.to_thread(self.delete_all_documents)

    async def delete_by_filter_async(self, filters: dict[str, Any]) -> int:
        """As `delete_by_filter`, in a thread."""
        return await asyncio.to_thread(self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """As `update_by_filter`, in a thread."""
        return await asyncio.to_thread(self.update_by_filter, filters, meta)

    def _put(self, documents: Sequence[Document]) -> None:
        """Each where it belongs, and nowhere else."""
        whole = [one for one in documents if one.embedding is not None]
        if whole:
            vectors = np.array([one.embedding for one in whole], np.float32)
            texts = [one.content or "" for one in whole]
            self.index.update(vectors, [one.id for one in whole], texts=texts, metadata=[_metadata(one) for one in whole])
        names = {one.id for one in documents}
        self._wait([*(one for one in self._waiting.values() if one.id not in names), *(one for one in documents if one.embedding is None)])
        bare = [one.id for one in documents if one.embedding is None and one.id in self.index]
        if bare:
            self.index.remove(bare)

    def _wait(self, documents: Iterable[Document]) -> None:
        waiting = {one.id: one for one in documents}
        if self._file is not None and waiting != self._waiting:
            write_lines(self._file, (json.dumps(one.to_dict(flatten=False), ensure_ascii=False) for one in waiting.values()))
        self._waiting = waiting

    def _documents(self, known: Sequence[Known | Hit]) -> list[Document]:
        vectors = self._vectors([one.id for one in known]).tolist() if self.return_embedding else [None] * len(known)
        return [_document(one, vector) for one, vector in zip(known, vectors, strict=True)]

    def _vectors(self, ids: Sequence[Any]) -> F32:
        """As the encoder gave them; zero along the axes that the index does not keep. (n, D)"""
        stored = self.index.vectors(ids) if ids else np.empty((0, self.index.width), np.float32)
        rotation = self.index.model.rotation
        return rotation.invert(np.pad(stored, ((0, 0), (0, rotation.width - stored.shape[1]))))


@component
class AdaWidthEmbeddingRetriever:
    """Finds the documents of an AdaWidthDocumentStore that are nearest to a vector. `search` is what `index.search` takes."""

    def __init__(
        self,
        document_store: AdaWidthDocumentStore,
        filters: Filters = None,
        top_k: int = 10,
        filter_policy: FilterPolicy | str = FilterPolicy.REPLACE,
        search: dict[str, Any] | None = None,
    ) -> None:
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = FilterPolicy.from_str(filter_policy) if isinstance(filter_policy, str) else filter_policy
        self.search = search or {}

    def to_dict(self) -> dict[str, Any]:
        """For a pipeline's YAML."""
        made: dict[str, Any] = default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            filter_policy=self.filter_policy.value,
            search=self.search,
        )
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AdaWidthEmbeddingRetriever:
        """The retriever that `to_dict` described."""
        options = data["init_parameters"]
        store = AdaWidthDocumentStore.from_dict(options["document_store"])
        made: AdaWidthEmbeddingRetriever = default_from_dict(cls, {**data, "init_parameters": {**options, "document_store": store}})
        return made

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], filters: Filters = None, top_k: int | None = None) -> dict[str, list[Document]]:
        """The `top_k` documents nearest to the vector."""
        met = apply_filter_policy(self.filter_policy, self.filters, filters)
        store = self.document_store
        return {"documents": store.embedding_retrieval(query_embedding, filters=met, top_k=top_k or self.top_k, **self.search)}

    @component.output_types(documents=list[Document])
    async def run_async(self, query_embedding: list[float], filters: Filters = None, top_k: int | None = None) -> dict[str, list[Document]]:
        """As `run`, in a thread."""
        return await asyncio.to_thread(self.run, query_embedding, filters, top_k)


def _read(file: Path | None) -> list[Document]:
    return [] if file is None or not file.exists() else [Document.from_dict(json.loads(line)) for _, line in lines(file)]


def _metadata(one: Document) -> dict[str, Any]:
    """The metadata, and what an index has no place for."""
    rest = {name: value for name, value in one.to_dict(flatten=False).items() if name in ("blob", "sparse_embedding") and value is not None}
    if one.content is None:
        rest["content"] = None
    return {**one.meta, **({OWN: rest} if rest else {})}


def _document(known: Known | Hit, embedding: list[float] | None) -> Document:
    meta = dict(known.metadata)
    rest = meta.pop(OWN, {})
    return Document.from_dict({"id": str(known.id), "content": known.text, "embedding": embedding, **rest, "meta": meta})


def _changed(one: Document, **changes: Any) -> Document:
    return Document.from_dict({**one.to_dict(flatten=False), **changes})
