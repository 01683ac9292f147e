"""The index commands as a user types them, from a model and a dataset folder to answers."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from adawidth import AdaWidth, open_index
from adawidth.cli.app import app
from adawidth.data import Dataset, Vectors, unit
from adawidth.errors import ArtifactError, OptionError
from adawidth.formats import write_vectors
from adawidth.index import IndexFolder
from adawidth.index.store import lock
from adawidth.index.store.manifest import Manifest
from adawidth.index.view import View
from adawidth.record import TaskRecord
from adawidth.rotation import QueryMap
from adawidth.tasks import TaskMap


def adawidth(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_object(result: Result) -> dict:
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca")


@pytest.fixture(scope="module")
def model_folder(model: AdaWidth, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny.model"
    model.save(folder)
    return folder


@pytest.fixture
def described(dataset_folder: Path, collection: Dataset) -> Path:
    """The dataset folder with texts, the last ones first, as a file may have them."""
    entries = [
        {"_id": name, "title": f"Title {name}", "text": f"Text {name}", "metadata": {"part": row % 4}, "lang": "en" if row % 2 else "de"}
        for row, name in enumerate(collection.documents.ids)
    ]
    (dataset_folder / "corpus.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in reversed(entries)))
    return dataset_folder


@pytest.fixture
def index_folder(described: Path, model_folder: Path, tmp_path: Path) -> Path:
    assert adawidth("index", model_folder, described, "--out", tmp_path / "tiny.index").exit_code == 0
    return tmp_path / "tiny.index"


@pytest.fixture
def query_file(collection: Dataset, tmp_path: Path) -> Path:
    write_vectors(tmp_path / "q.npy", collection.queries_of("test"))
    return tmp_path / "q.npy"


def test_index_then_search(index_folder: Path, query_file: Path, collection: Dataset, model: AdaWidth) -> None:
    result = one_object(adawidth("search", index_folder, "--vectors", query_file, "-k", "5", "--json"))
    expected = model.index(collection.documents).search(collection.queries_of("test"), 5)
    assert [entry["query"] for entry in result["results"]] == list(collection.queries_of("test").ids)
    same = [[hit["id"] for hit in entry["hits"]] == ids for entry, ids in zip(result["results"], expected.ids, strict=True)]
    assert np.mean(same) > 0.9  # rounding to float16 swaps a few
    first = result["results"][0]
    assert set(first) == {"query", "mean_width", "hits"}
    assert set(first["hits"][0]) == {"id", "score", "title", "text", "metadata"}
    assert first["hits"][0]["title"] == f"Title {first['hits'][0]['id']}"
    assert 0 < first["mean_width"] <= 64

    shown = adawidth("search", index_folder, "--vectors", query_file, "--width", "full", "-k", "2", "--threads", "2").stdout
    assert "mean width of 64.0" in shown
    assert "Title d" in shown
    for options in (("--budget", "40"), ("--quality", "0.9"), ("--policy", "router"), ("--policy", "certify"), ("--width", "48")):
        assert adawidth("search", index_folder, "--vectors", query_file, *options).exit_code == 0


def test_a_filter_restricts_to_what_meets_it(index_folder: Path, query_file: Path, collection: Dataset, model: AdaWidth) -> None:
    result = one_object(adawidth("search", index_folder, "--vectors", query_file, "--filter", "lang = 'en' AND part = 3", "--json"))
    allowed = [row for row in range(480) if row % 4 == 3]
    expected = model.index(collection.documents.select(allowed)).search(collection.queries_of("test"), 10)
    found = [[hit["id"] for hit in entry["hits"]] for entry in result["results"]]
    assert np.mean([a == b for a, b in zip(found, expected.ids, strict=True)]) > 0.9
    assert {int(name[1:]) % 4 for row in found for name in row} == {3}
    none = one_object(adawidth("search", index_folder, "--vectors", query_file, "--filter", "part > 9", "--json"))
    assert none["results"][0]["hits"] == []
    refused = adawidth("search", index_folder, "--vectors", query_file, "--filter", "lang = en")
    assert refused.exit_code == 1
    assert "expected a number, a 'string', true or false at character 8" in refused.stderr


def test_the_life_of_an_index(index_folder: Path, collection: Dataset, tmp_path: Path) -> None:
    new = Vectors.of(np.asarray(collection.documents.values[:6]) + 0.01, [f"new{i}" for i in range(6)])
    write_vectors(tmp_path / "new.npy", new)
    (tmp_path / "new.jsonl").write_text('{"_id": "new1", "title": "A new one", "year": 2024}\n')
    assert one_object(adawidth("add", index_folder, tmp_path / "new.npy", "--json")) == {
        "index": str(index_folder),
        "added": 6,
        "replaced": 0,
        "storage": "flat",
        "documents": 486,
    }
    again = adawidth("add", index_folder, tmp_path / "new.npy")
    assert again.exit_code == 1
    assert "id 'new0' is in the index already: use update" in again.stderr
    updated = one_object(adawidth("update", index_folder, tmp_path / "new.npy", "--json"))
    assert (updated["added"], updated["replaced"], updated["documents"]) == (0, 6, 486)
    with IndexFolder(index_folder) as index:
        assert index.documents(["new1"])[0].title == "A new one"
        assert index.documents(["new1"])[0].metadata == {"year": 2024}

    (tmp_path / "some.ids").write_text("new0\nd1\n")
    removed = one_object(adawidth("remove", index_folder, "d0", "--ids", tmp_path / "some.ids", "--json"))
    assert (removed["removed"], removed["documents"]) == (3, 483)
    assert "there is no document 'd0'" in adawidth("remove", index_folder, "d2", "d0").stderr
    assert adawidth("remove", index_folder).exit_code == 1

    assert adawidth("snapshot", index_folder, "--out", tmp_path / "copy").exit_code == 0
    assert "exists: choose another" in adawidth("snapshot", index_folder, "--out", tmp_path / "copy").stderr
    assert one_object(adawidth("compact", index_folder, "--json"))["compacted"] is True
    assert "nothing to compact" in adawidth("compact", index_folder).stdout
    assert len(IndexFolder(tmp_path / "copy")) == len(IndexFolder(index_folder)) == 483

    facts = one_object(adawidth("info", index_folder, "--verify", "--json"))
    assert (facts["kind"], facts["documents"], facts["removed"], len(facts["segments"])) == ("index", 483, 0, 1)
    assert "segment" in adawidth("info", index_folder).stdout


def test_repair(index_folder: Path) -> None:
    assert "nothing is damaged" in adawidth("repair", index_folder).stdout
    file = next(index_folder.glob("*.segment"))
    data = bytearray(file.read_bytes())
    data[64 + 2 * 64 * 10] ^= 1  # row 10
    file.write_bytes(data)
    refused = adawidth("info", index_folder, "--verify")
    assert refused.exit_code == 1
    assert f"{file.name}: damaged: rows 8 to 15" in refused.stderr
    expected = {"segments": [file.name], "saved": 472, "lost": [f"d{i}" for i in range(8, 16)], "aside": [file.name]}
    planned = one_object(adawidth("repair", index_folder, "--dry-run", "--json"))
    assert planned == {"index": str(index_folder), "dry_run": True, **expected}
    assert "472 documents would be saved, 8 would be lost" in adawidth("repair", index_folder, "--dry-run").stdout
    assert adawidth("info", index_folder, "--verify").exit_code == 1
    assert one_object(adawidth("repair", index_folder, "--json")) == {"index": str(index_folder), "dry_run": False, **expected}
    assert (index_folder / "aside" / file.name).read_bytes() == data
    assert adawidth("info", index_folder, "--verify").exit_code == 0


def test_add_from_parquet_streams_columns_as_metadata(index_folder: Path, collection: Dataset, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    values = collection.documents.all()[:7]
    columns = {
        "id": [f"p{i}" for i in range(7)],
        "vector": list(values),
        "title": [f"T{i}" for i in range(7)],
        "text": [None] * 7,
        "year": [2000 + i if i else None for i in range(7)],
    }
    parquet.write_table(arrow.table(columns), tmp_path / "more.parquet")
    assert one_object(adawidth("add", index_folder, tmp_path / "more.parquet", "--json"))["added"] == 7
    with IndexFolder(index_folder) as index:
        assert [(d.title, d.text, d.metadata) for d in index.documents(["p0", "p3"])] == [("T0", "", {}), ("T3", "", {"year": 2003})]
        np.testing.assert_allclose(index.vectors(["p3"]), index.vectors(["d3"]), atol=1e-4)
    columns["vector"][4] = values[4][:40]
    parquet.write_table(arrow.table(columns), tmp_path / "uneven.parquet")
    assert "row 4 is 40 wide, row 0 64" in adawidth("update", index_folder, tmp_path / "uneven.parquet").stderr
    parquet.write_table(arrow.table({"a": [1]}), tmp_path / "none.parquet")
    assert "expected a column, one of text" in adawidth("add", index_folder, tmp_path / "none.parquet").stderr


def test_another_model_of_the_same_rotation(
    index_folder: Path, query_file: Path, model: AdaWidth, collection: Dataset, tmp_path: Path
) -> None:
    record = TaskRecord(chosen="identity", target_width=64)
    task = TaskMap(QueryMap.identity(model.rotation), model.policies, record)  # what refit makes, without the learning
    replace(model, tasks={"claims": task}).save(tmp_path / "refitted.model")
    arguments = ("search", index_folder, "--vectors", query_file, "--model", tmp_path / "refitted.model")
    assert adawidth(*arguments, "--task", "claims").exit_code == 0
    assert "there is no task 'claims'" in adawidth("search", index_folder, "--vectors", query_file, "--task", "claims").stderr
    AdaWidth.fit(collection, recipe="kyfan").save(tmp_path / "other.model")
    refused = adawidth("search", index_folder, "--vectors", query_file, "--model", tmp_path / "other.model")
    assert refused.exit_code == 1
    assert f"{index_folder}: its documents are under the rotation" in refused.stderr


def test_the_folder_stands_alone(index_folder: Path, model_folder: Path, query_file: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    index_folder.rename(moved)
    assert adawidth("search", moved, "--vectors", query_file).exit_code == 0


def test_keep_and_storage(described: Path, model_folder: Path, query_file: Path, model: AdaWidth, tmp_path: Path) -> None:
    target = model.policies.taper.target
    for storage in ("flat", "int8", "pq4", "ivf", "graph"):
        out = tmp_path / f"{storage}.index"
        made = one_object(adawidth("index", model_folder, described, "--out", out, "--storage", storage, "--keep", target, "--json"))
        assert made["width"] == target
        assert [segment["storage"] for segment in made["segments"]] == [storage]
        assert adawidth("search", out, "--vectors", query_file, "--width", "full").exit_code == 0
        assert adawidth("info", out, "--verify").exit_code == 0
    assert adawidth("index", model_folder, described, "--out", tmp_path / "x", "--storage", "hnsw").exit_code == 2
    refused = adawidth("index", model_folder, described, "--out", tmp_path / "x", "--keep", 65)
    assert "keep 65 is not a whole number between 1 and the encoder width 64" in refused.stderr
    assert not (tmp_path / "x").exists()
    cut = adawidth("index", model_folder, described, "--out", tmp_path / "x", "--keep", target - 1)
    assert cut.exit_code == 0
    assert f"{target - 1} coordinates are kept of the {target} that searches read to" in cut.stderr


def test_an_existing_index_is_replaced_only_with_force(described: Path, model_folder: Path, index_folder: Path) -> None:
    refused = adawidth("index", model_folder, described, "--out", index_folder)
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    with IndexFolder(index_folder) as reader:
        assert adawidth("index", model_folder, described, "--out", index_folder, "--force").exit_code == 0
        assert len(reader.view.search(np.ones((1, 64), np.float32), 32, 5).candidates[0]) == 5


def test_an_index_that_is_written_to_or_read_is_not_replaced(
    described: Path, model_folder: Path, index_folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.index"
    assert adawidth("snapshot", index_folder, "--out", copy).exit_code == 0
    with lock.held(copy):
        for command in (("snapshot", index_folder), ("index", model_folder, described)):
            refused = adawidth(*command, "--out", copy, "--force")
            assert refused.exit_code == 1
            assert f"{copy}: process {os.getpid()} is writing to it" in refused.stderr
    refused = adawidth("snapshot", index_folder, "--out", index_folder, "--force")
    assert f"{index_folder}: not replaced, as {index_folder} is read from it" in refused.stderr
    with IndexFolder(index_folder) as index, pytest.raises(OptionError, match="is read from it"):
        index.snapshot(index_folder, force=True)
    for path in (copy, index_folder):
        assert adawidth("info", path, "--verify").exit_code == 0
    assert adawidth("snapshot", index_folder, "--out", copy, "--force").exit_code == 0


def test_labels_and_queries_do_not_matter_to_documents(described: Path, model_folder: Path, tmp_path: Path) -> None:
    (described / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nstranger\tnowhere\t1\n")
    (described / "embeddings" / "tiny" / "queries.npy").unlink()
    assert adawidth("index", model_folder, described, "--out", tmp_path / "x.index").exit_code == 0
    assert adawidth("update", tmp_path / "x.index", described).exit_code == 0


def test_documents_of_another_width_give_one_line(index_folder: Path, tmp_path: Path) -> None:
    write_vectors(tmp_path / "narrow.npy", Vectors(np.full((3, 48), 2, np.float32), ["a", "b", "c"]))
    refused = adawidth("add", index_folder, tmp_path / "narrow.npy")
    words = "vectors are 48 wide, the model 64: use the encoder it was fitted for (--encoder)"
    assert refused.stderr == f"error: {tmp_path / 'narrow.npy'}: {words}\n"


@pytest.mark.parametrize("command", ["add", "update"])
def test_a_few_documents_are_written_with_the_manifest_opened_once(
    command: str, index_folder: Path, collection: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Counter[str] = Counter()

    def counted(name: str, init: Callable[..., None]) -> Callable[..., None]:
        def counting(self: object, *arguments: object, **options: object) -> None:
            opened[name] += 1
            init(self, *arguments, **options)

        return counting

    monkeypatch.setattr(Manifest, "__init__", counted("manifest", Manifest.__init__))
    monkeypatch.setattr(View, "__init__", counted("view", View.__init__))
    write_vectors(tmp_path / "few.npy", Vectors(collection.documents.all()[:3], ["a", "b", "c"]))
    written = one_object(adawidth(command, index_folder, tmp_path / "few.npy", "--json"))
    assert (written["added"], written["documents"]) == (3, len(collection.documents) + 3)
    assert opened == {"manifest": 1}


@pytest.mark.parametrize("command", ["add", "update"])
def test_another_encoders_vectors_are_refused_on_the_way_from_files(command: str, tmp_path: Path) -> None:
    rng, spectrum = np.random.default_rng(0), np.exp(-np.arange(64) / 8)
    rows = unit(rng.standard_normal((400, 64)) * spectrum)
    AdaWidth.fit(rows, recipe="pca").index(rows, tmp_path / "i", ids=[f"d{i}" for i in range(400)]).close()
    write_vectors(tmp_path / "other.npy", Vectors(unit(rng.standard_normal((50, 64))), [f"e{i}" for i in range(50)]))
    refused = adawidth(command, tmp_path / "i", tmp_path / "other.npy")
    assert refused.exit_code == 1
    assert "these are another encoder's vectors" in refused.stderr
    write_vectors(tmp_path / "own.npy", Vectors(unit(rng.standard_normal((50, 64)) * spectrum), [f"e{i}" for i in range(50)]))
    assert adawidth(command, tmp_path / "i", tmp_path / "own.npy").exit_code == 0


def test_a_dataset_of_another_encoder_is_refused_unless_it_is_asked_for(index_folder: Path, model_folder: Path, described: Path) -> None:
    (described / "embeddings" / "tiny").rename(described / "embeddings" / "other")
    out = index_folder.parent / "x.index"
    for arguments in (("update", index_folder, described), ("index", model_folder, described, "--out", out)):
        refused = adawidth(*arguments)
        assert refused.exit_code == 1
        assert "its vectors are of the encoder other, the model is for tiny: encode it with tiny, or give --encoder other" in refused.stderr
        assert adawidth(*arguments, "--encoder", "other").exit_code == 0


def test_adding_from_files_says_that_an_index_has_outgrown_its_model(index_folder: Path, collection: Dataset, tmp_path: Path) -> None:
    rows = np.concatenate([collection.documents.all()] * 2)
    write_vectors(tmp_path / "many.npy", Vectors(rows, [f"x{i}" for i in range(len(rows))]))
    added = adawidth("add", index_folder, tmp_path / "many.npy")
    assert added.exit_code == 0
    assert f"the index has {3 * len(collection.documents)}" in added.stderr


def test_from_python(model: AdaWidth, collection: Dataset, tmp_path: Path) -> None:
    index = model.index(collection.documents, path=tmp_path / "p.index")
    hits = index.search(collection.queries_of("test"), k=10)
    assert hits.mean_width <= 64
    assert all(isinstance(name, str) for name in hits.ids[0])
    index.add(collection.documents.all()[:2], ["a", "b"], titles=["A", "B"], metadata=[{"lang": "en"}, {"lang": "de"}])
    again = open_index(tmp_path / "p.index")
    assert again.search(collection.documents.all()[1], k=2, where="lang IS NOT NULL").ids == [["b", "a"]]
    threaded = again.search(collection.queries_of("test"), k=10, threads=3)
    assert threaded.ids == again.search(collection.queries_of("test"), k=10).ids
    again.remove(["a", "b"])
    shutil.rmtree(tmp_path / "p.index" / "model")
    with pytest.raises(ArtifactError, match="can't be read"):
        open_index(tmp_path / "p.index")


def test_opening_loads_the_compiled_code_that_the_first_search_needs(index_folder: Path) -> None:
    script = """
import sys, numpy as np
from adawidth import open_index
from adawidth.kernels import rescore
searcher = open_index(sys.argv[1])
opened = list(rescore.taper.overloads)
searcher.search(np.eye(1, searcher.model.width, dtype=np.float32))
print(len(opened), opened == list(rescore.taper.overloads))
"""
    done = subprocess.run([sys.executable, "-c", script, str(index_folder)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "True"]
