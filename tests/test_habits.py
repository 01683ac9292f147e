"""Habits of the code that ruff has no rule for, or a rule without room for reasons."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINES, PARAMETERS = 430, 8
ENGINES = {"psycopg", "psycopg_pool", "pymilvus", "milvus", "milvus_lite", "qdrant_client", "qdrant_edge", "lancedb", "ray", "dask"}
SOURCES = sorted((ROOT / "src/adawidth").rglob("*.py"))
WRITTEN = [*SOURCES, *(file for folder in ("tests", "tools", "benchmarks", "examples") for file in sorted((ROOT / folder).rglob("*.py")))]
# What a user may say in one call is one option each, by keyword. Everything that these call takes fewer.
CONTRACT = {
    "model/adawidth.py": {"fit", "index"},
    "model/index.py": {"search"},
    "serve/client.py": {"search"},
    "evaluation/evaluate.py": {"evaluate"},
    "policies/select.py": {"choose"},  # the options of a search that say which policy
}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many there are, without the object itself."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def too_many(file: Path) -> list[str]:
    functions = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.name for function in functions if parameters(function) > PARAMETERS]


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_no_file_is_long(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= LINES


def test_only_what_users_call_takes_many_parameters() -> None:
    """Kernels take flat arrays, and a command takes its options: both are left out."""
    package = ROOT / "src/adawidth"
    found = {file.relative_to(package).as_posix(): set(too_many(file)) for file in SOURCES}
    assert {name: names for name, names in found.items() if names and name.split("/")[0] not in ("cli", "kernels")} == CONTRACT


@pytest.mark.parametrize("file", [file for file in WRITTEN if "tests" in file.parts], ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_test_is_collected_without_engines(file: Path) -> None:
    """The quick suite collects all tests where no engine's package is installed."""
    imports = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom) and not node.level}
    assert not {name.split(".")[0] for name in names} & ENGINES
