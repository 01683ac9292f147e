"""Work over shards in this process: the kernel, rotate with every format, resumed parts, moments and mining as on one machine."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, Dataset
from adawidth.batch import Rotate, find, fit, gather, margin_matrix, mine, rotate, second_moment, shards_of
from adawidth.batch import parts as parts_module
from adawidth.cli.app import app
from adawidth.errors import AdaWidthError, DataError, OptionError
from adawidth.formats import read_vectors, write_vectors
from adawidth.rotation import second_moment as moment_of_all
from adawidth.training.kyfan import margin_matrix as margins_of_all
from adawidth.training.ranking import nearest
from adawidth.training.task import Task

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca")


def table_of(collection: Dataset) -> Any:
    documents = collection.documents
    columns = {"id": list(documents.ids), "vector": list(documents.all()), "year": list(range(len(documents)))}
    return pyarrow.table(columns)


@pytest.fixture
def folder(collection: Dataset, tmp_path: Path) -> Path:
    """480 documents in three Parquet files with row groups of 50."""
    place = tmp_path / "documents"
    place.mkdir()
    table = table_of(collection)
    for number, start in enumerate(range(0, 480, 160)):
        parquet.write_table(table.slice(start, 160), place / f"{number}.parquet", row_group_size=50)
    return place


def test_the_kernel_gives_what_the_model_does_and_keeps_other_columns(collection: Dataset, model: AdaWidth) -> None:
    table = table_of(collection)
    made = pickle.loads(pickle.dumps(Rotate(model, width=16)))(table)
    assert made.column_names == ["id", "vector", "year"]
    assert made["year"].to_pylist() == list(range(480))
    assert np.abs(np.array(made["vector"].to_pylist()) - model.rotate(collection.documents, 16)).max() < 1e-6
    batch = Rotate(model, width=16)(table.to_batches()[0].slice(7, 5))
    assert isinstance(batch, pyarrow.RecordBatch)
    assert np.abs(np.array(batch["vector"].to_pylist()) - model.rotate(collection.documents, 16)[7:12]).max() < 1e-6
    assert Rotate(model, width=16)(table.slice(0, 0)).num_rows == 0


def test_a_bad_row_is_named(collection: Dataset, model: AdaWidth) -> None:
    values = collection.documents.all().copy()
    values[3, 5] = np.nan
    with pytest.raises(DataError, match=r"here from row 1,000 on: row 3 .*NaN"):
        Rotate(model)(pyarrow.table({"vector": list(values)}), "here", 1000)
    with pytest.raises(DataError, match="row 2 has no vector"):
        Rotate(model)(pyarrow.table({"vector": [[1.0] * 64, [1.0] * 64, None]}))
    with pytest.raises(DataError, match="8 wide, the model 64"):
        Rotate(model)(pyarrow.table({"vector": [[1.0] * 8]}))
    with pytest.raises(OptionError, match="width 65 is not between 1 and the encoder width 64"):
        Rotate(model, width=65)


@pytest.mark.parametrize("into", ["npy", "npz", "safetensors", "parquet"])
@pytest.mark.parametrize("source", ["npy", "npz", "safetensors", "parquet", "folder"])
def test_every_format_becomes_every_other(
    collection: Dataset, model: AdaWidth, folder: Path, tmp_path: Path, source: str, into: str
) -> None:
    place = folder if source == "folder" else tmp_path / f"in.{source}"
    if source != "folder":
        write_vectors(place, collection.documents)
    out = tmp_path / f"out.{into}"
    made = rotate(model, str(place), str(out), width=16)
    assert (made["rows"], made["width"]) == (480, 16)
    found = read_vectors(out)
    assert list(found.ids) == list(collection.documents.ids)
    assert np.abs(found.values - model.rotate(collection.documents, 16)).max() < 1e-6
    with pytest.raises(OptionError, match="exists"):
        rotate(model, str(place), str(out), width=16)


@pytest.mark.slow
def test_queries_pass_through_the_query_map(collection: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    model = AdaWidth.fit(collection, recipe="pca", query_map=True)
    write_vectors(tmp_path / "q.npy", collection.queries)
    rotate(model, str(tmp_path / "q.npy"), str(tmp_path / "mapped.npy"), queries=True)
    assert np.abs(np.load(tmp_path / "mapped.npy") - model.rotate_queries(collection.queries)).max() < 1e-6


class Stops:
    """A kernel that fails behind row 250, and counts what it is given."""

    def __init__(self, kernel: Rotate, broken: bool) -> None:
        self.kernel, self.broken, self.rows = kernel, broken, 0

    def __call__(self, table: Any, place: str = "table", start: int = 0) -> Any:
        if self.broken and start >= 250:
            raise KeyboardInterrupt
        self.rows += table.num_rows
        return self.kernel(table, place, start)

    def facts(self) -> dict[str, Any]:
        return self.kernel.facts()


def test_parts_appear_whole_and_a_stopped_run_goes_on(collection: Dataset, model: AdaWidth, folder: Path, tmp_path: Path) -> None:
    shards, out = shards_of(str(folder), size=100), tmp_path / "rotated"
    assert [(shard.start, shard.rows) for shard in shards] == [(0, 100), (100, 110), (210, 100), (310, 110), (420, 60)]
    with pytest.raises(KeyboardInterrupt):
        parts_module.write_parts(Stops(Rotate(model, 16), True), shards, str(out))
    assert not out.exists()
    with pytest.raises(OptionError, match="begun by another call"):
        parts_module.write_parts(Rotate(model, 32), shards, str(out))
    again = Stops(Rotate(model, 16), False)
    parts_module.write_parts(again, shards, str(out))
    assert 0 < again.rows < 480
    table = parquet.read_table(out)
    assert table["id"].to_pylist() == list(collection.documents.ids)
    assert np.abs(np.array(table["vector"].to_pylist()) - model.rotate(collection.documents, 16)).max() < 1e-6
    assert not (tmp_path / "rotated.partial").exists()
    with pytest.raises(OptionError, match="exists"):
        parts_module.write_parts(Rotate(model, 32), shards, str(out))
    parts_module.write_parts(Rotate(model, 32), shards, str(out), force=True)
    assert parquet.read_schema(next(out.glob("*.parquet"))).field("vector").type.list_size == 32


def test_a_run_does_not_go_on_over_another_input(collection: Dataset, model: AdaWidth, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "rotated"
    with pytest.raises(KeyboardInterrupt):
        parts_module.write_parts(Stops(Rotate(model, 16), True), shards_of(str(folder), size=100), str(out))
    others = table_of(collection).slice(160, 160)
    parquet.write_table(others, folder / "0.parquet", row_group_size=50)
    os.utime(folder / "0.parquet", ns=(1, 1))
    with pytest.raises(OptionError, match="begun by another call"):
        parts_module.write_parts(Rotate(model, 16), shards_of(str(folder), size=100), str(out))


def test_a_folder_of_others_is_never_replaced(model: AdaWidth, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(OptionError, match="did not write"):
        rotate(model, str(folder), str(tmp_path / "mine"), force=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"


def test_lance_in_and_out(collection: Dataset, model: AdaWidth, tmp_path: Path) -> None:
    lance = pytest.importorskip("lance", reason="needs pylance: make test-engines installs it")
    lance.write_dataset(table_of(collection), str(tmp_path / "in.lance"), max_rows_per_file=150)
    rotate(model, str(tmp_path / "in.lance"), str(tmp_path / "out.lance"), width=16)
    table = lance.dataset(str(tmp_path / "out.lance")).to_table()
    assert table["id"].to_pylist() == list(collection.documents.ids)
    assert np.abs(np.array(table["vector"].to_pylist()) - model.rotate(collection.documents, 16)).max() < 1e-6
    with pytest.raises(OptionError, match="exists"):
        rotate(model, str(tmp_path / "in.lance"), str(tmp_path / "out.lance"), width=16)


@pytest.mark.parametrize("sample", [100_000, 130])
def test_moments_by_shard_are_those_of_all_documents(collection: Dataset, folder: Path, sample: int) -> None:
    by_shard = second_moment(shards_of(str(folder), size=100), sample, seed=3)
    whole = moment_of_all(collection.documents, sample, seed=3)
    assert np.abs(by_shard - whole).max() < 1e-6 * np.abs(whole).max()


@pytest.mark.parametrize("labels", [True, False])
def test_margins_by_shard_are_those_of_all_documents(collection: Dataset, folder: Path, labels: bool) -> None:
    learning = collection.learning(labels=labels)
    by_shard = margin_matrix(shards_of(str(folder), size=100), learning.train, seed=3)
    whole = margins_of_all(Task.of(learning), seed=3)
    assert np.abs(by_shard - whole).max() < 1e-6 * np.abs(whole).max()


@pytest.mark.parametrize("recipe", ["pca", "kyfan", "identity"])
def test_a_fit_by_shards_ranks_as_one_of_all_documents(collection: Dataset, folder: Path, recipe: str) -> None:
    by_shard, whole = fit(collection, shards_of(str(folder), size=100), recipe=recipe), AdaWidth.fit(collection, recipe=recipe)
    assert by_shard.rotation.kind == whole.rotation.kind
    assert np.abs(np.abs(by_shard.rotation.matrix) - np.abs(whole.rotation.matrix)).max() < 1e-3
    assert by_shard.seen == (whole.seen if recipe == "kyfan" else frozenset())
    assert by_shard.record.labels == (recipe == "kyfan")


def test_mining_by_shard_is_that_of_all_documents(collection: Dataset, folder: Path) -> None:
    queries, documents = collection.queries.all(), collection.documents.all()
    own = np.where(np.arange(len(queries)) % 3, -1, np.arange(len(queries)))
    rows, scores = mine(shards_of(str(folder), size=100), queries, 50, own)
    assert np.array_equal(rows, nearest(queries, documents, 50, own))
    assert np.abs(scores - np.einsum("qkd,qd->qk", documents[rows], queries)).max() < 1e-6


def test_rows_and_ids_are_found_in_their_shards(collection: Dataset, folder: Path) -> None:
    shards, wanted = shards_of(str(folder), size=100), np.array([0, 99, 100, 209, 210, 479])
    vectors, ids = gather(shards, wanted)
    assert ids == [collection.documents.ids[row] for row in wanted]
    assert np.array_equal(vectors, collection.documents.read(wanted))
    assert find(shards, ["d3", "d479", "nowhere"]) == {"d3": 3, "d479": 479}


def test_the_command_and_its_errors(collection: Dataset, model: AdaWidth, folder: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "m")

    def run(*arguments: object, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["rotate", str(tmp_path / "m"), *map(str, arguments)])
        assert done.exit_code == code, done.output
        return done.stdout if not code else done.stderr

    made = json.loads(run(folder, "--out", tmp_path / "out", "--width", 16, "--json"))
    assert (made["rows"], made["width"], made["queries"]) == (480, 16, False)
    assert "there is no such file or folder" in run(tmp_path / "none", "--out", tmp_path / "x", code=1)
    assert "one file, which workers can't write together" in run(folder, "--out", tmp_path / "x.npy", "--on", "local", code=1)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 nothing PAR1")
    said = run(damaged, "--out", tmp_path / "x", code=1)
    assert "damaged.parquet" in said
    assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_one_error_for_a_place_without_rows(model: AdaWidth, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(AdaWidthError, match="there are no rows"):
        rotate(model, str(tmp_path / "empty"), str(tmp_path / "out"))
