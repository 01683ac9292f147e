"""Vectors, ids and labels in whatever form people have them."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from adawidth import AdaWidth, Dataset, Qrels, Vectors
from adawidth.errors import DataError, OptionError
from adawidth.formats import run_of

pa = pytest.importorskip("pyarrow")

ROWS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
LISTS = ROWS.tolist()
FIXED = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)
NAMES = ["a", "b", "c", "d"]
FORMS = {
    "pandas column": pd.Series(LISTS),
    "pandas column of Arrow": pd.Series(pd.arrays.ArrowExtensionArray(pa.array(LISTS))),
    "pandas table of coordinates": pd.DataFrame(ROWS),
    "pandas table of one column": pd.DataFrame({"vector": LISTS}),
    "polars list column": pl.Series(LISTS),
    "polars array column": pl.Series(LISTS, dtype=pl.Array(pl.Float32, 3)),
    "polars table of coordinates": pl.DataFrame(ROWS),
    "polars table of one column": pl.DataFrame({"vector": LISTS}),
    "Arrow lists": pa.array(LISTS),
    "Arrow lists of one size": FIXED,
    "Arrow chunks": pa.chunked_array([pa.array(LISTS[:2]), pa.array(LISTS[2:])]),
    "Arrow chunks of one size": pa.chunked_array([FIXED]),
    "Arrow table of coordinates": pa.table({str(place): ROWS[:, place] for place in range(3)}),
    "Arrow table of one column": pa.table({"vector": LISTS}),
    "Arrow batch": pa.record_batch({str(place): ROWS[:, place] for place in range(3)}),
}
LABELS = {"query": ["q1", "q1", "q2"], "document": ["d1", "d2", "d1"], "grade": [1, 2, 1]}
GRADES = {"q1": {"d1": 1, "d2": 2}, "q2": {"d1": 1}}


@pytest.mark.parametrize("form", FORMS)
def test_vectors_come_in_any_form(form: str) -> None:
    found = Vectors.of(FORMS[form], note=False)
    np.testing.assert_allclose(found.values, ROWS, rtol=1e-6)


@pytest.mark.parametrize("names", [pd.Series(NAMES), pl.Series(NAMES), pa.array(NAMES), pa.chunked_array([NAMES]), np.array(NAMES)])
def test_ids_come_in_any_form(names: Any) -> None:
    found = Vectors.of(ROWS, names, note=False).ids
    assert list(found) == NAMES
    assert {type(name) for name in found} == {str}


@pytest.mark.parametrize("table", [pd.DataFrame(LABELS), pl.DataFrame(LABELS), pa.table(LABELS)], ids=lambda table: type(table).__module__)
def test_labels_come_as_tables(table: Any) -> None:
    assert Qrels.of(table).grades == GRADES


def test_an_index_takes_columns_throughout(collection: Dataset) -> None:
    documents = collection.documents.all()
    texts = [f"text {row}" for row in range(len(documents))]
    frame = pl.DataFrame({"id": collection.documents.ids, "vector": documents.tolist(), "text": texts})
    table = frame.to_arrow()
    model = AdaWidth.fit(table["vector"], recipe="pca")
    index = model.index(frame["vector"], ids=table["id"], texts=table["text"])
    hit = index.search(table["vector"].slice(7, 1))[0][0]
    assert (hit.id, hit.text) == ("d7", "text 7")
    assert model.rotate(frame.to_pandas()["vector"], 8).shape == (len(documents), 8)


def test_a_table_of_words_is_refused() -> None:
    with pytest.raises(DataError, match="expected one vector of numbers per row"):
        Vectors.of(pa.table({"word": NAMES}))
    with pytest.raises(DataError):
        Vectors.of(pd.DataFrame())


def test_dictionaries_of_texts_are_encoded() -> None:
    def letters(texts: list[str]) -> np.ndarray:
        return np.array([[1 + text.count("a"), 1 + text.count("b")] for text in texts], np.float32)

    corpus = {"d1": {"title": "aaa", "text": "a"}, "d2": {"title": "", "text": "bbb"}}
    data = Dataset.from_dicts(corpus, {"q1": "aa"}, {"q1": {"d1"}}, letters, split="train")
    assert data.qrels["train"].grades == {"q1": {"d1": 1.0}}
    np.testing.assert_array_equal(data.documents.values, [[5, 1], [1, 4]])
    assert data.encoding == {}
    with pytest.raises(OptionError, match="give the encoder"):
        Dataset.from_dicts(corpus, {"q1": "aa"})
    with pytest.raises(OptionError, match="list is no encoder"):
        Dataset.from_dicts(corpus, {"q1": "aa"}, encoder=[])
    with pytest.raises(DataError, match="'d9', which has no vector"):
        Dataset.from_dicts(corpus, {"q1": "aa"}, {"q1": ["d9"]}, letters)
    with pytest.raises(DataError, match="text of 'd2' is '7'"):
        Dataset.from_dicts({"d1": "a", "d2": 7}, {"q1": "aa"}, None, letters)
    with pytest.raises(DataError, match="found list"):
        Dataset.from_dicts([], {"q1": "aa"}, None, letters)


def test_a_dataset_from_texts_remembers_its_encoder() -> None:
    pytest.importorskip("wordllama")
    from adawidth.encoders import load_encoder

    texts = {f"d{i}": f"text about {word}" for i, word in enumerate(("cats", "rain", "tea", "chess", "music"))}
    data = Dataset.from_dicts(texts, {f"q{i}": text for i, text in enumerate(texts.values())}, encoder=load_encoder("wordllama"))
    index = AdaWidth.fit(data, recipe="pca").index(data.documents)
    assert index.search(text="cats")[0][0].id == "d0"


def test_runs_and_labels_go_to_other_tools_and_come_back(collection: Dataset) -> None:
    model = AdaWidth.fit(collection, recipe="pca")
    hits = model.index(collection.documents).search(collection.queries_of("test"), k=20)
    run = hits.to_run()
    assert [list(found) for found in run.values()] == hits.ids
    assert [list(found) for found in run_of(run).values()] == hits.ids  # ties too
    assert list(run) == list(collection.queries_of("test").ids)
    assert list(hits.to_run([f"x{row}" for row in range(len(hits))])) == [f"x{row}" for row in range(len(hits))]
    with pytest.raises(DataError, match="2 query ids but answers to 60 queries"):
        hits.to_run(["a", "b"])
    labels = collection.qrels["test"].to_dict()
    assert Qrels.of(labels).grades == collection.qrels["test"].grades
    assert run_of([("q", "d1", 0.5), ("q", "d2", 0.7)]) == {"q": {"d2": 0.7, "d1": 0.5}}
    with pytest.raises(DataError, match=r"grade 0\.5: grades must be whole"):
        Qrels.of({"q": {"d": 0.5}}).to_dict()


def test_ties_keep_their_order_in_a_run() -> None:
    from adawidth import Hits
    from adawidth.data import Documents

    hits = Hits(np.array([[0, 1, 2]]), np.full((1, 3), 0.5, np.float32), np.array([1.0]), Documents(["a", "c", "b"]))
    assert list(run_of(hits.to_run())["0"]) == ["a", "c", "b"]
