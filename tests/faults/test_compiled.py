"""Nothing that a caller says reaches compiled code or an address unchecked: every entry, with hostile numbers and arrays.

The entries are in hostile.py. That they are all there is told by the source itself: every function that calls compiled code, hands
faiss something or makes an array of bytes must be passed on the way of some entry.
"""

import ast
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from faults import hostile, mutations
from faults.hostile import SOURCE
from faults.watched import Case, watched

KERNELS = SOURCE / "kernels"
RAW = {"ctypes", "frombuffer", "memmap", "swig_ptr", "as_strided", "data_ptr", "from_buffer"}  # attributes that give or take addresses


def kernels() -> set[str]:
    """The names of all compiled functions."""
    return {
        node.name
        for file in KERNELS.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.dump(mark) for mark in node.decorator_list)
    }


def uses(file: Path, compiled: set[str]) -> dict[str, str]:
    """Functions of a file that call compiled code or faiss, or make arrays of addresses: "file:first line" and what they call."""
    tree = ast.parse(file.read_text())
    names: set[str] = set()
    modules = {"faiss"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kernels"):
            names |= {alias.asname or alias.name for alias in node.names if alias.name in compiled}
            modules |= {alias.asname or alias.name for alias in node.names if alias.name not in compiled and node.module == "kernels"}
    found: dict[str, str] = {}

    def visit(node: ast.AST, function: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = function
            if isinstance(child, ast.FunctionDef | ast.Lambda):
                first = min([child.lineno, *(mark.lineno for mark in getattr(child, "decorator_list", []))])
                inside = f"{file.relative_to(SOURCE)}:{first}"
            if isinstance(child, ast.Name) and child.id in names and isinstance(child.ctx, ast.Load):
                found[inside] = child.id
            if isinstance(child, ast.Attribute):
                of = child.value.id if isinstance(child.value, ast.Name) else ""
                if child.attr in RAW or (
                    of in modules and (child.attr in compiled or (of == "faiss" and not child.attr.startswith("omp_")))
                ):
                    found[inside] = child.attr
            visit(child, inside)

    visit(tree, "")
    return {place: what for place, what in found.items() if place}


def all_uses() -> dict[str, str]:
    compiled = kernels()
    return {
        place: what for file in sorted(SOURCE.rglob("*.py")) if KERNELS not in file.parents for place, what in uses(file, compiled).items()
    }


def test_compiled_functions_are_in_one_place() -> None:
    elsewhere = [file for file in SOURCE.rglob("*.py") if KERNELS not in file.parents and "njit" in file.read_text()]
    assert elsewhere == []
    assert {"taper", "route", "top_k", "extend", "inner_products", "encode", "scores", "count", "predict"} <= kernels()


def test_a_use_of_compiled_code_is_seen() -> None:
    file = SOURCE / "stages" / "memory.py"
    assert set(uses(file, kernels()).values()) == {"extend", "top_k"}
    assert not uses(file, kernels() - {"extend", "top_k"})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile")
    mutations.prepare(path)
    return path


def tried(home: Path, cases: list[Case]) -> tuple[Counter[str], set[str]]:
    """How many cases ended how, each in a way that is allowed, and the functions that sound calls passed."""
    found: Counter[str] = Counter()
    passed: set[str] = set()
    for case, said in watched(Path(hostile.__file__), [home], cases):
        word, _, rest = said.partition(":")
        found[word] += 1
        allowed = ("called",) if "called" in case else ("right", "answered", "refused")
        assert word in allowed, f"{case} {hostile.NUMBERS[case['number']] if 'number' in case else ''!r}: {said}"
        if word == "called":
            passed |= set(json.loads(rest))
    return found, passed


@pytest.mark.slow
def test_every_use_of_compiled_code_is_on_the_way_of_an_entry(home: Path) -> None:
    pytest.importorskip("torch")
    sound = [{"entry": name, "called": True} for name in hostile.ENTRIES]
    found, passed = tried(home, [*sound, *random.Random(0).sample(hostile.cases(), 400)])
    missed = {place: what for place, what in all_uses().items() if place not in passed}
    assert not missed, f"no entry of hostile.py leads to {missed}"
    assert found["refused"] > found["answered"] > found["right"] > 10


@pytest.mark.slow
def test_hostile_numbers_and_arrays_at_every_entry(home: Path) -> None:
    pytest.importorskip("torch")
    found, _ = tried(home, hostile.cases())
    assert found["refused"] > 1_000
    assert found["answered"] > 1_000
    assert found["right"] > 200
