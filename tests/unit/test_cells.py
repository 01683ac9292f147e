"""Cells that are kept: when one is stale, that one appears whole, and that two processes never measure the same."""

import importlib.util
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adawidth.data import Dataset
from adawidth.errors import DataError
from adawidth.experiments import sources
from adawidth.experiments.base import Part
from adawidth.experiments.cells import Store
from adawidth.experiments.reproduce import measured

HOME = Path(__file__).parents[2]


def part(seed: int = 0, **head: Any) -> Part:
    arrays = {"quality": np.array([[0.5, 1.0]], np.float16)}
    return Part(f"a: b seed {seed}", {"train_queries": 4, **head}, lambda data: {"mean": 0.75, **arrays}, ("metrics:evaluate",))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cells")


@pytest.fixture
def kept(store: Store, collection: Dataset) -> Path:
    store.folder.mkdir()
    file = store.file(part(), collection.name, collection.encoder)
    store.write(file, measured(collection, part()))
    return file


def test_a_cell_comes_back_with_its_arrays(store: Store, kept: Path, collection: Dataset) -> None:
    assert kept.name == f"a-b-seed-0-{collection.name}-{collection.encoder}.json"
    cell = store.read(kept)
    assert (cell["mean"], cell["documents"], cell["quality"].tolist()) == (0.75, len(collection.documents), [[0.5, 1.0]])
    before = kept.with_suffix(".npz").read_bytes()
    store.write(kept, cell)
    assert kept.with_suffix(".npz").read_bytes() == before  # the same values give the same bytes


def test_other_settings_and_other_sources_make_a_cell_stale(
    store: Store, kept: Path, collection: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = collection.name, collection.encoder
    assert store.state(part(), *where) == ("finished", "")
    assert store.state(part(1), *where) == ("missing", "")
    assert store.state(part(train_queries=5), *where) == ("stale", "train_queries 4, now 5")
    assert store.state(part(protocol="other"), *where) == ("stale", "protocol None, now other")
    monkeypatch.setattr("adawidth.experiments.cells.fingerprint", lambda roots: "0")
    assert store.state(part(), *where) == ("stale", "other sources")


def test_a_write_that_breaks_off_leaves_no_cell(store: Store, kept: Path, collection: Dataset) -> None:
    with pytest.raises(TypeError):
        store.write(kept, {**store.read(kept), "mean": object()})
    assert store.state(part(), collection.name, collection.encoder)[0] == "missing"
    kept.write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="no finished cell"):
        store.read(kept)


def test_a_claim_is_for_one_process_and_ends_with_it(store: Store, tmp_path: Path) -> None:
    held = f"""
import sys
import tomllib
from pathlib import Path
from adawidth.experiments.cells import Store
with Store(Path({str(store.folder)!r})).claim(Path("x.json")) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline().strip() == "True"
        with store.claim(Path("x.json")) as mine:
            assert not mine
        with store.claim(Path("y.json")) as mine:
            assert mine
        other.kill()
    with store.claim(Path("x.json")) as mine:
        assert mine


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of three modules, of which `method:fit` uses some."""
    files = {
        "method.py": "from .steps import walk\nfrom .tools import shape\n\ndef fit(x):\n    return walk(x)\n\nother = shape\n",
        "steps/__init__.py": "from .far import walk\n",
        "steps/far.py": "LENGTH = 3\n\ndef walk(x):\n    return LENGTH * x\n\ndef unused():\n    return 1\n",
        "tools.py": "shape = 4\n",
        "cli.py": "def shown():\n    return 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sources, "PACKAGE", tmp_path)
    _forget()
    yield tmp_path
    _forget()


def _forget() -> None:
    for cached in (sources.reached, sources._named, sources._defined, sources._tree, sources._text):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("steps/far.py", "LENGTH = 3", "LENGTH = 4", True),
        ("steps/far.py", "return LENGTH * x", "return x * LENGTH", True),
        ("method.py", "return walk(x)", "return 2 * walk(x)", True),
        ("steps/far.py", "return 1", "return 2", False),
        ("steps/far.py", "def walk(x):\n", 'def walk(x):\n    """Far."""\n    # a comment\n', False),
        ("steps/far.py", "LENGTH * x", "(LENGTH   * x)", False),
        ("tools.py", "4", "5", False),
        ("cli.py", "1", "2", False),
    ],
)
def test_a_fingerprint_is_of_what_a_method_rests_on(package: Path, file: str, old: str, new: str, changes: bool) -> None:
    before = sources.fingerprint(["method:fit"])
    text = (package / file).read_text(encoding="utf-8")
    assert old in text
    (package / file).write_text(text.replace(old, new), encoding="utf-8")
    _forget()
    assert (sources.fingerprint(["method:fit"]) != before) == changes


