"""Vectors, Qrels, Dataset and what a fit may see."""

import json
import logging
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from adawidth.data import Dataset, Document, Documents, Judged, Learning, Qrels, Queries, Vectors, held_out
from adawidth.errors import DataError, LeakError, OptionError
from adawidth.hits import Hits
from adawidth.types import Id


def vectors(rows: int, ids: Sequence[Id] | None = None, width: int = 32, **options: str) -> Vectors:
    return Vectors.of(np.random.default_rng(rows).standard_normal((rows, width)).astype(np.float32), ids, **options)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_come_out_float32_of_unit_length(dtype: type) -> None:
    values: np.ndarray = (np.random.default_rng(0).standard_normal((50, 48)) * 3).astype(dtype)
    found = Vectors.of(values).all()
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found, values / np.linalg.norm(values.astype(np.float64), axis=1, keepdims=True), atol=1e-3)


def test_blocks_are_the_whole() -> None:
    whole = vectors(100)
    parts = list(whole.blocks(33))
    assert [start for start, _ in parts] == [0, 33, 66, 99]
    np.testing.assert_array_equal(np.concatenate([block for _, block in parts]), whole.all())


def test_plain_arrays_have_row_numbers_as_ids() -> None:
    assert list(vectors(3).ids) == [0, 1, 2]
    assert vectors(3).row_of == {0: 0, 1: 1, 2: 2}
    assert Vectors.of(checked := vectors(3)) is checked


def test_ties_are_ranked_by_id_as_a_string_descending() -> None:
    some = vectors(4, ["9", "10", "b", "a"])
    assert [some.ids[row] for row in np.argsort(Documents(some.ids).tie_rank)] == ["b", "a", "9", "10"]
    assert np.argsort(Documents(vectors(12).ids).tie_rank)[-4:].tolist() == [11, 10, 1, 0]  # "9" comes before "11"


def test_other_lengths_are_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "adawidth"):
        Vectors.of(np.full((2, 64), 0.125), name="unit.npy")
        assert not caplog.messages
        Vectors.of(np.full((2, 64), 0.5), name="long.npy")
    assert "long.npy: lengths run from 4 to 4 and are brought to 1" in caplog.messages[0]


def test_selected_vectors_keep_ids_and_take_a_split() -> None:
    picked = vectors(5, list("abcde")).select([3, 1], "dev")
    assert (list(picked.ids), picked.split, len(picked)) == (["d", "b"], "dev", 2)
    assert picked.select([0]).split == "dev"


def test_judgements_in_rows() -> None:
    documents, queries = vectors(3, ["x", "y", "z"]), vectors(3, ["p", "q", "r"])
    judged = Qrels({"r": {"z": 2, "x": 0}, "p": {"y": 1}}).judged(queries, documents)
    assert judged.offsets.tolist() == [0, 1, 1, 3]
    assert [judged.positives(i).tolist() for i in range(3)] == [[1], [], [2]]
    assert judged.relevant.tolist() == [1, 2]
    turned = judged.select([2, 0])
    assert (turned.offsets.tolist(), turned.documents.tolist(), turned.grades.tolist()) == ([0, 2, 3], [2, 0, 1], [2, 0, 1])
    assert len(judged.select([])) == 0


def test_known_labels_pass_through() -> None:
    documents, queries = vectors(2, ["x", "y"]), vectors(1, ["q"])
    qrels = Qrels({"q": {"x": 1}})
    assert qrels.known(queries, documents) is qrels


def test_unknown_labels_are_left_out_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    documents, queries = vectors(2, ["x", "y"]), vectors(3, ["p", "q", "r"])
    qrels = Qrels({"p": {"x": 1, "lost": 2}, "q": {"lost": 1}, "stranger": {"x": 1}}, "test.tsv")
    with caplog.at_level(logging.WARNING, "adawidth"):
        kept = qrels.known(queries, documents, skip_unknown=True)
    assert kept.grades == {"p": {"x": 1}}
    assert caplog.messages[-1] == "test.tsv: left out 2 of 3 queries and 3 of 4 judgements without a vector"


def labelled(relevant: list[list[int]]) -> Queries:
    """One query for each list of relevant rows."""
    return Queries(vectors(len(relevant), width=32), Judged.of([dict.fromkeys(rows, 1.0) for rows in relevant]), np.full(len(relevant), -1))


@settings(max_examples=100, deadline=None)
@given(
    relevant=st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=2, unique=True), min_size=20, max_size=80),
    seed=st.integers(0, 1000),
)
def test_held_out_is_a_partition_of_about_the_share(relevant: list[list[int]], seed: int) -> None:
    queries = labelled(relevant)
    train, dev = held_out(queries, seed)
    wanted = max(1, round(0.15 * len(queries)))
    assert wanted / 2 <= len(dev) <= wanted
    assert sorted([*train.vectors.ids, *dev.vectors.ids]) == list(range(len(queries)))
    again = held_out(queries, seed)[1]
    assert list(again.vectors.ids) == list(dev.vectors.ids)


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(1, 3), min_size=40, max_size=60), seed=st.integers(0, 1000))
def test_held_out_shares_no_relevant_document_where_it_can(sizes: list[int], seed: int) -> None:
    """Groups of up to three queries with one document in common: none is torn apart."""
    train, dev = held_out(labelled([[group] for group, size in enumerate(sizes) for _ in range(size)]), seed)
    assert not np.intersect1d(train.judged.relevant, dev.judged.relevant).size
    assert len(dev) >= round(0.15 * sum(sizes)) - 2


def test_held_out_follows_chains_of_shared_documents() -> None:
    chain = [[i, i + 1] for i in range(6)]  # six queries, each sharing a document with the next
    train, dev = held_out(labelled(chain + [[100 + i] for i in range(34)]), seed=0)
    assert len(dev) == 6
    assert not np.intersect1d(train.judged.relevant, dev.judged.relevant).size


