"""How much memory does a fit take on a corpus larger than it wants to hold?

    python benchmarks/fit_memory.py [FOLDER]         (writes results/fit_memory.json; FOLDER has 9 GB to spare)

Two synthetic memory-mapped corpora with a falling spectrum: two million rows of 384, and one million rows of 4,096. The growth of
the peak resident memory during `fit` is set against the bound of docs/fitting.md. Pages of the mapped file that the system keeps
cached count as resident too, so the files' own pages are dropped from the figure (anonymous memory is what is reported). The
recipes run for 50 steps each: memory does not depend on their number. `--rows` and `--width` measure one corpus alone; a cell of the same
rows and width is replaced.
"""

import argparse
import json
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from adawidth import AdaWidth, Dataset, Qrels, Vectors
from adawidth.training import choose
from adawidth.training.corpus import FLOATS
from adawidth.training.pool import DEV, TRAIN

CASES = ((2_000_000, 384, 4_000), (1_000_000, 4_096, 1_000))
RESULTS = Path(__file__).parent / "results" / "fit_memory.json"


def corpus(folder: Path, rows: int, width: int, queries: int) -> Dataset:
    """Documents on disk, queries near some of them."""
    rng = np.random.default_rng(0)
    spectrum = np.exp(-np.arange(width) / 80).astype(np.float32) + 0.02
    file = np.lib.format.open_memmap(folder / f"corpus-{width}.npy", mode="w+", dtype=np.float16, shape=(rows, width))
    for start in range(0, rows, 50_000):
        block = rng.standard_normal((min(50_000, rows - start), width), dtype=np.float32) * spectrum
        file[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    file.flush()
    del file
    documents = Vectors.of(np.load(folder / f"corpus-{width}.npy", mmap_mode="r"), name="corpus")
    source = rng.choice(rows, queries, replace=False)
    asked = documents.read(source) + 0.08 * spectrum * rng.standard_normal((queries, width), dtype=np.float32)
    cut = int(0.9 * queries)
    parts = {"train": range(cut), "dev": range(cut, queries)}
    qrels = {name: Qrels({i: {int(source[i]): 1.0} for i in part}, name) for name, part in parts.items()}
    return Dataset(documents, Vectors.of(asked.astype(np.float32), name="queries"), qrels, name=f"{rows} × {width}")


def anonymous() -> int:
    """Resident memory that is no file's, in bytes."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell")


class Peak(threading.Thread):
    """Watches the memory until it is told to stop."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.high = anonymous()
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.05):
            self.high = max(self.high, anonymous())


def bound(rows: int, width: int, train: int) -> float:
    """The bound of docs/fitting.md, in MB: the pool, the queries, square matrices, blocks of scores, and numbers of documents."""
    pool = min(rows * width, FLOATS)
    floats = 4 * pool + 4 * (min(train, TRAIN) + DEV) * width + 24 * width * width + 3 * 64_000_000 + 8 * rows
    return floats * 4 / 1e6


def measured(folder: Path, rows: int, width: int, queries: int) -> dict:
    """One fit; the file goes when it is done."""
    data = corpus(folder, rows, width, queries)
    before, watch, start = anonymous(), Peak(), time.perf_counter()
    watch.start()
    model = AdaWidth.fit(data)
    watch.done.set()
    watch.join()
    (folder / f"corpus-{width}.npy").unlink()
    return {
        "rows": rows,
        "width": width,
        "file_mb": round(rows * width * 2 / 1e6),
        "grown_mb": round((watch.high - before) / 1e6),
        "bound_mb": round(bound(rows, width, queries)),
        "fit_seconds": round(time.perf_counter() - start),
        "pool": model.record.pool,
        "chosen": model.record.chosen,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", help="where the corpora are written")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--width", type=int)
    options = parser.parse_args()
    choose.LABELLED = tuple(replace(recipe, steps=50) for recipe in choose.LABELLED)
    cases = [(options.rows, options.width, 1_000)] if options.rows and options.width else CASES
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for case in cases:
            cell = measured(Path(folder), *case)
            print(cell, flush=True)
            done = json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else []
            others = [old for old in done if (old["rows"], old["width"]) != case[:2]]
            found = {"command": "python benchmarks/fit_memory.py", "results": sorted([*others, cell], key=lambda one: one["width"])}
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
