"""How long does a new process wait for its first answer from an index on disk? With compiled code cached on disk, and without.

    python benchmarks/first_query.py                 (writes results/first_query.json)

Seconds on the clock and of the processor, to import the package, to open the index, to answer a first query and a second one;
medians of some processes. No process can write beside the package, so a read-only install waits as long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import synthetic
from adawidth import Vectors
from ours import fitted

DOCUMENTS, WIDTH, PROCESSES = 100_000, 384, 5
RESULTS = Path(__file__).parent / "results" / "first_query.json"
PROGRAM = """
import json, sys, time
import numpy as np
query = np.load(sys.argv[2])
now = lambda: (time.perf_counter(), time.process_time())
marks = [now()]
from adawidth import open_index
marks.append(now())
index = open_index(sys.argv[1])
marks.append(now())
for _ in range(2):
    index.search(query, 10)
    marks.append(now())
print(json.dumps(np.diff(marks, axis=0).T.tolist()))
"""


def waited(index: Path, query: Path, cache: Path) -> list[list[float]]:
    """Seconds by clock and step, of one process whose compiled code is cached here."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, index, query],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return json.loads(run.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vectors = synthetic.make(DOCUMENTS, WIDTH, 1)
        fitted(vectors).index(Vectors(vectors.documents, [str(row) for row in range(DOCUMENTS)]), folder / "index")
        np.save(folder / "query.npy", vectors.queries[0])
        first = [waited(folder / "index", folder / "query.npy", folder / f"cache {i}") for i in range(2)]
        later = [waited(folder / "index", folder / "query.npy", folder / "cache 0") for _ in range(PROCESSES)]
    steps, clocks = ("import", "open", "first_query", "second_query"), ("seconds", "processor_seconds")
    medians = {
        clock: {name: dict(zip(steps, np.median(runs, axis=0)[i].round(4).tolist(), strict=True)) for name, runs in
                (("never_compiled", first), ("compiled_before", later))}
        for i, clock in enumerate(clocks)
    }  # fmt: skip
    text = json.dumps({"command": "python benchmarks/first_query.py", "documents": DOCUMENTS, "width": WIDTH, **medians}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
