"""Work over shards on a real Ray: the same results as in one process, a killed worker survived, and a cluster of two nodes."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adawidth import AdaWidth, Dataset, load_dataset
from adawidth.batch import Rotate, encode, evaluate, fit, mine, push, rotate, second_moment, shards_of
from adawidth.batch.parts import write_parts
from adawidth.cli.app import app
from adawidth.data import Vectors
from adawidth.encoders import encode_dataset, load_encoder
from adawidth.errors import DataError, OptionError
from adawidth.evaluation import evaluate as evaluate_here
from adawidth.model.collections import connect

pytestmark = pytest.mark.engines
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ray = pytest.importorskip("ray", reason="needs Ray: make test-engines installs it")
HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One Ray for the tests of this file, with two workers and a token of its own."""
    before = {name: os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_USAGE_STATS_ENABLED", "PYTHONPATH")}
    os.environ.update(RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=os.pathsep.join(sys.path))
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error", object_store_memory=10**8)
    yield
    ray.shutdown()
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def model(collection: Dataset) -> AdaWidth:
    return AdaWidth.fit(collection, recipe="pca")


@pytest.fixture
def folder(collection: Dataset, tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    documents = collection.documents
    columns = {"id": list(documents.ids), "vector": list(documents.all()), "title": [f"number {row}" for row in range(480)]}
    parquet.write_table(pyarrow.table(columns), place / "0.parquet", row_group_size=50)
    return place


class Dies:
    """A kernel whose process is killed, once, at the row 200."""

    def __init__(self, kernel: Rotate, scar: Path) -> None:
        self.kernel, self.scar = kernel, scar

    def __call__(self, table: Any, place: str = "table", start: int = 0) -> Any:
        if start == 200 and not self.scar.exists():
            self.scar.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.kernel(table, place, start)

    def facts(self) -> dict[str, Any]:
        return self.kernel.facts()


def test_a_killed_worker_is_survived(collection: Dataset, model: AdaWidth, folder: Path, tmp_path: Path) -> None:
    shards, out = shards_of(str(folder), size=100), tmp_path / "rotated"
    write_parts(Dies(Rotate(model, 16), tmp_path / "scar"), shards, str(out), on="local")
    assert (tmp_path / "scar").exists()
    table = parquet.read_table(out)
    assert table["id"].to_pylist() == list(collection.documents.ids)
    assert np.abs(np.array(table["vector"].to_pylist()) - model.rotate(collection.documents, 16)).max() < 1e-6
    assert sorted(path.name for path in out.iterdir()) == ["_adawidth.json", *(f"part-{number:06d}.parquet" for number in range(5))]


def test_moments_and_mining_are_those_of_one_process(collection: Dataset, folder: Path) -> None:
    shards, queries = shards_of(str(folder), size=100), collection.queries.all()[:20]
    whole = second_moment(shards)
    assert np.abs(second_moment(shards, on="local") - whole).max() < 1e-6 * np.abs(whole).max()
    here, there = mine(shards, queries, 30), mine(shards, queries, 30, on="local")
    assert np.array_equal(here[0], there[0])
    assert np.abs(here[1] - there[1]).max() < 1e-6


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, collection: Dataset) -> Path:
    """The collection as a folder with vectors, labels and texts."""
    folder = tmp_path_factory.mktemp("dataset") / "made"
    home = folder / "embeddings" / "made"
    home.mkdir(parents=True)
    (folder / "qrels").mkdir()
    for side, vectors in (("corpus", collection.documents), ("queries", collection.queries)):
        np.save(home / f"{side}.npy", vectors.all())
        (home / f"{side}.ids").write_text("".join(f"{name}\n" for name in vectors.ids))
        lines = [json.dumps({"_id": name, "title": "", "text": f"words of {name}, the {row}th"}) for row, name in enumerate(vectors.ids)]
        (folder / f"{side}.jsonl").write_text("\n".join(lines) + "\n")
    for split, rows in (("train", range(0, 20)), ("dev", range(20, 30)), ("test", range(30, 40))):
        pairs = [f"{collection.queries.ids[row]}\t{collection.documents.ids[row]}\t1" for row in rows]
        (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *pairs]) + "\n")
    return folder


def test_an_evaluation_by_shards_is_that_of_one_machine(dataset: Path, model: AdaWidth) -> None:
    data = load_dataset(dataset)
    shards = shards_of(data.documents.name, size=100)
    assert len(shards) == 5
    there = evaluate(model, data, shards, widths=[16, 32, "full"], on="local")
    here = evaluate_here(model, data, widths=[16, 32, "full"])
    assert there.to_json() == here.to_json()
    for width in (16, 32, "full", "frozen"):
        assert there[width].hits.ids == here[width].hits.ids
        assert np.abs(there[width].hits.scores - here[width].hits.scores).max() < 1e-5
    with pytest.raises(OptionError, match="there is no width 'auto'"):
        evaluate(model, data, shards, widths=["auto"], on="local")


