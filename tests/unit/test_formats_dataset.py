"""Dataset folders: every way in which they may be laid out."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from adawidth import AdaWidth
from adawidth.data import Dataset
from adawidth.errors import DataError
from adawidth.formats import load_dataset, read_vectors, write_vectors


def same(found: Dataset, expected: Dataset) -> bool:
    return (
        list(found.documents.ids) == list(expected.documents.ids)
        and list(found.queries.ids) == list(expected.queries.ids)
        and np.array_equal(found.documents.all(), expected.documents.all())
        and np.array_equal(found.queries.all(), expected.queries.all())
        and {s: q.grades for s, q in found.qrels.items()} == {s: q.grades for s, q in expected.qrels.items()}
    )


def test_a_folder_holds_the_collection(dataset_folder: Path, collection: Dataset) -> None:
    found = load_dataset(dataset_folder)  # its only encoder
    assert same(found, collection)
    assert (found.name, found.encoder, found.queries_are_documents) == ("collection", "tiny", False)
    assert same(load_dataset(str(dataset_folder), encoder="tiny"), collection)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet"])
def test_vectors_in_other_formats(dataset_folder: Path, collection: Dataset, suffix: str) -> None:
    home = dataset_folder / "embeddings" / "tiny"
    for side in ("corpus", "queries"):
        write_vectors(home / f"{side}{suffix}", read_vectors(home / f"{side}.npy"))
        (home / f"{side}.npy").unlink()
        (home / f"{side}.ids").unlink()
    assert same(load_dataset(dataset_folder), collection)


def write_texts(folder: Path, collection: Dataset, suffix: str = "") -> None:
    for side, vectors in (("corpus", collection.documents), ("queries", collection.queries)):
        entries = [{"_id": name, "title": f"title of {name}", "text": f"text of {name} …"} for name in vectors.ids]
        text = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
        (folder / f"{side}.jsonl{suffix}").write_bytes(gzip.compress(text) if suffix else text)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_ids_from_the_texts(dataset_folder: Path, collection: Dataset, suffix: str) -> None:
    write_texts(dataset_folder, collection, suffix)
    for side in ("corpus", "queries"):
        (dataset_folder / "embeddings" / "tiny" / f"{side}.ids").unlink()
    assert same(load_dataset(dataset_folder), collection)


def test_everything_that_is_text_may_be_gzipped(dataset_folder: Path, collection: Dataset) -> None:
    for file in [*dataset_folder.rglob("*.tsv"), *dataset_folder.rglob("*.ids")]:
        file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert same(load_dataset(dataset_folder), collection)


def test_splits_may_be_absent(dataset_folder: Path) -> None:
    (dataset_folder / "qrels" / "dev.tsv").unlink()
    assert set(load_dataset(dataset_folder).qrels) == {"train", "test"}
    for file in (dataset_folder / "qrels").iterdir():
        file.unlink()
    (dataset_folder / "qrels").rmdir()
    assert load_dataset(dataset_folder).qrels == {}


@pytest.mark.parametrize(
    ("text", "expected"), [('{"queries_are_documents": true}', True), ('{"queries_are_documents": false}', False), ("{}", False)]
)
def test_queries_may_be_documents(dataset_folder: Path, text: str, expected: bool) -> None:
    (dataset_folder / "dataset.json").write_text(text)
    assert load_dataset(dataset_folder).queries_are_documents is expected


def test_labels_without_vectors_are_left_out_when_asked(dataset_folder: Path, collection: Dataset) -> None:
    file = dataset_folder / "qrels" / "test.tsv"
    file.write_text(file.read_text() + "stranger\td0\t1\n" + f"{collection.queries.ids[0]}\tlost\t1\n")
    assert same(load_dataset(dataset_folder, skip_unknown=True), collection)


def test_what_the_encoder_was_is_kept_and_goes_into_the_model(dataset_folder: Path, tmp_path: Path) -> None:
    meta = {"encoder": "some/model", "fingerprint": "abc", "prompts": {"query": "q: ", "document": ""}, "dimensions": 64}
    (dataset_folder / "embeddings" / "tiny" / "meta.json").write_text(json.dumps(meta))
    data = load_dataset(dataset_folder)
    expected = {"encoder": "some/model", "fingerprint": "abc", "prompts": {"query": "q: ", "document": ""}}
    assert data.encoding == expected
    AdaWidth.fit(data, recipe="pca").save(tmp_path / "m")
    assert AdaWidth.load(tmp_path / "m").record.encoding == expected


def test_documents_alone_are_a_dataset_that_can_be_fitted(dataset_folder: Path) -> None:
    for name in ("queries.npy", "queries.ids"):
        (dataset_folder / "embeddings" / "tiny" / name).unlink()
    with pytest.raises(DataError, match="expected one file queries"):  # there are labels, so there should be queries
        load_dataset(dataset_folder)
    shutil.rmtree(dataset_folder / "qrels")
    data = load_dataset(dataset_folder)
    assert (len(data.documents), len(data.queries)) == (480, 0)
    model = AdaWidth.fit(data)
    assert (model.record.chosen, model.labelled) == ("pca", False)
    with pytest.raises(DataError, match="no labels for the train split"):
        AdaWidth.fit(data, labels=True)
