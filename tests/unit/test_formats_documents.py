"""Documents on their way into an index: read as they are written, batch by batch, with what is known of them."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from adawidth.data import Dataset, Vectors
from adawidth.errors import DataError
from adawidth.formats import Document, documents, write_vectors
from small_index import vectors


def read(given: documents.Source) -> list[Document]:
    return [document for batch in given.batches() for document in batch.documents]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BLOCK", 4)


def test_vectors_come_in_batches() -> None:
    values = vectors(10)
    given = documents.of_vectors(Vectors.of(values, [f"d{i}" for i in range(10)]), titles=[f"t{i}" for i in range(10)])
    batches = list(given.batches())
    assert [len(batch.vectors) for batch in batches] == [4, 4, 2]
    np.testing.assert_array_equal(np.concatenate([batch.vectors.values for batch in batches]), values)
    assert read(given)[7] == Document("d7", "t7", "", {})
    assert (given.count, given.width) == (10, 64)


@pytest.mark.parametrize("order", ["same", "reversed", "gaps"])
def test_texts_find_their_vectors_in_any_order(tmp_path: Path, order: str) -> None:
    write_vectors(tmp_path / "x.npy", Vectors.of(vectors(10), [f"d{i}" for i in range(10)]))
    entries = [{"_id": f"d{i}", "title": f"t{i}", "metadata": {"a": i}, "lang": "en"} for i in range(12)]
    entries = {"same": entries, "reversed": entries[::-1], "gaps": entries[::2]}[order]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    found = read(documents.of_file(tmp_path / "x.npy"))
    described = {entry["_id"] for entry in entries}
    for i, document in enumerate(found):
        known = f"d{i}" in described
        assert document == Document(f"d{i}", f"t{i}" if known else "", "", {"a": i, "lang": "en"} if known else {})


def test_a_dataset_folder(dataset_folder: Path, collection: Dataset) -> None:
    (dataset_folder / "corpus.jsonl").write_text('{"_id": "d5", "text": "five"}\n')
    given = documents.of_dataset(dataset_folder)
    assert (given.count, given.width) == (480, 64)
    assert read(given)[5] == Document("d5", "", "five")
    (dataset_folder / "corpus.jsonl").write_text('{"_id": "d0"}\n["not an object"]\n')
    with pytest.raises(DataError, match=r"corpus.jsonl:2: expected"):
        read(given)


def test_files_without_ids_or_of_other_widths(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", vectors(3))
    with pytest.raises(DataError, match=r"x.npy: there are no ids: add x.ids"):
        documents.of_file(tmp_path / "x.npy")
    narrow = Vectors.of(vectors(3)[:, :40], list("abc"), name="narrow")
    with pytest.raises(DataError, match="narrow: vectors are 40 wide, those of wide 64"):
        documents.joined([documents.of_vectors(Vectors.of(vectors(2), list("xy"), name="wide")), documents.of_vectors(narrow)])


def test_parquet_is_read_in_parts_and_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = 3 * vectors(10)
    table = arrow.table({"_id": list(range(10)), "v": list(values), "title": ["t"] * 10, "year": list(range(10))})
    parquet.write_table(table, tmp_path / "x.parquet")
    with caplog.at_level(logging.WARNING, "adawidth"):
        given = documents.of_file(tmp_path / "x.parquet")
        batches = list(given.batches())
    assert len(caplog.records) == 1
    assert [len(batch.vectors) for batch in batches] == [4, 4, 2]
    np.testing.assert_allclose(np.concatenate([batch.vectors.all() for batch in batches]), vectors(10), atol=1e-6)
    assert read(given)[9] == Document("9", "t", "", {"year": 9})
    (tmp_path / "x.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged or cut off"):
        documents.of_file(tmp_path / "x.parquet")


def test_documents_need_neither_queries_nor_labels(dataset_folder: Path, collection: Dataset) -> None:
    (dataset_folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nstranger\tnowhere\t1\n")
    (dataset_folder / "embeddings" / "tiny" / "queries.npy").write_bytes(b"damaged")
    assert [document.id for document in read(documents.of_dataset(dataset_folder))] == list(collection.documents.ids)


def test_texts_of_a_part_of_the_documents_are_told(dataset_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    entries = "".join(f'{{"_id": "d{i}", "text": "…"}}\n' for i in range(480) if i not in (7, 9))
    (dataset_folder / "corpus.jsonl").write_text(entries)
    read(documents.of_dataset(dataset_folder))
    assert caplog.messages == [f"{dataset_folder / 'corpus.jsonl'}: says nothing of 2 of 480 documents, 'd7' first"]


def test_metadata_must_be_an_object(dataset_folder: Path) -> None:
    (dataset_folder / "corpus.jsonl").write_text('{"_id": "d0", "metadata": [1]}\n')
    with pytest.raises(DataError, match=r"corpus.jsonl: the metadata of 'd0' is \[1\]: expected an object"):
        read(documents.of_dataset(dataset_folder))


def test_nested_columns_of_parquet_become_metadata(tmp_path: Path) -> None:
    """In several row groups, each of which has its own texts."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    nested = [{"part": i, "names": [f"n{j}" for j in range(i % 4)]} for i in range(20)]
    marked = arrow.array([[(f"key {i}", i)] for i in range(20)], arrow.map_("string", "int32"))
    columns = {"id": [f"d{i}" for i in range(20)], "v": np.eye(20, dtype=np.float32).tolist(), "nested": nested, "marked": marked}
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet", row_group_size=7)
    found = [document for batch in documents.of_file(tmp_path / "x.parquet").batches() for document in batch.documents]
    assert [document.id for document in found] == columns["id"]
    assert [document.metadata for document in found] == [{"nested": nested[i], "marked": [(f"key {i}", i)]} for i in range(20)]


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".parquet"])
def test_another_width_is_all_that_is_said(suffix: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / f"x{suffix}"
    write_vectors(file, Vectors(7 * vectors(3), ["a", "b", "c"]))
    with pytest.raises(DataError, match=rf"x{suffix}: vectors are 64 wide, the model 32"):
        documents.of_file(file, width=32)
    assert caplog.messages == []  # nothing on lengths
