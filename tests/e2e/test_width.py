"""`adawidth width` as a user types it."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from adawidth.cli.app import app
from adawidth.data import Dataset, Vectors
from adawidth.formats import write_vectors


def width(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["width", *map(str, arguments)])


def test_the_answer_the_table_and_the_plan(dataset_folder: Path) -> None:
    done = width(dataset_folder, "--smallest", "60", "--quantile", "0.6")
    assert done.exit_code == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert "of 64 coordinates are enough for 60 % of the relevant documents to be in the top 10 of 480 documents (95 % interval" in first
    assert "law: " in done.stdout
    assert "k = 10" in done.stdout
    assert "100,000,000" in done.stdout
    assert "bytes per document" in done.stdout


def test_json_figure_and_a_width_the_data_can_not_tell(dataset_folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "plan"
    options = ("--documents", "100e6", "-k", "5", "--smallest", "60", "--quantile", "0.6", "--out", out, "--json")
    done = width(dataset_folder, *options)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("\n") == 1
    result = json.loads(done.stdout)
    assert {"a", "b", "c", "r2_mean_point"} <= result["law"].keys()
    assert {"largest_size", "chain"} <= result["held_out"].keys()
    answer = result["answer"]
    assert (answer["documents"], answer["k"], answer["width"], answer["interval"], answer["extrapolated"]) == (10**8, 5, None, None, True)
    assert answer["reason"]
    assert [one["documents"] for one in result["plan"]] == [10**6, 10**7, 10**8]
    assert json.loads((out / "width.json").read_text()) == result
    picture = (out / "width.svg").read_text()
    assert "encoder width 64" in picture
    assert "k = 10" in picture
    again = width(dataset_folder, *options)
    assert again.exit_code == 1
    assert "--force" in again.stderr
    assert width(dataset_folder, *options, "--force").exit_code == 0


def test_the_rotation_of_a_model(dataset_folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "tiny.model"
    assert CliRunner().invoke(app, ["fit", str(dataset_folder), "--out", str(model), "--recipe", "pca"]).exit_code == 0
    options = ("--smallest", "60", "--quantile", "0.6", "--json")
    turned = json.loads(width(dataset_folder, "--model", model, *options).stdout)
    frozen = json.loads(width(dataset_folder, *options).stdout)
    assert (turned["rotation"], frozen["rotation"]) == ("pca", "none")
    assert turned["answer"]["width"] < frozen["answer"]["width"]


def test_a_model_of_another_encoder(dataset_folder: Path, collection: Dataset, tmp_path: Path) -> None:
    model, other = tmp_path / "tiny.model", dataset_folder / "embeddings" / "narrow"
    assert CliRunner().invoke(app, ["fit", str(dataset_folder), "--out", str(model), "--recipe", "identity"]).exit_code == 0
    other.mkdir()
    for name, vectors in (("corpus", collection.documents), ("queries", collection.queries)):
        write_vectors(other / f"{name}.npy", Vectors(vectors.values[:, :48], vectors.ids))
    done = width(dataset_folder, "--encoder", "narrow", "--model", model)
    assert done.exit_code == 1
    assert "narrow/corpus.npy: vectors are 48 wide, the model 64: use the encoder it was fitted for (--encoder)\n" in done.stderr
    assert done.stderr.count("\n") == 1  # nothing on lengths


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "480 documents make 0 of the 3 corpus sizes"),
        (("--smallest", "60", "--quantile", "0.9999"), "--quantile"),
        (("--smallest", "60", "--quantile", "0"), "quantile 0.0 is not between 0 and 1"),
        (("--smallest", "60", "--split", "test"), "test queries are kept for testing"),
        (("--smallest", "10", "--encoder", "none"), "there is no encoder"),
    ],
)
def test_bad_input_is_one_line(dataset_folder: Path, options: tuple[str, ...], words: str) -> None:
    done = width(dataset_folder, *options)
    assert done.exit_code == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


def test_without_labels(dataset_folder: Path) -> None:
    shutil.rmtree(dataset_folder / "qrels")
    done = width(dataset_folder, "--smallest", "60")
    assert done.exit_code == 1
    assert "no labels" in done.stderr
