"""What does hybrid search find, and what does its lexical side cost? Beside vectors alone, BM25 alone, and SQLite's FTS5.

    python benchmarks/hybrid.py ../shared/datasets                   (writes results/hybrid.json)

Test queries of collections whose texts are there, under PCA without labels, on an index on disk as it is by default: the taper at quality
.99, 500 candidates. Constants are those of the literature (BM25 k1 1.2, b .75; fusion with 60): nothing is fitted or chosen here.
Differences are paired over queries, with 95 % intervals. Times are CPU time: the median of single
queries, one thread, all ways in turn.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth, Dataset, load_dataset
from adawidth.evaluation.significance import paired_bootstrap
from adawidth.formats import read_texts
from adawidth.index.store.segment import WORDS
from adawidth.metrics import Measure, evaluate
from adawidth.stages.words import words_of

COLLECTIONS, ENCODERS = ("scifact", "medquad", "nl2bash"), ("wordllama", "minilm")
MEASURES = (Measure("nDCG", 10), Measure("R", 100))
DEEP, TIMED = 100, 100  # documents in a ranking; queries that are timed, and that FTS5 answers
RESULTS = Path(__file__).parent / "results" / "hybrid.json"
PAGE = Path(__file__).parents[1] / "docs" / "hybrid.md"

Ranking = Callable[[int], Any]  # of one query, by its place


class Fts5:
    """SQLite's own index of words, in a file, with Porter's stemmer."""

    def __init__(self, path: Path, data: Dataset, texts: dict[str, str]) -> None:
        self._db = sqlite3.connect(path)
        self._db.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='porter unicode61')")
        rows = ((row + 1, texts[str(name)]) for row, name in enumerate(data.documents.ids))
        self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
        self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
        self._db.commit()
        self._db.execute("VACUUM")
        self.bytes = path.stat().st_size

    def search(self, text: str, k: int) -> np.ndarray:
        """The rows of the k best; every word is quoted, and any will do."""
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(words_of(text)))
        found = self._db.execute("SELECT rowid - 1 FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (wanted or '""', k)).fetchall()
        rows = np.full(k, -1, np.int64)
        rows[: len(found)] = [row for (row,) in found]
        return rows


def timed(ways: dict[str, Ranking], count: int) -> dict[str, float]:
    """Milliseconds of CPU time of a query by each way, in turn; the first of each is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for place in range(count):
        for name, ask in ways.items():
            start = time.process_time()
            ask(place)
            taken[name].append(time.process_time() - start)
    return {name: round(1e3 * float(np.median(times[1:])), 3) for name, times in taken.items()}


def measured(folder: Path, encoder: str) -> dict[str, Any]:
    """One collection with one encoder."""
    data = load_dataset(folder, encoder=encoder)
    test = data.split("test")
    documents = {text.id: text.whole for text in read_texts(folder / "corpus.jsonl")}
    queries = {text.id: text.text for text in read_texts(folder / "queries.jsonl")}
    asked, vectors = [queries[str(name)] for name in test.vectors.ids], test.vectors.all()
    model = AdaWidth.fit(data, recipe="pca", labels=False)
    with tempfile.TemporaryDirectory() as home:
        index = model.index(data.documents, Path(home) / "index", hybrid=True)
        fts5 = Fts5(Path(home) / "fts5", data, documents)
        rankings = {
            "vectors": index.search(test.vectors, DEEP).rows,
            "words": index.store.lexical(index.store.view, asked, DEEP),
            "hybrid": index.search(vectors, DEEP, text=asked, hybrid=True).rows,
        }
        some = np.stack([fts5.search(text, DEEP) for text in asked[:TIMED]])
        ways: dict[str, Ranking] = {
            "vectors": lambda place: index.search(vectors[place], 10),
            "words": lambda place: index.store.lexical(index.store.view, asked[place : place + 1], 500),
            "hybrid": lambda place: index.search(vectors[place], 10, text=asked[place], hybrid=True),
            "fts5": lambda place: fts5.search(asked[place], 500),
        }
        milliseconds = timed(ways, min(TIMED, len(asked)))
        stored = [
            place.size for entry in index.store.view.manifest.segments for name, place in entry.arrays.items() if name.startswith(WORDS)
        ]
        sizes = {"words": sum(stored), "fts5": fts5.bytes, "text": sum(map(len, documents.values()))}
    values = {way: evaluate(MEASURES, rows, test.judged) for way, rows in rankings.items()}
    differences = {
        f"{one} - {other}": {str(m): _interval(values[one][str(m)], values[other][str(m)]) for m in MEASURES}
        for one, other in (("hybrid", "vectors"), ("hybrid", "words"), ("words", "vectors"))
    }
    theirs, ours = (
        evaluate(MEASURES, np.concatenate([rows[:TIMED], rankings["words"][TIMED:]]), test.judged) for rows in (some, rankings["words"])
    )
    beside = {
        str(m): {
            "words": round(float(ours[str(m)][:TIMED].mean()), 4),
            "fts5": round(float(theirs[str(m)][:TIMED].mean()), 4),
            "difference": _interval(ours[str(m)][:TIMED], theirs[str(m)][:TIMED]),
        }
        for m in MEASURES
    }
    means = {way: {str(m): round(float(value[str(m)].mean()), 4) for m in MEASURES} for way, value in values.items()}
    return {
        **{"dataset": data.name, "encoder": encoder, "documents": len(data.documents), "queries": len(asked)},
        **{
            "results": means,
            "differences": differences,
            "beside_fts5": beside,
            "milliseconds": milliseconds,
            "bytes": sizes,
        },
    }