def test_a_fit_by_shards_has_the_rotation_of_one_machine(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset(dataset)
    shards = shards_of(data.documents.name, size=100)
    here, there = AdaWidth.fit(data, recipe="pca", labels=False), fit(data, shards, on="local")
    assert np.abs(np.abs(there.rotation.matrix) - np.abs(here.rotation.matrix)).max() < 1e-4
    assert there.policies.taper.target == here.policies.taper.target
    hits = there.index(data.documents).search(data.documents.read(slice(0, 5)), k=1)
    assert [answer[0].id for answer in hits] == list(data.documents.ids[:5])
    monkeypatch.setattr(sys.modules["adawidth.batch.fit"], "room", lambda width: 200)
    some = fit(data, shards, on="local")
    assert some.record.pool == 200
    assert np.array_equal(some.rotation.matrix, there.rotation.matrix)
    with pytest.raises(OptionError, match="the recipe paper learns from documents in memory"):
        fit(data, shards, recipe="paper", on="local")


def test_workers_encode_what_one_process_would(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wordllama", reason="needs an encoder that comes as a package")
    encode(dataset, "wordllama", "there", on="local")
    encode_dataset(dataset, load_encoder("wordllama"), "here")
    for side in ("corpus", "queries"):
        pair = [(dataset / "embeddings" / name / f"{side}.npy").read_bytes() for name in ("here", "there")]
        assert pair[0] == pair[1]
    assert not list((dataset / "embeddings").glob(".*"))


def test_the_commands_on_ray(dataset: Path, tmp_path: Path) -> None:
    run = CliRunner()
    made = run.invoke(app, ["fit", str(dataset), "--encoder", "made", "--out", str(tmp_path / "model"), "--on", "local"])
    assert made.exit_code == 0, made.output
    said = run.invoke(app, ["evaluate", str(tmp_path / "model"), str(dataset), "--widths", "32", "--on", "local", "--json"])
    assert said.exit_code == 0, said.output
    assert [entry["width"] for entry in json.loads(said.stdout)["results"]] == [32, "frozen"]
    wrong = run.invoke(app, ["evaluate", str(tmp_path / "model"), str(dataset), "--policy", "taper", "--on", "local"])
    assert wrong.exit_code == 1
    assert "--on goes with" in wrong.output


def test_bad_rows_are_named_through_ray(model: AdaWidth, tmp_path: Path) -> None:
    values = np.ones((20, 64), np.float32)
    values[7] = 0
    parquet.write_table(pyarrow.table({"id": list(map(str, range(20))), "vector": list(values)}), tmp_path / "bad.parquet")
    with pytest.raises(DataError, match=r"row 7 .* has only zeros"):
        rotate(model, str(tmp_path / "bad.parquet"), str(tmp_path / "out"), on="local")
    assert not (tmp_path / "out").exists()


def test_lance_is_committed_at_once(collection: Dataset, model: AdaWidth, folder: Path, tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    rotate(model, str(folder), str(tmp_path / "out.lance"), width=16, on="local")
    assert lance.dataset(str(tmp_path / "out.lance")).to_table()["id"].to_pylist() == list(collection.documents.ids)


def test_workers_push_their_shards(postgres: str, collection: Dataset, model: AdaWidth, folder: Path) -> None:
    shards = shards_of(str(folder), size=200)
    for _ in range(2):
        written = push(model, shards, postgres, "by_ray", on="local")
    assert (written.added, written.replaced, written.documents) == (0, 480, 480)
    with connect(postgres, "by_ray") as index:
        found = index.search(collection.documents.read(slice(0, 3)), k=1)
        assert [answer[0].id for answer in found] == ["d0", "d1", "d2"]
        assert found[0][0].title == "number 0"


def test_a_cluster_of_two_nodes_with_nothing_but_loopback(model: AdaWidth, collection: Dataset, folder: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("needs root, unshare and ip for a network namespace")
    model.save(tmp_path / "model")
    environment = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_TMPDIR": "/tmp"}
    command = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, str(HERE / "two_nodes.py")]
    done = subprocess.run(
        [*command, str(tmp_path / "model"), str(folder), str(tmp_path / "out")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=420,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    assert said["addresses"] == 1
    assert said["killed"]  # the first process of the client: the connection was tried again
    assert said["nodes_that_worked"] == 2
    table = parquet.read_table(tmp_path / "out")
    assert table["id"].to_pylist() == list(collection.documents.ids)
    expected = model.rotate(Vectors.of(collection.documents.all()), 16)
    assert np.abs(np.array(table["vector"].to_pylist()) - expected).max() < 1e-6
