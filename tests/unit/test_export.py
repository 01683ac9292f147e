"""Exports that need no optional package: arrays, faiss indexes, SQL as text; and what is refused."""

import json
from pathlib import Path

import faiss
import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, AdaWidthError
from adawidth.cli.app import app
from adawidth.data import Dataset, unit
from adawidth.errors import OptionError
from adawidth.integrations import TARGETS, export
from small_model import save_small_model, small_model


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca")


@pytest.fixture(scope="module")
def mapped(model: AdaWidth, collection: Dataset) -> AdaWidth:
    """With a query map that has a bias."""
    from dataclasses import replace

    from adawidth.rotation import QueryMap
    from adawidth.tasks import TaskMap

    rng = np.random.default_rng(3)
    change, bias = 0.1 * rng.standard_normal((model.width, model.width)), 0.05 * rng.standard_normal(model.width)
    return replace(model, tasks={"default": TaskMap(QueryMap.fold(model.rotation, change, bias), model.policies)})


def test_an_array_rotates_like_the_model(model: AdaWidth, collection: Dataset, tmp_path: Path) -> None:
    made = export(model, "npy", tmp_path / "r.npy", width=16)
    matrix = np.load(tmp_path / "r.npy")
    assert made["width"] == 16
    assert made["fingerprint"] == model.rotation.fingerprint
    documents = collection.documents.all()
    np.testing.assert_allclose(unit(documents @ matrix.T), model.rotate(documents, 16), atol=1e-6)


def test_the_side_of_queries_has_the_query_map_and_its_bias(mapped: AdaWidth, collection: Dataset, tmp_path: Path) -> None:
    export(mapped, "npy", tmp_path / "q.npz", width=16, queries=True)
    found = np.load(tmp_path / "q.npz")
    queries = collection.queries.all()
    np.testing.assert_allclose(unit(queries @ found["matrix"].T + found["bias"]), mapped.rotate_queries(queries, 16), atol=1e-6)
    export(mapped, "npy", tmp_path / "plain.npz", queries=True, task="none")
    np.testing.assert_array_equal(np.load(tmp_path / "plain.npz")["matrix"], mapped.rotation.matrix)
    with pytest.raises(OptionError, match=r"bias .*\.npz"):
        export(mapped, "npy", tmp_path / "q.npy", queries=True)


@pytest.mark.parametrize("factory", ["Flat", "HNSW16", "IVF8,Flat", "PQ8x4fs", "IVF4,PQ8x4fs,RFlat", "SQ8"])
def test_plain_faiss_opens_any_index_and_rotates_by_itself(model: AdaWidth, collection: Dataset, tmp_path: Path, factory: str) -> None:
    documents = collection.documents.all()
    made = export(model, "faiss", tmp_path / "i.faiss", factory=factory, width=32, vectors=3 * documents)
    index = faiss.read_index(str(tmp_path / "i.faiss"))
    assert (made["documents"], made["trained"]) == (len(documents), True)
    assert (index.d, index.ntotal) == (64, len(documents))
    found = index.search(documents, 10)[1]
    assert np.mean([row in near for row, near in enumerate(found)]) > 0.9
    if factory == "Flat":
        scores = index.search(collection.queries.all(), 5)[0]
        exact = model.rotate_queries(collection.queries, 32) @ model.rotate(documents, 32).T
        np.testing.assert_allclose(scores, -np.sort(-exact, axis=1)[:, :5], atol=1e-5)


def test_an_empty_faiss_index_is_trained_and_filled_later(model: AdaWidth, collection: Dataset, tmp_path: Path) -> None:
    export(model, "faiss", tmp_path / "i.faiss", factory="IVF8,Flat", width=32)
    index = faiss.read_index(str(tmp_path / "i.faiss"))
    assert not index.is_trained
    documents = collection.documents.all()
    index.train(documents)
    index.add(documents)
    assert index.search(documents[:1], 1)[1].tolist() == [[0]]


def test_sql_holds_the_whole_matrix(model: AdaWidth, tmp_path: Path) -> None:
    made = export(model, "sql", tmp_path / "f.sql", width=3, name="turn")
    text = (tmp_path / "f.sql").read_text()
    assert made["function"] == "turn"
    assert text.count('"[') == 3
    numbers = text.partition('"[')[2].partition("]")[0].split(",")
    np.testing.assert_array_equal(np.array(numbers, np.float32), model.rotation.matrix[0])


@pytest.mark.parametrize(
    ("to", "options", "said"),
    [
        ("torchscript", {}, "there is no target 'torchscript'; there are sentence-transformers, faiss, onnx, npy, sql"),
        ("npy", {"width": 65}, "width 65 is not a whole number between 1 and the encoder width 64"),
        ("npy", {"factory": "Flat"}, "npy takes no factory; it takes width, queries, task, force"),
        ("faiss", {"queries": True}, "faiss takes no queries"),
        ("faiss", {"factory": "Nothing7"}, "faiss makes no index of 'Nothing7' at width 64"),
        ("npy", {"task": "none"}, "task 'none' maps queries alone"),
        ("npy", {"queries": True, "task": "absent"}, "there is no task 'absent'"),
        ("sql", {"name": "Rotate; DROP"}, "can't name a function"),
        ("onnx", {"encoder": "minilm"}, "only with tokens"),
        ("sentence-transformers", {}, "not recorded which encoder made these vectors"),
    ],
)
def test_what_makes_no_sense_is_refused(model: AdaWidth, tmp_path: Path, to: str, options: dict, said: str) -> None:
    pytest.importorskip("sentence_transformers")
    with pytest.raises(AdaWidthError, match=said):
        export(model, to, tmp_path / "out.npy", **options)
    assert not list(tmp_path.iterdir())


def test_vectors_of_another_width_and_existing_files_are_refused(model: AdaWidth, tmp_path: Path) -> None:
    with pytest.raises(AdaWidthError, match="vectors are 8 wide, the model 64"):
        export(model, "faiss", tmp_path / "i.faiss", vectors=np.eye(8, dtype=np.float32))
    with pytest.raises(AdaWidthError, match=r"\.txt"):
        export(model, "npy", tmp_path / "r.txt")
    assert not list(tmp_path.iterdir())
    export(model, "npy", tmp_path / "r.npy")
    with pytest.raises(OptionError, match="exists"):
        export(model, "npy", tmp_path / "r.npy")
    export(model, "npy", tmp_path / "r.npy", width=2, force=True)
    assert np.load(tmp_path / "r.npy").shape == (2, 64)
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(OptionError, match="is a folder"):
        export(model, "npy", tmp_path / "folder.npy", force=True)


def test_the_command_says_what_it_wrote(tmp_path: Path) -> None:
    path = save_small_model(tmp_path / "m.model")
    arguments = ["export", str(path), "--to", "sql", "--out", str(tmp_path / "f.sql"), "--width", "8", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said == {
        "to": "sql", "path": str(tmp_path / "f.sql"), "encoder_width": 64, "width": 8,
        "fingerprint": small_model().rotation.fingerprint, "function": "adawidth_rotate",
    }  # fmt: skip
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 1
    assert "exists" in again.stderr
    wrong = CliRunner().invoke(app, ["export", str(path), "--to", "npy", "--out", str(tmp_path / "x.npy"), "--tokens"])
    assert wrong.exit_code == 1
    assert "npy takes no tokens" in wrong.stderr


def test_every_target_has_a_writer() -> None:
    from importlib import import_module

    for place in TARGETS.values():
        module, _, name = place.partition(":")
        assert callable(getattr(import_module(f"adawidth.integrations.export.{module}"), name))
