"""The documentation tells the truth: its examples run, and every command and option is in it.

Fenced `python` blocks of a file run one after the other in one namespace, and the `$ adawidth …` lines of `console` blocks as
commands, all in a folder that holds a small dataset called scifact with an encoder minilm. A block below `<!-- not run -->` is left out.
"""

import doctest
import importlib
import inspect
import io
import re
import shlex
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from runpy import run_path
from types import FunctionType

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import adawidth
from adawidth import bundled, load_dataset
from adawidth.cli.app import app
from adawidth.data import Dataset, Qrels, Vectors
from adawidth.formats import write_qrels, write_vectors

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?P<skip><!-- not run -->\n)?^```(?P<kind>python|console)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
MARKED = {"integrations.md": pytest.mark.integrations}  # pages whose examples need other people's libraries
TAKES_LONG = ("adawidth demo",)  # tested in e2e/


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scifact/ in it: a cut of the bundled vectors, so that widths and figures look like real ones."""
    folder = tmp_path_factory.mktemp("docs")
    data = load_dataset(bundled.path())
    vectors = folder / "scifact" / "embeddings" / "minilm"
    vectors.mkdir(parents=True)
    (folder / "scifact" / "qrels").mkdir()
    qrels = {split: _first(data.qrels[split], count) for split, count in (("train", 150), ("dev", 50), ("test", 50))}
    documents = sorted({d for part in qrels.values() for grades in part.grades.values() for d in grades}, key=str)
    write_vectors(vectors / "corpus.npy", _select(data.documents, documents))
    write_vectors(vectors / "queries.npy", _select(data.queries, [q for part in qrels.values() for q in part.grades]))
    for split, part in qrels.items():
        write_qrels(folder / "scifact" / "qrels" / f"{split}.tsv", part)
    return folder


def _first(qrels: Qrels, count: int) -> Qrels:
    return Qrels(dict(list(qrels.grades.items())[:count]), qrels.name)


def _select(vectors: Vectors, ids: list) -> Vectors:
    rows = vectors.select([vectors.row_of[identifier] for identifier in ids])
    return Vectors.of(np.asarray(rows.values), rows.ids, name=vectors.name)


def blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """(line, kind, code) of the blocks that run."""
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        if not match["skip"]:
            yield text.count("\n", 0, match.start()) + 1, match["kind"], match["code"]


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=MARKED.get(page.name, ())) for page in PAGES], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_examples_run(page: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    namespace: dict[str, object] = {"__name__": "__example__"}
    for line, kind, code in blocks(page):
        if kind == "python":
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
            continue
        for command in re.findall(r"^\$ (adawidth .*(?:\\\n.*)*)$", code, re.MULTILINE):
            if not command.startswith(TAKES_LONG):
                done = CliRunner().invoke(app, shlex.split(command.replace("\\\n", " "), comments=True)[1:])
                assert done.exit_code == 0, f"{page.name}:{line}: {command}\n{done.stderr}"


def test_the_workspace_is_a_dataset(workspace: Path) -> None:
    assert isinstance(load_dataset(workspace / "scifact", encoder="minilm"), Dataset)


def test_the_option_tables_are_those_of_the_commands() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    written = run_path(str(ROOT / "tools" / "command_docs.py"))["written"]
    assert written(page) == page, "run python tools/command_docs.py"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_and_has_help(name: str) -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## adawidth {name}\n")[2].partition("\n## ")[0]
    assert f"<!-- options of {name} -->\n| option | meaning |" in section
    assert COMMANDS[name].help
    for parameter in COMMANDS[name].params:
        assert parameter.help.endswith((".", "]", "…")), f"{name} {parameter.name}: help is a sentence"
        assert parameter.metavar or parameter.is_flag, f"{name} {parameter.name} has no metavar"


def test_the_list_of_commands_is_not_cut() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    assert shown.count("\n  ") > len(COMMANDS)
    assert "..." not in shown.partition("Commands:")[2]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_names_things_as_a_person_would(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80"}, prog_name="adawidth").stdout
    assert shown.startswith(f"Usage: adawidth {name} [OPTIONS]")
    assert not re.search(r"\{|<|x>=", shown)
    assert max(map(len, shown.splitlines())) <= 80


def test_every_documented_command_exists() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## adawidth (\w+)$", text, re.MULTILINE)) == set(COMMANDS)


NO_EXAMPLE = {"UnknownOutcomeError": "takes a disk that fails", "connect": "takes an engine that runs: docs/engines.md"}


def public() -> Iterator[tuple[str, object, str]]:
    """(name, function or class, docstring of the class that its examples continue) of everything public."""
    for module in (adawidth, bundled):
        for name in module.__all__:
            found = getattr(module, name)
            if callable(found):
                yield name, found, ""
            if inspect.isclass(found):
                for inner, member in vars(found).items():
                    if not inner.startswith("_") and isinstance(member, FunctionType | classmethod | staticmethod):
                        yield f"{name}.{inner}", getattr(found, inner), inspect.getdoc(found) or ""


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize(("name", "found", "before"), [pytest.param(*one, id=one[0]) for one in public() if one[0] not in NO_EXAMPLE])
def test_every_public_name_has_an_example_that_runs(
    name: str, found: object, before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method's example continues that of its class."""
    monkeypatch.chdir(tmp_path)
    own = inspect.getdoc(found) or ""
    assert ">>>" in own, f"{name} has no example"
    home = importlib.import_module(found.__module__)
    examples = doctest.DocTestParser().get_doctest(f"{before}\n\n{own}", dict(vars(home)), name, home.__file__, 0)
    said = io.StringIO()
    doctest.DocTestRunner().run(examples, out=said.write)
    assert not said.getvalue()


def test_every_public_property_says_what_it_is() -> None:
    classes = [getattr(adawidth, name) for name in adawidth.__all__ if inspect.isclass(getattr(adawidth, name))]
    read = [(one, name, member) for one in classes for name, member in vars(one).items() if isinstance(member, property | cached_property)]
    assert len(read) > 10
    assert [f"{one.__name__}.{name}" for one, name, member in read if not name.startswith("_") and not member.__doc__] == []


def test_public_results_have_short_reprs() -> None:
    data = load_dataset(bundled.path())
    model = adawidth.AdaWidth.fit(data.documents.select(range(100)), recipe="identity")
    law = adawidth.WidthLaw.fit(data, quantile=0.5, queries=100)
    results = [adawidth.evaluate(model, data, widths=[32]), adawidth.compare(data, ["truncation"], widths=[32]), law, law.required]
    for shown in map(repr, [*results, data.split("test"), data.split("test").judged]):
        assert len(shown) < 300
        assert "array" not in shown


def test_every_promise_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    section = text.partition("## What is promised")[2].partition("Not promised:")[0]
    promises = section.split("\n- **")[1:]
    assert len(promises) > 6
    for promise in promises:
        named = re.findall(r"([\w/]+\.py)::(\w+)", promise)
        assert named, promise[:60]
        for file, test in named:
            assert re.search(rf"^(def {test}\(|{test} = )", (ROOT / "tests" / file).read_text(), re.MULTILINE), f"{file}::{test}"
        for script in re.findall(r"benchmarks/\w+\.py", promise):
            assert (ROOT / script).exists(), script
