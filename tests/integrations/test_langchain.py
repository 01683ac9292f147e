"""LangChain's own standard tests, for an index in memory and on disk; and what is particular to AdaWidth."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="needs langchain-core: make test-integrations installs it")
pytest.importorskip("langchain_tests", reason="needs langchain-tests: make test-integrations installs it")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_tests import integration_tests as suites

from adawidth import open_index
from adawidth.errors import OptionError
from adawidth.integrations.langchain import AdaWidthRetriever, AdaWidthVectorStore, IndexEmbeddings
from integrations.conftest import SUBJECTS, Library

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:.*marked with '@pytest.mark.asyncio'"),
]


class TestStandard(suites.VectorStoreIntegrationTests):
    @pytest.fixture(params=["memory", "disk"])
    def vectorstore(self, request: pytest.FixtureRequest, tmp_path: Path) -> AdaWidthVectorStore:
        path = tmp_path / "texts.index" if request.param == "disk" else None
        store = AdaWidthVectorStore.from_texts(["first", "second", "third"], self.get_embeddings(), path=path)
        store.delete()
        return store


class TestRetriever(suites.RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return AdaWidthRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        embedding = DeterministicFakeEmbedding(size=6)
        store = AdaWidthVectorStore.from_texts([f"text {number}" for number in range(9)], embedding)
        return {"index": store.index, "embedding": embedding}

    @property
    def retriever_query_example(self) -> str:
        return "text 4"


@pytest.fixture
def store(wordllama: Library, tmp_path: Path) -> AdaWidthVectorStore:
    """Without an embedding of its own: the index knows its encoder."""
    metadata = [{"subject": subject, "number": number} for subject in SUBJECTS for number in range(5)]
    ids = [f"t{row}" for row in range(len(wordllama.texts))]
    wordllama.model.index(wordllama.vectors, tmp_path / "i", ids=ids, texts=wordllama.texts, metadata=metadata).close()
    return AdaWidthVectorStore(open_index(tmp_path / "i"))


def test_texts_go_to_the_encoder_of_the_index(store: AdaWidthVectorStore) -> None:
    (found,) = store.similarity_search("keeping cats", k=1)
    assert found.metadata["subject"] == "cats"
    assert "cats" in found.page_content
    assert isinstance(store.embeddings, IndexEmbeddings)
    store.add_documents([Document(id="new", page_content="sailing boats on the sea", metadata={"subject": "boats"})])
    assert store.similarity_search("a boat at sea", k=1)[0].id == "new"


def test_filters_and_options_of_a_search_reach_the_index(store: AdaWidthVectorStore) -> None:
    found = store.similarity_search("keeping cats", k=10, filter={"subject": ["bread", "chess"], "number": {"<": 2}}, width=32)
    assert {document.metadata["subject"] for document in found} == {"bread", "chess"}
    assert len(found) == 4
    same = store.similarity_search("keeping cats", k=10, filter="subject IN ('bread', 'chess') AND number < 2", budget=64)
    assert {document.id for document in same} == {document.id for document in found}
    with pytest.raises(OptionError, match="width 9999"):
        store.similarity_search("cats", width=9999)


def test_scores_are_cosines_and_relevance_lies_between_0_and_1(store: AdaWidthVectorStore) -> None:
    query = store.embeddings.embed_query("keeping cats")
    for document, score in store.similarity_search_with_score("keeping cats", k=3, width="full"):
        vector = store.embeddings.embed_documents([document.page_content])[0]
        assert score == pytest.approx(sum(a * b for a, b in zip(query, vector, strict=True)), abs=2e-3)
    scores = [score for _, score in store.similarity_search_with_relevance_scores("keeping cats", k=40)]
    assert all(0 <= score <= 1 for score in scores)


async def test_marginal_relevance_leaves_the_nearest_first_and_spreads(store: AdaWidthVectorStore) -> None:
    near = store.similarity_search("keeping cats", k=4)
    spread = store.max_marginal_relevance_search("keeping cats", k=4, fetch_k=40, lambda_mult=0.1)
    assert spread[0].id == near[0].id
    assert len({document.metadata["subject"] for document in spread}) > len({document.metadata["subject"] for document in near})
    assert store.max_marginal_relevance_search("cats", filter={"subject": "none"}) == []
    assert [document.id for document in await store.asimilarity_search("keeping cats", k=4)] == [document.id for document in near]


def test_a_retriever_in_a_chain(store: AdaWidthVectorStore) -> None:
    chain = store.as_retriever(search_kwargs={"k": 2, "filter": {"subject": "music"}}) | (lambda found: [one.page_content for one in found])
    assert all("music" in text for text in chain.invoke("why do people listen?"))
    (best,) = AdaWidthRetriever(index=store.index, k=1, filter={"subject": "music"}, search_options={"width": 32}).invoke("songs")
    assert best.metadata["subject"] == "music"
    assert -1 <= best.metadata["score"] <= 1
