"""LlamaIndex over an index in memory and on disk: nodes, filters, retrievers."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: make test-integrations installs it")

from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters, SimpleVectorStore
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from adawidth import open_index
from adawidth.errors import OptionError
from adawidth.filters import parse
from adawidth.integrations.llama_index import AdaWidthVectorStore, where_of
from integrations.conftest import SUBJECTS, Library

pytestmark = pytest.mark.integrations


def nodes(library: Library) -> list[TextNode]:
    """One source a subject, five nodes a source."""
    return [
        TextNode(
            id_=f"n{row}",
            text=text,
            embedding=library.vectors[row].tolist(),
            metadata={"subject": SUBJECTS[row // 5], "number": row % 5},
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=SUBJECTS[row // 5])},
        )
        for row, text in enumerate(library.texts)
    ]


@pytest.fixture(params=["memory", "disk"])
def store(request: pytest.FixtureRequest, wordllama: Library, tmp_path: Path) -> AdaWidthVectorStore:
    path = tmp_path / "i" if request.param == "disk" else None
    made = AdaWidthVectorStore(wordllama.model.index(wordllama.vectors[:1], path, ids=["gone"]))
    made.clear()
    assert made.add(nodes(wordllama)) == [f"n{row}" for row in range(40)]
    return made


def ask(library: Library, text: str, k: int = 3, **options: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_embedding=library.encoder.encode([text], "query")[0].tolist(), similarity_top_k=k, **options)


def test_nodes_come_back_whole_and_in_order(store: AdaWidthVectorStore, wordllama: Library) -> None:
    plain = SimpleVectorStore()
    plain.add(nodes(wordllama))
    expected = plain.query(ask(wordllama, "keeping cats"))
    found = store.query(ask(wordllama, "keeping cats"), width="full")
    assert found.ids == expected.ids
    assert found.similarities == pytest.approx(expected.similarities, abs=2e-3)
    (first, *_) = found.nodes
    assert (first.metadata["subject"], first.ref_doc_id) == ("cats", "cats")
    assert "cats" in first.get_content()


def test_nodes_are_replaced_and_removed(store: AdaWidthVectorStore, wordllama: Library) -> None:
    changed = nodes(wordllama)[0].model_copy(update={"metadata": {"subject": "dogs"}})
    store.add([changed])
    assert (len(store.client), store.get_nodes(["n0"])[0].metadata) == (40, {"subject": "dogs"})
    store.delete("cats")
    assert len(store.client) == 35
    store.delete_nodes(["n5", "n6", "absent"], MetadataFilters(filters=[MetadataFilter(key="number", value=1)]))
    assert [node.node_id for node in store.get_nodes(["n5", "n6"])] == ["n5"]
    assert store.add([]) == []


def test_searches_are_restricted_to_documents_and_nodes(store: AdaWidthVectorStore, wordllama: Library) -> None:
    found = store.query(ask(wordllama, "keeping cats", 10, doc_ids=["bread"]))
    assert {node.metadata["subject"] for node in found.nodes} == {"bread"}
    assert store.query(ask(wordllama, "keeping cats", 10, node_ids=["n7", "n9"])).ids in (["n7", "n9"], ["n9", "n7"])
    filters = MetadataFilters(filters=[MetadataFilter(key="number", value=3, operator=FilterOperator.GTE)])
    assert {node.metadata["number"] for node in store.query(ask(wordllama, "cats", 10, filters=filters)).nodes} == {3, 4}
    with pytest.raises(OptionError, match="'hybrid'"):
        store.query(ask(wordllama, "cats", mode=VectorStoreQueryMode.HYBRID))


METADATA: list[dict[str, Any]] = [{}, {"x": 1}, {"x": 2.5, "y": "a"}, {"x": "1", "y": "it's"}, {"y": "b"}, {"x": -1, "y": "a"}]
ONE = [
    MetadataFilter(key="x", value=1),
    MetadataFilter(key="x", value=1, operator=FilterOperator.NE),
    MetadataFilter(key="x", value=[1, 2.5], operator=FilterOperator.IN),
    MetadataFilter(key="y", value=["a", "it's"], operator=FilterOperator.NIN),
    MetadataFilter(key="y", value="it's"),
]


@pytest.mark.parametrize("metadata", METADATA, ids=repr)
def test_filters_mean_what_llama_index_means(metadata: dict[str, Any]) -> None:
    inner = [
        MetadataFilters(filters=ONE[i : i + 2], condition=word) for i in range(4) for word in (FilterCondition.AND, FilterCondition.OR)
    ]
    several = [MetadataFilters(filters=[one]) for one in ONE]
    signs = (FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE)
    numbers = [MetadataFilter(key="x", value=1, operator=sign) for sign in signs]
    several += [] if isinstance(metadata.get("x"), str) else [MetadataFilters(filters=[one]) for one in numbers]
    for filters in (*inner, *several):
        assert parse(where_of(filters)).matches(metadata) == build_metadata_filter_fn(lambda _: metadata, filters)("n"), filters


def test_nested_filters_and_their_negation() -> None:
    both = MetadataFilters(filters=[MetadataFilter(key="x", value=1), MetadataFilter(key="y", value="a")])
    neither = parse(where_of(MetadataFilters(filters=[both], condition=FilterCondition.NOT)))
    assert [neither.matches(one) for one in ({"x": 1, "y": "a"}, {"x": 1}, {})] == [False, True, True]
    empty = parse(where_of(MetadataFilters(filters=[MetadataFilter(key="x", value=None, operator=FilterOperator.IS_EMPTY)])))
    assert [empty.matches(one) for one in ({"x": 1}, {})] == [False, True]
    with pytest.raises(OptionError, match="'contains'"):
        where_of(MetadataFilters(filters=[MetadataFilter(key="x", value="a", operator=FilterOperator.CONTAINS)]))


class Words(BaseEmbedding):
    """The test encoder as LlamaIndex knows them."""

    encoder: Any

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.encoder.encode([text], "document")[0].tolist()

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.encoder.encode([query], "query")[0].tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


@pytest.mark.asyncio
async def test_an_index_of_llama_index_over_a_folder_that_stays(wordllama: Library, tmp_path: Path) -> None:
    wordllama.model.index(wordllama.vectors[:1], tmp_path / "i", ids=["first"], texts=["not from LlamaIndex"]).close()
    embedding = Words(encoder=wordllama.encoder)
    with open_index(tmp_path / "i") as index:
        context = StorageContext.from_defaults(vector_store=AdaWidthVectorStore(index))
        texts = [Document(text=text, metadata={"place": row}) for row, text in enumerate(wordllama.texts)]
        VectorStoreIndex.from_documents(texts, storage_context=context, embed_model=embedding)
    with open_index(tmp_path / "i") as index:
        again = VectorStoreIndex.from_vector_store(AdaWidthVectorStore(index), embed_model=embedding)
        retriever = again.as_retriever(similarity_top_k=2, vector_store_kwargs={"width": 64})
        assert ["umbrellas" in found.node.get_content() for found in retriever.retrieve("umbrellas")] == [True, True]
        assert len(await retriever.aretrieve("umbrellas")) == 2
        assert AdaWidthVectorStore(index).get_nodes(["first"])[0].get_content() == "not from LlamaIndex"
