"""From a folder of text to a search prompt; what it prints can be repeated by hand."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from adawidth import open_index
from adawidth.cli.app import app
from adawidth.encoders.wordllama import WordLlama

SUBJECTS = ("river", "market", "engine", "garden", "winter", "bridge", "letter", "copper", "signal", "forest")


def adawidth(*arguments: str | Path, typed: str = "") -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=typed)


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my notes").mkdir()
    for subject in SUBJECTS:
        paragraphs = [f"Paragraph {n} tells what is known of the {subject}. " * 15 for n in range(5)]
        (tmp_path / "my notes" / f"{subject}.md").write_text(f"# The {subject}\n\n" + "\n\n".join(paragraphs))
    return Path("my notes")


def test_from_a_folder_to_answers(notes: Path) -> None:
    done = adawidth("quickstart", notes, "-k", "2", typed="something about winter\n\nold bridge\n:quit\nnever asked\n")
    assert done.exit_code == 0, done.stderr
    shown = done.stdout.split("Type a query, :help or :quit.\n")[1]
    answers = shown.strip().split(" coordinates\n")
    assert "The winter  (winter.md#" in answers[0].splitlines()[0]
    assert "The bridge  (bridge.md#" in answers[1].splitlines()[0]
    assert shown.count("read at a mean width of ") == 2
    assert "minilm" in done.stdout  # what a stronger encoder would bring


def shown(done: Result) -> list[str]:
    """What a run says before its prompt, without the steps."""
    assert done.exit_code == 0, done.stderr
    return [line for line in done.stdout.partition("Type a query")[0].splitlines() if line and not line.startswith("$ ")]


def test_run_again_only_what_changed_is_encoded(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert adawidth("quickstart", notes).exit_code == 0
    asked: list[str] = []
    encode = WordLlama.encode

    def noted(self: WordLlama, inputs: list[str], role: str) -> np.ndarray:
        asked.extend(inputs if role == "document" else [])
        return encode(self, inputs, role)

    monkeypatch.setattr(WordLlama, "encode", noted)
    same = adawidth("quickstart", notes, typed="garden")  # the end of the input ends it, too
    assert shown(same)[0] == "nothing has changed since the last time"
    assert "The garden" in same.stdout
    assert not asked

    (notes / "river.md").write_text("# The brook\n\nA small river.")
    (notes / "winter.md").unlink()
    (notes / "summer.md").write_text("# The summer\n\nWhat comes after spring.")
    changed = adawidth("quickstart", notes, "-k", "1", typed="brook\nafter spring\n")
    assert shown(changed)[0].startswith("added 2 texts, replaced 0, removed ")
    assert "$ adawidth update 'my notes.adawidth/index' 'my notes' --prune" in changed.stdout
    assert sorted(asked) == ["The brook A small river.", "The summer What comes after spring."]
    assert "The brook  (river.md)" in changed.stdout
    assert "The summer  (summer.md)" in changed.stdout
    with open_index("my notes.adawidth/index") as index:
        assert {str(name).partition("#")[0] for name in index} == {*(f"{one}.md" for one in SUBJECTS if one != "winter"), "summer.md"}


def test_a_failed_run_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = Path("shop.csv")
    table.write_text("id,text\n" + "".join(f"{n % 9},About a {subject}.\n" for n, subject in enumerate(SUBJECTS)))
    refused = adawidth("quickstart", table)
    assert refused.exit_code == 1
    assert refused.stderr == "error: shop.csv: id '0' stands twice: ids must be unique; choose another column of ids (--id-column)\n"
    assert not Path("shop.csv.adawidth").exists()
    table.write_text("id,text\n" + "".join(f"{n},About a {subject}.\n" for n, subject in enumerate(SUBJECTS)))
    with monkeypatch.context() as broken:
        broken.setattr(WordLlama, "encode", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert adawidth("quickstart", table).exit_code == 130
    table.write_text("id,text\n" + "".join(f"{n},About the {subject}.\n" for n, subject in enumerate(SUBJECTS)))
    assert "About the engine." in adawidth("quickstart", table, "-k", "1", typed="engine").stdout


def test_every_column_can_be_filtered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = Path("shop.csv")
    table.write_text("id,text,year,lang\n" + "".join(f"{n},About a {one}.,{2000 + n},en\n" for n, one in enumerate(SUBJECTS)))
    assert adawidth("quickstart", table).exit_code == 0
    index = Path("shop.csv.adawidth/index")
    done = adawidth("search", index, "--text", "winter", "--filter", "year >= 2008", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert {hit["id"]: hit["metadata"]["year"] for hit in result["hits"]} == {"8": 2008, "9": 2009}
    assert result["hits"][0]["text"].startswith("About a ")
    refused = adawidth("search", index, "--text", "winter", "--filter", "yaer >= 2008")
    assert refused.exit_code == 1
    assert "has a field 'yaer'; there are lang, year; did you mean 'year'?" in refused.stderr
    typed = ":help\n:k 1\n:filter yaer = 1\n:filter year = 2003\nwinter\n:filter\nwinter\n:nonsense\n"
    prompt = adawidth("search", index, "--interactive", typed=typed).stdout
    assert prompt.count("only documents that meet a filter") == 2  # :help, and what is no command
    assert "error: the filter: no document" in prompt
    assert prompt.index("About a garden.") < prompt.index("About a winter.")


def test_another_encoder_for_the_same_folder_is_refused(notes: Path) -> None:
    assert adawidth("quickstart", notes).exit_code == 0
    refused = adawidth("quickstart", notes, "--model", "minilm")
    assert refused.exit_code == 1
    assert "was made with wordllama, not with minilm: leave --model out" in refused.stderr
    inside = adawidth("quickstart", notes, "--out", notes / "out")
    assert "would be read as a part of it" in inside.stderr


def test_texts_are_added_to_an_index(notes: Path) -> None:
    assert adawidth("quickstart", notes).exit_code == 0
    index = Path("my notes.adawidth/index")
    Path("more").mkdir()
    Path("more/lamp.rst").write_text("Lamps\n=====\n\nA lamp gives light for reading.\n")
    done = adawidth("add", index, "more", "--json")
    assert json.loads(done.stdout) | {"index": ""} == {
        "index": "",
        "added": 1,
        "replaced": 0,
        "removed": 0,
        "unchanged": 0,
        "documents": 51,
    }
    assert "Lamps  (lamp.rst)" in adawidth("search", index, "--text", "light for reading", "-k", "1").stdout
    again = adawidth("add", index, "more")
    assert again.exit_code == 1
    assert "id 'lamp.rst' is in the index already: use update" in again.stderr
    assert "added 0 texts, replaced 0, removed 0, 1 as they were" in adawidth("update", index, "more").stdout
    np.save("vectors.npy", np.ones((1, 256), np.float32))
    assert "vectors.npy holds vectors and more texts" in adawidth("add", index, "more", "vectors.npy").stderr
    assert "there is no such file or folder" in adawidth("add", index, "nowhere").stderr


def test_what_is_printed_can_be_repeated(notes: Path) -> None:
    printed = [line[len("$ adawidth ") :] for line in adawidth("quickstart", notes).stdout.splitlines() if line.startswith("$ adawidth ")]
    assert [line.split()[0] for line in printed] == ["encode", "fit", "index", "search"]
    home = Path("my notes.adawidth")
    made = [json.loads((home / place / "config.json").read_text()) for place in ("model", "index/model")]
    home.rename("before")
    for line in printed[:3]:
        done = adawidth(*shlex.split(line))
        assert done.exit_code == 0, done.stderr
    assert [json.loads((home / place / "config.json").read_text()) for place in ("model", "index/model")] == made
    assert "The winter  (winter.md#" in adawidth(*shlex.split(printed[3]), typed="winter").stdout
    vectors = Path("data", "embeddings", "wordllama", "corpus.npy")
    assert (home / vectors).read_bytes() == (Path("before") / vectors).read_bytes()


def test_columns_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    table.write_text("sku,name,blurb\n" + "".join(f"{n},The {subject},About a {subject}.\n" for n, subject in enumerate(SUBJECTS)))
    columns = ("--text-column", "blurb", "--title-column", "name", "--id-column", "sku")
    done = adawidth("quickstart", table, *columns, "--out", tmp_path / "out", "-k", "1", typed="engine")
    assert done.exit_code == 0, done.stderr
    assert "The engine  (2)" in done.stdout
    refused = adawidth("quickstart", table, "--out", tmp_path / "new")
    assert refused.exit_code == 1
    assert "--text-column" in refused.stderr
