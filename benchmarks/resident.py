"""How much memory does a document take in a process that searches an index on disk?

    python benchmarks/resident.py                 (writes results/resident.json)

A new process each opens an index and answers queries; what it then holds of its own (not pages of files, which the system takes back
when it needs them) is compared between a smaller and a larger index: what is there anyway cancels out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import synthetic
from adawidth import Vectors
from ours import fitted

SIZES, WIDTH, QUERIES, STORAGES = (100_000, 500_000), 256, 20, ("pq4", "ivf")
RESULTS = Path(__file__).parent / "results" / "resident.json"
PROGRAM = """
import sys
import numpy as np
from adawidth import open_index
index = open_index(sys.argv[1])
for query in np.load(sys.argv[2]):
    index.search(query, 10)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("RssAnon:")))  # in KB
"""


def held(index: Path, queries: Path) -> int:
    """Bytes of a process that searched."""
    run = subprocess.run([sys.executable, "-c", PROGRAM, index, queries], stdout=subprocess.PIPE, text=True, check=True)
    return 1024 * int(run.stdout)


def main() -> None:
    vectors = synthetic.make(SIZES[-1], WIDTH, QUERIES)
    model, found = fitted(vectors), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "queries.npy", vectors.queries)
        for storage in STORAGES:
            bytes_of = []
            for size in SIZES:
                documents = Vectors(vectors.documents[:size], [str(row) for row in range(size)])
                index = model.index(documents, folder / "index", storage=storage, force=True)
                codes = index.store.view.segments[0].codes.bytes_per_document
                bytes_of.append(held(folder / "index", folder / "queries.npy"))
            found[storage] = {"codes": codes, "resident": round((bytes_of[1] - bytes_of[0]) / (SIZES[1] - SIZES[0]), 1)}
    text = json.dumps(
        {"command": "python benchmarks/resident.py", "documents": SIZES, "width": WIDTH, "bytes_per_document": found}, indent=1
    )
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