def test_held_out_tears_apart_only_what_it_must() -> None:
    train, dev = held_out(labelled([[0]] * 40), seed=0)  # all queries hang together
    assert (len(train), len(dev)) == (34, 6)


def test_held_out_depends_on_the_seed(collection: Dataset) -> None:
    train = collection.split("train")
    assert list(held_out(train, 0)[1].vectors.ids) != list(held_out(train, 1)[1].vectors.ids)


def dataset(qrels: dict[str, dict[Id, dict[Id, float]]], **options: bool) -> Dataset:
    documents, queries = vectors(30, [f"d{i}" for i in range(30)]), vectors(20, [f"q{i}" for i in range(20)])
    return Dataset(documents, queries, {split: Qrels(grades, split) for split, grades in qrels.items()}, **options)


def part(first: int, last: int) -> dict[Id, dict[Id, float]]:
    return {f"q{i}": {f"d{i}": 1.0} for i in range(first, last)}


def test_learning_takes_train_and_dev_as_they_are(collection: Dataset) -> None:
    learning = collection.learning()
    assert list(learning.train.vectors.ids) == list(collection.qrels["train"].grades)
    assert list(learning.dev.vectors.ids) == list(collection.qrels["dev"].grades)
    assert learning.labelled
    seen = {d for split in ("train", "dev") for grades in collection.qrels[split].grades.values() for d in grades}
    assert {collection.documents.ids[row] for row in learning.positives} == seen


def test_learning_makes_a_dev_split_where_there_is_none() -> None:
    learning = dataset({"train": part(0, 10), "test": part(10, 20)}).learning()
    assert (len(learning.train), len(learning.dev)) == (8, 2)
    assert not set(learning.train.vectors.ids) & set(learning.dev.vectors.ids)


def test_learning_without_labels() -> None:
    unlabelled = dataset({}).learning(labels=False)
    assert (len(unlabelled.train), len(unlabelled.dev), unlabelled.labelled) == (17, 3, False)
    assert unlabelled.positives.size == 0
    only_train = dataset({"train": part(0, 10)}).learning(labels=False)
    assert (len(only_train.train), len(only_train.dev), only_train.labelled) == (8, 2, False)
    held_back = dataset({"test": part(5, 20)}).learning(labels=False)
    assert set(held_back.train.vectors.ids) | set(held_back.dev.vectors.ids) == {f"q{i}" for i in range(5)}


def test_learning_needs_labels_or_says_so() -> None:
    with pytest.raises(DataError, match=r"no labels for the train split, found test: add qrels/train.tsv$"):
        dataset({"test": part(0, 5)}).learning()


def test_learning_needs_queries() -> None:
    with pytest.raises(DataError, match="0 queries are left to fit on"):
        dataset({"test": part(0, 20)}).learning(labels=False)


def test_learning_refuses_test_queries(collection: Dataset) -> None:
    train, test = collection.split("train"), collection.split("test")
    for parts in ((test, train), (train, test), (train, test.select([0]))):
        with pytest.raises(LeakError, match="these are test queries"):
            Learning(collection.documents, *parts)


def test_learning_refuses_test_queries_in_another_split() -> None:
    with pytest.raises(LeakError, match=r"query 'q8' is in the test split and in train or dev; 2 of 12 test queries are"):
        dataset({"train": part(0, 10), "test": part(8, 20)}).learning()
    with pytest.raises(LeakError, match="query 'q9'"):
        dataset({"train": part(0, 5), "dev": part(5, 10), "test": part(9, 20)}).learning()


def test_learning_refuses_another_width() -> None:
    queries = Queries(vectors(4, width=48), None, np.full(4, -1))
    with pytest.raises(DataError, match=r"queries are 48 wide, documents .* 32"):
        Learning(vectors(5), queries, queries)


def test_a_query_knows_the_document_it_is_only_where_queries_are_documents() -> None:
    ids = ["a", "b", "c", "d"]
    documents, queries = vectors(4, ids), vectors(3, ["c", "a", "other"])
    qrels = {"test": Qrels({"c": {"a": 1}, "a": {"b": 1}, "other": {"d": 1}})}
    assert Dataset(documents, queries, qrels, queries_are_documents=True).split("test").own.tolist() == [2, 0, -1]
    assert Dataset(documents, queries, qrels).split("test").own.tolist() == [-1, -1, -1]


def test_an_unknown_split_is_told_what_there_is(collection: Dataset) -> None:
    with pytest.raises(OptionError, match="has no split 'validation'; it has dev, test, train"):
        collection.split("validation")
    with pytest.raises(OptionError, match="it has none"):
        dataset({}).queries_of("test")


def test_hits_have_ids_without_padding() -> None:
    hits = Hits(np.array([[2, 0], [1, -1]]), np.zeros((2, 2), np.float32), np.array([64.0, 32.0]), vectors(3, ["x", "y", "z"]))
    assert hits.ids == [["z", "x"], ["y"]]
    assert (hits.top(1).ids, hits.mean_width) == ([["z"], ["y"]], 48.0)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), PLAIN, max_size=4))
@settings(max_examples=100, deadline=None)
def test_metadata_are_stored_as_json_writes_them(metadata: dict[str, Any]) -> None:
    assert Document("d", metadata=metadata).plain()[-1] == json.dumps(metadata, ensure_ascii=False)


def test_metadata_that_hold_themselves_are_refused() -> None:
    endless: dict[str, Any] = {"a": 1}
    endless["b"] = [endless]
    with pytest.raises(DataError, match="must be plain text and JSON"):
        Document("d", metadata=endless).plain()
