"""The bundled data: its files agree with each other, and its texts are found in the Python that runs the tests."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from adawidth import bundled
from adawidth.bundled.text import EXCLUDED_MODULES, document_text, group_of, split_sentence, without_signature

SPLITS = ("train", "dev", "test")


def vectors_of(name: str) -> tuple[NDArray[np.float16], list[str]]:
    folder = bundled.path() / "embeddings" / bundled.ENCODER
    return np.load(folder / f"{name}.npy", allow_pickle=False), lines_of(folder / f"{name}.ids")


def qrels_of(split: str) -> list[tuple[str, str, str]]:
    header, *rows = [tuple(line.split("\t")) for line in lines_of(bundled.path() / "qrels" / f"{split}.tsv")]
    assert header == ("query-id", "corpus-id", "score")
    return [(query, document, score) for query, document, score in rows]


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("name", "at_least"), [("corpus", 3000), ("queries", 2800)])
def test_vectors_and_ids_agree(name: str, at_least: int) -> None:
    vectors, ids = vectors_of(name)
    assert vectors.dtype == np.float16
    assert vectors.shape == (len(ids), 384)
    assert len(ids) >= at_least
    assert len(set(ids)) == len(ids)
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1)
    assert np.abs(norms - 1).max() < 2e-3


@pytest.mark.parametrize("name", ["corpus", "queries"])
def test_files_stay_small(name: str) -> None:
    assert (bundled.path() / "embeddings" / bundled.ENCODER / f"{name}.npy").stat().st_size < 2.6e6


def test_meta_says_where_the_vectors_come_from() -> None:
    meta = json.loads((bundled.path() / "embeddings" / bundled.ENCODER / "meta.json").read_text(encoding="utf-8"))
    assert (meta["dimensions"], meta["normalized"]) == (384, True)
    assert {"encoder", "python", "numpy"} <= meta.keys()


def test_only_vectors_ids_and_labels_are_stored() -> None:
    files = {file.name for file in bundled.path().rglob("*") if file.is_file()}
    assert files == {"corpus.npy", "corpus.ids", "queries.npy", "queries.ids", "meta.json", *(f"{split}.tsv" for split in SPLITS)}


def test_labels_name_known_ids_and_cover_them_all() -> None:
    rows = [row for split in SPLITS for row in qrels_of(split)]
    assert {query for query, _, _ in rows} == set(vectors_of("queries")[1])
    assert sorted(document for _, document, _ in rows) == sorted(vectors_of("corpus")[1])
    assert {score for _, _, score in rows} == {"1"}


def test_splits_share_no_module() -> None:
    modules = {split: {group_of(name.removeprefix("q:")) for row in qrels_of(split) for name in row[:2]} for split in SPLITS}
    for one, other in itertools.combinations(SPLITS, 2):
        assert not modules[one] & modules[other]


def test_splits_have_their_shares() -> None:
    sizes = {split: len({query for query, _, _ in qrels_of(split)}) for split in SPLITS}
    shares = {split: size / sum(sizes.values()) for split, size in sizes.items()}
    assert shares == pytest.approx({"train": 0.60, "dev": 0.15, "test": 0.25}, abs=0.03)


def test_full_width_ranks_better_than_a_cut_but_not_perfectly() -> None:
    documents, names = vectors_of("corpus")
    queries, query_ids = vectors_of("queries")
    row_of = {name: row for row, name in enumerate(names)}
    query_row_of = {name: row for row, name in enumerate(query_ids)}
    pairs = [(query_row_of[query], row_of[document]) for query, document, _ in qrels_of("test")]
    asked, wanted = (np.array(column) for column in zip(*pairs, strict=True))

    def found_in_ten(width: int) -> float:
        left, right = (part[:, :width].astype(np.float32) for part in (queries[asked], documents))
        left, right = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (left, right))
        scores = left @ right.T  # (pairs, documents)
        own = scores[np.arange(len(wanted)), wanted]
        return float(((scores > own[:, None]).sum(axis=1) < 10).mean())

    assert found_in_ten(64) + 0.1 < found_in_ten(384) < 0.9


def test_texts_are_looked_up() -> None:
    document = bundled.text_of("statistics.median")
    assert document is not None
    assert document.startswith("statistics.median\n")
    query = bundled.query_text_of("q:statistics.median")
    assert query == "Return the median (middle value) of numeric data."
    assert query not in document


@pytest.mark.parametrize(
    "name", ["", "nonsense", "statistics.nonsense", "statistics..median", "antigravity", "this", "q:", "a b", ".", "\0"]
)
def test_unknown_ids_have_no_text(name: str) -> None:
    assert bundled.text_of(name) is None
    assert bundled.query_text_of(name) is None
    assert bundled.query_text_of(f"q:{name}") is None


def test_no_excluded_module_is_bundled() -> None:
    assert EXCLUDED_MODULES.isdisjoint(name.split(".")[0] for name in vectors_of("corpus")[1])


def test_all_texts_together_import_quietly() -> None:
    """In a fresh interpreter: most texts are there (versions differ), nothing is printed or warned, nothing excluded is loaded."""
    script = (
        "import sys\n"
        "from adawidth import bundled\n"
        "ids = (bundled.path() / 'embeddings' / bundled.ENCODER / 'corpus.ids').read_text().splitlines()\n"
        "found = sum(bundled.text_of(name) is not None and bundled.query_text_of('q:' + name) is not None for name in ids)\n"
        "assert found > 0.85 * len(ids), (found, len(ids))\n"
        "own = {'rlcompleter'} if sys.version_info < (3, 13) else set()\n"  # from 3.13 on, pdb loads it
        "assert not {'antigravity', 'this', 'tkinter', 'turtle', 'idlelib', 'lib2to3', *own} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_failing_import_gives_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> object:
        raise OSError(name)

    monkeypatch.setattr(bundled, "resolve", fail)
    assert bundled.text_of("statistics.median") is None
    assert bundled.query_text_of("q:statistics.median") is None


@pytest.mark.parametrize(
    ("docstring", "cleaned"),
    [
        ("add(x1, x2, /[, out])\n\nAdd arguments.", "Add arguments."),
        ("range(stop) -> range object\nrange(start, stop[, step]) -> range object\n\nReturn an object.", "Return an object."),
        ("array(object, dtype=None,\n      like=None)\n\nCreate an array.", "Create an array."),
        ("map(func, *iterables) --> map object\n\nMake an iterator.", "Make an iterator."),
        ("exit([status]) -- leave\n\nReally.", "leave\n\nReally."),
        ("open(file is left alone\n\nwhere nothing closes.", "open(file is left alone\n\nwhere nothing closes."),
        ("Return f(x) for x.", "Return f(x) for x."),
        ("", ""),
    ],
)
def test_signatures_are_removed(docstring: str, cleaned: str) -> None:
    assert without_signature(docstring) == cleaned


@pytest.mark.parametrize(
    ("docstring", "sentence", "rest"),
    [
        ("Sort a\n  list.  In place.\n\nMore.", "Sort a list.", "In place.\n\nMore."),
        ("No full stop\n\nMore.", "No full stop", "More."),
        ("Use a name, e.g. Foo or i.e. Bar. Then stop.", "Use a name, e.g. Foo or i.e. Bar.", "Then stop."),
        ("Count by step. range(4) gives 0.", "Count by step.", "range(4) gives 0."),
        ("", "", ""),
    ],
)
def test_first_sentence_is_split_off(docstring: str, sentence: str, rest: str) -> None:
    assert split_sentence(docstring) == (sentence, rest)


def test_documents_are_cut() -> None:
    assert document_text("a.b", "First. " + "x" * 5000) == "a.b\n" + "x" * 2000


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("os.path.join", "os"),
        ("numpy.linalg.svd", "numpy.linalg"),
        ("numpy.linalg", "numpy.linalg"),
        ("numpy.ndarray.sort", "numpy"),
        ("json", "json"),
    ],
)
def test_groups(name: str, group: str) -> None:
    assert group_of(name) == group
