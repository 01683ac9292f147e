"""From a folder of text to a search prompt; what it prints can be repeated by hand."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from adawidth.cli.app import app

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
    shown = done.stdout.split("Type a query, or :quit.\n")[1]
    answers = shown.strip().split(" coordinates\n")
    assert "The winter  (winter.md#" in answers[0].splitlines()[0]
    assert "The bridge  (bridge.md#" in answers[1].splitlines()[0]
    assert shown.count("read at a mean width of ") == 2
    assert "minilm" in done.stdout  # what a stronger encoder would bring

    index = notes.with_name("my notes.adawidth") / "index"
    before = sorted(file.name for file in index.iterdir())
    again = adawidth("quickstart", notes, typed="garden")  # the end of the input ends it, too
    assert again.exit_code == 0, again.stderr
    assert again.stdout.count("# done before") == 3
    assert "The garden" in again.stdout
    assert sorted(file.name for file in index.iterdir()) == before

    (notes / "river.md").write_text("Something else.")
    changed = adawidth("quickstart", notes)
    assert changed.exit_code == 1
    assert changed.stderr.count("\n") == 1
    assert "--force" in changed.stderr
    assert adawidth("quickstart", notes, "--force").exit_code == 0


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
