"""LlamaIndex: a vector store over an Index. Nodes are kept whole, so no document store is needed beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data import Document
from ..errors import OptionalDependencyError, OptionError
from ..filters import parse
from ..hits import Hit
from ..model import Index
from . import conditions

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.schema import BaseNode, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ModuleNotFoundError:
    raise OptionalDependencyError("llama-index-core", "llama-index") from None

SOURCE, ID, WHOLE = "ref_doc_id", "_node_id", "_node_content"  # among a node's metadata: where it was cut from, its id, all of it
ORDERS = {FilterOperator.GT: ">", FilterOperator.GTE: ">=", FilterOperator.LT: "<", FilterOperator.LTE: "<="}


class AdaWidthVectorStore(BasePydanticVectorStore):
    """An Index as a vector store of LlamaIndex. What `index.search` takes beside (`budget`, `width`, `task`, …) may be given to `query`."""

    stores_text: bool = True
    is_embedding_query: bool = True
    flat_metadata: bool = False
    _index: Index = PrivateAttr()

    def __init__(self, index: Index) -> None:
        super().__init__(stores_text=True)
        self._index = index

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex stores."""
        return "AdaWidthVectorStore"

    @property
    def client(self) -> Index:
        """The index."""
        return self._index

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Adds nodes, which bring their vectors, or replaces those with the same ids."""
        ids = [node.node_id for node in nodes]
        if nodes:
            vectors = np.array([node.get_embedding() for node in nodes], np.float32)
            texts = [str(node.get_content()) for node in nodes]
            known = [{**node_to_metadata_dict(node, remove_text=True), ID: node.node_id} for node in nodes]
            self._index.update(vectors, ids, texts=texts, metadata=known)
        return ids

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Removes the nodes of one source document."""
        self._remove([known.id for known in self._index.documents() if known.metadata.get(SOURCE) == ref_doc_id])

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any) -> None:
        """Removes the nodes with these ids that meet the filters."""
        self._remove([node.node_id for node in self.get_nodes(node_ids, filters)])

    def clear(self) -> None:
        """Removes all nodes."""
        self._remove(list(self._index))

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """The nodes with these ids, or all, as far as they meet the filters."""
        wanted = None if filters is None or not filters.filters else parse(where_of(filters))
        ids = None if node_ids is None else [name for name in node_ids if name in self._index]
        known = self._index.documents(ids)
        return [_node(one) for one in known if wanted is None or wanted.matches(one.metadata)]

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nearest nodes. Only the default mode: the index has dense vectors alone."""
        if query.mode != VectorStoreQueryMode.DEFAULT:
            raise OptionError(f"query mode {query.mode.value!r} is not one that a dense index has: leave it out")
        parts = [where_of(query.filters)] if query.filters is not None and query.filters.filters else []
        parts += [conditions.among(SOURCE, query.doc_ids)] if query.doc_ids else []
        parts += [conditions.among(ID, query.node_ids)] if query.node_ids else []  # LlamaIndex gives an empty list for all
        where = conditions.joined("AND", parts) if parts else None
        (answer,) = self._index.search([query.query_embedding], query.similarity_top_k, where=where, **kwargs)
        nodes = [_node(hit) for hit in answer]
        return VectorStoreQueryResult(nodes=nodes, similarities=[hit.score for hit in answer], ids=[node.node_id for node in nodes])

    def _remove(self, ids: list[Any]) -> None:
        if ids:
            self._index.remove(ids)


def where_of(filters: MetadataFilters) -> str:
    """LlamaIndex' filters in AdaWidth's language; `any`, `all`, `contains` and text matches have no place in it."""
    parts = [where_of(part) if isinstance(part, MetadataFilters) else _condition(part) for part in filters.filters]
    whole = conditions.joined("OR" if filters.condition == FilterCondition.OR else "AND", parts)
    return conditions.negated(whole) if filters.condition == FilterCondition.NOT else whole


def _condition(one: MetadataFilter) -> str:
    if one.operator in ORDERS:
        return conditions.ordered(one.key, ORDERS[one.operator], one.value)
    values = one.value if isinstance(one.value, list) else [one.value]
    if one.operator in (FilterOperator.EQ, FilterOperator.IN):
        return conditions.among(one.key, values)
    if one.operator in (FilterOperator.NE, FilterOperator.NIN):
        return conditions.negated(conditions.among(one.key, values))
    if one.operator == FilterOperator.IS_EMPTY:
        return conditions.among(one.key, [None])
    raise OptionError(f"the filter on {one.key!r}: an index has no {one.operator.value!r}: use ==, !=, <, <=, >, >=, in, nin or is_empty")


def _node(known: Document | Hit) -> BaseNode:
    """A node as it was added; a document that came into the index in another way becomes a node."""
    if WHOLE in known.metadata:
        return metadata_dict_to_node(dict(known.metadata), text=known.text)
    return TextNode(id_=str(known.id), text=known.text, metadata=dict(known.metadata))
