"""Haystack's own tests for document stores, synchronous and asynchronous, in memory and on disk; and retrieval."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("haystack", reason="needs haystack-ai: make test-integrations installs it")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing import document_store as suite
from haystack.testing import document_store_async as asuite
from haystack.utils.filters import document_matches_filter

from adawidth import AdaWidth, Index, open_index
from adawidth.errors import OptionError
from adawidth.filters import parse
from adawidth.integrations.haystack import AdaWidthDocumentStore, AdaWidthEmbeddingRetriever
from adawidth.integrations.haystack_filters import where_of

pytestmark = pytest.mark.integrations


@pytest.fixture(scope="module")
def model() -> AdaWidth:
    return AdaWidth.fit(np.random.default_rng(0).random((300, 768), np.float32), recipe="pca")


@pytest.fixture(params=["memory", "disk"])
def empty(request: pytest.FixtureRequest, model: AdaWidth, tmp_path: Path) -> Index:
    index = model.index(np.ones((1, 768), np.float32), tmp_path / "i" if request.param == "disk" else None, ids=["gone"])
    index.remove(["gone"])
    return index


class _Suite:
    @pytest.fixture
    def document_store(self, empty: Index) -> AdaWidthDocumentStore:
        return AdaWidthDocumentStore(empty, return_embedding=True)

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        """In any order; vectors come back at unit length, rounded."""
        received, expected = (sorted(part, key=lambda one: one.id) for part in (received, expected))
        for found, given_ in zip(received, expected, strict=True):
            a, b = found.to_dict(), given_.to_dict()
            one, other = a.pop("embedding"), b.pop("embedding")
            assert a == b
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, np.array(other) / np.linalg.norm(other), atol=2e-3)


class TestDocumentStore(_Suite, suite.DocumentStoreBaseExtendedTests, suite.CountDocumentsByFilterTest):
    def test_write_documents(self, document_store: AdaWidthDocumentStore) -> None:
        """Without a policy, what is there is refused."""
        one = Document(content="test doc", embedding=[0.5] * 768)
        assert document_store.write_documents([one]) == 1
        with pytest.raises(Exception, match="already exists"):
            document_store.write_documents([one])


class TestAsync(
    _Suite,
    asuite.CountDocumentsAsyncTest,
    asuite.WriteDocumentsAsyncTest,
    asuite.DeleteDocumentsAsyncTest,
    asuite.FilterDocumentsAsyncTest,
    asuite.DeleteAllAsyncTest,
    asuite.DeleteByFilterAsyncTest,
    asuite.UpdateByFilterAsyncTest,
):
    @pytest.mark.asyncio
    async def test_write_documents_async(self, document_store: AdaWidthDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(content="a")]) == 1


def documents(count: int = 40) -> list[Document]:
    rng = np.random.default_rng(1)
    return [Document(id=f"d{i}", content=f"text {i}", meta={"n": i}, embedding=rng.random(768).tolist()) for i in range(count)]


def test_a_pipeline_finds_documents_and_can_be_stored(model: AdaWidth, tmp_path: Path) -> None:
    model.index(np.ones((1, 768), np.float32), tmp_path / "i", ids=["first"]).close()
    store = AdaWidthDocumentStore(tmp_path / "i")
    written = documents()
    store.write_documents(written)
    pipeline = Pipeline()
    pipeline.add_component("retriever", AdaWidthEmbeddingRetriever(store, top_k=3, search={"width": 64}))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["adawidth.integrations.haystack"])
    for one in (pipeline, again):
        found = one.run({"retriever": {"query_embedding": written[7].embedding}})["retriever"]["documents"]
        assert (found[0].id, found[0].content, found[0].meta) == ("d7", "text 7", {"n": 7})
        assert len(found) == 3
        assert found[0].score == pytest.approx(1, abs=1e-2)
        assert found[0].embedding is None
    filters = {"field": "meta.n", "operator": "in", "value": [3, 4]}
    found = again.run({"retriever": {"query_embedding": written[7].embedding, "filters": filters}})["retriever"]["documents"]
    assert {one.id for one in found} == {"d3", "d4"}
    with pytest.raises(OptionError, match="in memory"):
        AdaWidthDocumentStore(model.index(np.ones((1, 768), np.float32))).to_dict()


def test_documents_without_a_vector_wait_beside_the_index_until_they_get_one(model: AdaWidth, tmp_path: Path) -> None:
    model.index(np.ones((1, 768), np.float32), tmp_path / "i", ids=["first"]).close()
    one = documents(1)[0]
    bare = Document(id=one.id, content="waits", meta={"n": 1})
    with open_index(tmp_path / "i") as index:
        AdaWidthDocumentStore(index).write_documents([bare])
    with open_index(tmp_path / "i") as index:
        store = AdaWidthDocumentStore(index)
        assert store.filter_documents({"field": "meta.n", "operator": "==", "value": 1}) == [bare]
        assert len(index) == 1
        store.write_documents([one], policy=DuplicatePolicy.OVERWRITE)
        assert (len(index), store.count_documents()) == (2, 2)
        assert store.embedding_retrieval(one.embedding, top_k=1)[0].content == "text 0"
        store.write_documents([bare], policy=DuplicatePolicy.OVERWRITE)
        assert (len(index), store.count_documents()) == (1, 2)


def test_blobs_and_missing_contents_come_back(empty: Index) -> None:
    store = AdaWidthDocumentStore(empty)
    blob = Document(id="b", blob=ByteStream(b"\x00\xff", mime_type="image/png"), embedding=[1.0] * 768, meta={"a": {"b": 1}})
    store.write_documents([blob])
    (found,) = store.filter_documents()
    assert (found.content, found.blob, found.meta) == (None, blob.blob, {"a": {"b": 1}})


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "b", "it's", '"']), st.floats(-2, 2))
META = st.dictionaries(st.sampled_from(["x", "y", "z w"]), VALUES, max_size=3)
FIELDS = st.sampled_from(["x", "meta.x", "meta.y", "meta.z w"])


def leaf(signs: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"field": FIELDS, "operator": st.sampled_from(signs), "value": values})


def logic(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    parts = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries({"operator": st.sampled_from(["AND", "OR", "NOT"]), "conditions": parts})


FILTERS = st.recursive(leaf(["==", "!="], VALUES) | leaf(["in", "not in"], st.lists(VALUES, max_size=3)), logic)


def alike(filters: Any) -> bool:
    """Whether true and 1, which Python takes for equal and AdaWidth does not, can't meet in these."""
    return "True" not in repr(filters) and "False" not in repr(filters)