def _interval(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    return dict(zip(("mean", "low", "high"), (round(value, 4) for value in paired_bootstrap(one, other)), strict=True))


def figures(result: dict[str, Any]) -> str:
    """The tables of docs/hybrid.md."""
    cells = result["cells"]
    lines = _head("collection, encoder, measure", "vectors", "words (BM25)", "hybrid", "hybrid − vectors", "hybrid − words")
    for measure in map(str, MEASURES):
        for cell in cells:
            means = [_short(cell["results"][way][measure]) for way in ("vectors", "words", "hybrid")]
            gains = [_told(cell["differences"][f"hybrid - {other}"][measure]) for other in ("vectors", "words")]
            lines.append(_line(f"{cell['dataset']}, {cell['encoder']}, {measure}", *means, *gains))
    ways = ("vectors", "words", "hybrid", "fts5")
    lines += ["", *_head("collection, encoder", "documents", *(f"{way}, ms" for way in ways), "words, MB", "fts5, MB", "text, MB")]
    for cell in cells:
        taken = [f"{cell['milliseconds'][way]:.2f}" for way in ways]
        sizes = [f"{cell['bytes'][what] / 1e6:.1f}" for what in ("words", "fts5", "text")]
        lines.append(_line(f"{cell['dataset']}, {cell['encoder']}", f"{cell['documents']:,}", *taken, *sizes))
    lines += ["", "Milliseconds are CPU time for one query in words, one thread, without the encoder.", ""]
    lines += _head(f"the first {TIMED} test queries, nDCG@10", "words", "FTS5", "difference")
    for cell in {cell["dataset"]: cell for cell in cells}.values():  # words are the same with every encoder
        found = cell["beside_fts5"][str(MEASURES[0])]
        lines.append(_line(cell["dataset"], _short(found["words"]), _short(found["fts5"]), _told(found["difference"])))
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*names: str) -> list[str]:
    return [_line(*names), "|---" * len(names) + "|"]


def _told(gain: dict[str, float]) -> str:
    return f"{_short(gain['mean'])} ({_short(gain['low'])} to {_short(gain['high'])})"


def written(page: str, result: dict[str, Any]) -> str:
    """The page with these tables."""
    begin, end = "<!-- figures of hybrid -->\n", "<!-- end of figures -->"
    before, _, rest = page.partition(begin)
    return before + begin + figures(result) + end + rest.partition(end)[2]


def _short(value: float) -> str:
    """Without the zero before the point."""
    return f"{value:.3f}".replace("0.", ".", 1).replace("-", "−")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="without it, only the tables are written, from what was measured")
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS)
    parser.add_argument("--encoders", nargs="+", default=ENCODERS)
    options = parser.parse_args()
    before = json.loads(RESULTS.read_text())["cells"] if RESULTS.exists() else []
    cells = {(cell["dataset"], cell["encoder"]): cell for cell in before}
    for name in options.collections if options.folder is not None else ():
        for encoder in options.encoders:
            cells[name, encoder] = measured(options.folder / name, encoder)
            print(json.dumps(cells[name, encoder]), flush=True)
    ordered = [cells[name, encoder] for name in COLLECTIONS for encoder in ENCODERS if (name, encoder) in cells]
    command = "OMP_NUM_THREADS=1 python benchmarks/hybrid.py ../shared/datasets"
    result = {"command": command, "machine": platform.machine(), "sqlite": sqlite3.sqlite_version, "cells": ordered}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), result), encoding="utf-8")


if __name__ == "__main__":
    main()
