"""Which definitions of this package a measurement rests on, and one fingerprint of them.

From a function or class every definition that it names is followed, through imports, to the end. An edit of another function in the
same file changes nothing, nor does moving one to another file; comments, docstrings and formatting don't count.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]
APART = {  # hold and show what is measured, and decide nothing of it: not followed
    *("cli", "report", "model", "encoders", "index", "formats", "bundled", "artifact", "record", "data", "hits", "filters"),
    *("progress", "threads", "errors", "types"),
}


class Definition(NamedTuple):
    """A name of a module of this package, as in "data:Vectors"."""

    module: str
    name: str


def fingerprint(roots: Sequence[str]) -> str:
    """Of definitions ("module:name", the package left out) and all that they rest on, in 16 hexadecimal digits."""
    texts = sorted({_text(definition) for definition in reached(tuple(roots))})
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


@cache
def reached(roots: tuple[str, ...]) -> frozenset[Definition]:
    """These definitions and every one that they name, directly or through others."""
    ahead = [Definition(*root.split(":")) for root in roots]
    found = set(ahead)
    while ahead:
        for name in _named(ahead.pop()) - found:
            found.add(name)
            ahead.append(name)
    return frozenset(found)


@cache
def _named(definition: Definition) -> frozenset[Definition]:
    """What a definition names of this package."""
    module, found = definition.module, set[Definition]()
    here, imported = _defined(module), dict(_imported(module, _tree(module).body))
    for node in here.get(definition.name, ()):
        inner = {**imported, **dict(_imported(module, [node]))}
        for name in {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}:
            if name in inner:
                found |= set(_origin(*inner[name]))
            elif name in here and _followed(module):
                found.add(Definition(module, name))
    return frozenset(found)


def _origin(module: str, name: str) -> Iterator[Definition]:
    """Where an imported name is made: followed through packages that pass it on; a module's name stands for all in it."""
    whole = f"{module}.{name}" if module else name
    if not _followed(whole):
        return
    if _file(whole).exists():
        yield from (Definition(whole, each) for each in _defined(whole))
    elif name in _defined(module):
        yield Definition(module, name)
    elif name in (passed := dict(_imported(module, _tree(module).body))):
        yield from _origin(*passed[name])


def _imported(module: str, nodes: Sequence[ast.stmt]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Names that statements import of this package, each with its module and its name there."""
    package = module.split(".") if _file(module).name == "__init__.py" else module.split(".")[:-1]
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.ImportFrom) and part.level:
                base = [*package[: len(package) - part.level + 1], *(part.module.split(".") if part.module else ())]
                yield from ((alias.asname or alias.name, (".".join(base), alias.name)) for alias in part.names)


@cache
def _defined(module: str) -> dict[str, list[ast.stmt]]:
    """The statements that make each top-level name of a module."""
    made: dict[str, list[ast.stmt]] = {}
    for node in _statements(_tree(module).body):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}:
                made.setdefault(name, []).append(node)
    return made


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, also under `if` and `try`."""
    for node in body:
        yield node
        for inner in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try):
                yield from _statements(getattr(node, inner, []))


def _followed(module: str) -> bool:
    return module.split(".")[0] not in APART


def _file(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_name(f"{path.name}.py")


@cache
def _tree(module: str) -> ast.Module:
    tree = ast.parse(_file(module).read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and _is_text(node.body[0]):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _text(definition: Definition) -> str:
    """A definition in one spelling."""
    return "\n".join(ast.dump(node) for node in _defined(definition.module).get(definition.name, ()))