def test_moving_a_definition_to_another_file_changes_nothing(package: Path) -> None:
    before = sources.fingerprint(["method:fit"])
    (package / "steps/far.py").rename(package / "near.py")
    (package / "steps/__init__.py").write_text("from ..near import walk\n", encoding="utf-8")
    _forget()
    assert sources.fingerprint(["method:fit"]) == before


def test_methods_rest_on_what_trains_them_and_not_on_the_command_line() -> None:
    modules = {definition.module for definition in sources.reached(("baselines.dense:Dense",))}
    assert {"baselines.dense", "training.descent", "stages.memory", "rotation"} <= modules
    assert not any(module.startswith(("cli", "index", "report", "model")) for module in modules)


def tool(name: str) -> Any:
    """A file of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, HOME / f"tools/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


SPEC = {
    "pairs": {"all": ["collection/tiny"]},
    "methods": {"simple": ["truncation", "pca"]},
    "cells": [
        {"experiment": "curves", "pairs": ["all"], "methods": ["truncation"], "settings": {"seeds": 1}},
        {"experiment": "curves", "pairs": ["collection/tiny"], "methods": ["simple"], "settings": {"seeds": 2}},
    ],
}


def test_the_list_is_measured_once_in_its_order_and_checked(dataset_folder: Path, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    paper = tool("paper")
    names = [cell.part.name for cell in paper.once(SPEC, store).values()]
    assert names == ["truncation seed 0", "pca seed 0", "truncation seed 1", "pca seed 1"]
    assert not paper.check(SPEC, store)
    assert "missing: pca seed 1, collection, tiny" in capsys.readouterr().out
    assert paper.measure(SPEC, store, [dataset_folder.parent], 0, "") == 0
    assert paper.measure(SPEC, store, [dataset_folder.parent], 60, "pca") == 2
    file = next(iter(paper.once(SPEC, store)))
    with store.claim(file):
        assert paper.measure(SPEC, store, [dataset_folder.parent], 60, "") == 1
    assert paper.measure(SPEC, store, [dataset_folder.parent], 60, "") == 1
    assert paper.check(SPEC, store)
    assert paper.measure(SPEC, store, [dataset_folder.parent], 60, "") == 0


def test_the_committed_list_can_be_read() -> None:
    paper = tool("paper")
    cells = list(paper.wanted(tomllib.loads(paper.SPEC.read_text(encoding="utf-8"))))
    assert {cell.experiment for cell in cells} >= {"curves", "capacity", "ablation", "sweep", "scaling", "stable-widths"}
    learned = {cell.part.name for cell in cells if cell.dataset == "medquad"}
    assert {f"paper seed {seed}" for seed in range(3)} <= learned


def test_a_table_takes_what_can_be_compared() -> None:
    paper = tool("paper")
    known = {"a": ["paper", *paper.COMPARED, "pca", "dense"], "b": ["paper", *paper.COMPARED, "pca"], "c": ["pca", "dense"]}
    cells = [{"dataset": pair, "encoder": "e", "method": method} for pair, methods in known.items() for method in methods]
    kept = paper.complete(cells, everything=False)
    assert {cell["dataset"] for cell in kept} == {"a", "b"}
    assert {cell["method"] for cell in kept} == {"paper", *paper.COMPARED, "pca"}
    assert {cell["dataset"] for cell in paper.complete(cells, everything=True)} == {"a"}
    assert paper.complete(cells[-2:], everything=False) == []


def test_the_page_has_a_row_for_every_claim(tmp_path: Path) -> None:
    page = tool("paper_page")
    for name in ("width_law.json", "router.json"):
        shutil.copy(page.RESULTS / name, tmp_path)
    (tmp_path / "paper").mkdir()
    claim = {"says": "Rivals are behind", "paper": "+.1", "here": "+.05 (+.01 to +.09)", "data": "2 pairs", "verdict": "holds"}
    means = {"paper": {"32": 0.5, "64": 0.61}}
    curves = {"claims": [claim], "pairs": ["one e"], "means": means, "unseen": {"means": {"paper": {"32": 0.4, "64": 0.5}}}}
    (tmp_path / "paper" / "curves.json").write_text(json.dumps(curves), encoding="utf-8")
    text = page.written(tmp_path)
    assert "Rivals are behind | +.1 | +.05 (+.01 to +.09) | 2 pairs | **holds** | [curves.json]" in text
    assert "| `paper` | .400 / .500 | .500 / .610 |" in text
    assert f"| {page.TABLES['sweep']} | – | not measured yet | – | **not shown** |" in text


def test_the_page_is_up_to_date() -> None:
    page = tool("paper_page")
    assert page.PAGE.read_text(encoding="utf-8") == page.written(), "run python tools/paper_page.py"