@given(META, FILTERS)
@settings(max_examples=300, deadline=None)
def test_a_search_filters_as_haystack_does(meta: dict[str, Any], filters: dict[str, Any]) -> None:
    if alike(meta) and alike(filters):
        expected = document_matches_filter(filters, Document(content="", meta=meta))
        assert parse(where_of(filters)).matches(meta) == expected


@given(st.integers(-3, 3) | st.none(), st.sampled_from([">", ">=", "<", "<="]), st.integers(-3, 3) | st.none())
def test_orders_are_haystacks(stored: int | None, sign: str, value: int | None) -> None:
    filters = {"field": "meta.x", "operator": sign, "value": value}
    assert parse(where_of(filters)).matches({"x": stored}) == document_matches_filter(filters, Document(content="", meta={"x": stored}))


@pytest.mark.parametrize(
    "filters",
    [
        {"operator": "AND"},
        {"conditions": []},
        {"operator": "XOR", "conditions": [{"field": "meta.x", "operator": "==", "value": 1}]},
        {"field": "meta.x", "value": 1},
        {"field": "meta.x", "operator": "=="},
        {"field": "meta.x", "operator": "~", "value": 1},
        {"field": "meta.x", "operator": "in", "value": 1},
        {"field": "meta.x", "operator": ">", "value": "word"},
        {"field": "meta.x", "operator": ">", "value": [1]},
        {"field": "content", "operator": "==", "value": "text"},
    ],
)
def test_malformed_filters_are_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        where_of(filters)
