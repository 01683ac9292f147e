"""What a filter costs that was not asked before: by columns of values, and by SQLite, which reads the metadata of every document.

    python benchmarks/filters.py [--documents 1000000]       (about 3 minutes; writes results/filters.json)

Processor time of `view.where`, which finds the documents that a filter lets through; the search itself is not in it. `checked` is the
very first filter of a process, which also reads and checks all documents.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from adawidth import AdaWidth, open_index
from adawidth.data import unit
from adawidth.filters import parse

WIDTH, LANGUAGES, TURNS = 32, ("en", "de", "fr", "es"), 7
RESULT = Path(__file__).parent / "results" / "filters.json"


def spent(call: Callable[[], object]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = unit(rng.standard_normal((options.documents, WIDTH), np.float32))
    metadata = [
        {"lang": LANGUAGES[i % 4], "year": 1990 + i % 35, "tenant": f"t{i * 7919 % 2000}", "source": {"kind": "blog" if i % 3 else "forum"}}
        for i in range(options.documents)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        AdaWidth.fit(rows[:2_000], recipe="pca").index(rows, path, metadata=metadata, storage="pq4").close()
        view = open_index(path).store.view
        found = {"checked": spent(lambda: view.where("lang = 'en'"))}
        found["field"] = spent(lambda: view.where("tenant = 't1'"))
        columns, sqlite = [], []
        for turn in range(TURNS):  # in turns: each filter is a new one
            text = f"tenant IN ('t{turn + 2}', 't{turn + 500}') AND lang != 'fr'"
            columns.append(spent(lambda text=text: view.where(text)))
            sqlite.append(spent(lambda text=text: view.manifest.matching(*parse(text).sql())))
        assert len(view.where("tenant IN ('t2', 't500') AND lang != 'fr'")) == len(
            view.manifest.matching(*parse("tenant IN ('t2', 't500') AND lang != 'fr'").sql())
        )
        found |= {"new": float(np.median(columns)), "new_by_sqlite": float(np.median(sqlite))}
    figures = {name: round(value, 4) for name, value in found.items()}
    print(figures)
    faster = round(found["new_by_sqlite"] / found["new"], 1)
    options.out.write_text(json.dumps({"documents": options.documents, "cpu_seconds": figures, "times_faster": faster}, indent=1) + "\n")


if __name__ == "__main__":
    main()
