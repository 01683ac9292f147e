"""How fast does an index on disk take documents, with every commit on the disk before it is acknowledged?

    python benchmarks/index_add.py                  (writes results/index_add.json)

Random vectors of width 256 in an .npy file, with ids. Once as one `add` of everything, streamed; once as a stream of commits of
10,000. Then: how long it takes to open the index, to answer a first query, to filter, to compact, and how much memory the adding took.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from adawidth.artifact import write_model
from adawidth.data import Vectors
from adawidth.formats import Document
from adawidth.formats.documents import Batch, Source
from adawidth.index import IndexFolder
from adawidth.index.folder import Finding
from adawidth.rotation import Rotation

sys.path.insert(0, str(Path(__file__).parent))
from fit_memory import Peak, anonymous

WIDTH, BATCH = 256, 10_000
LADDER = (32, 48, 64, 80, 96, 128, 160, 192, 256)
ROTATION = Rotation.random(WIDTH)


class Seldom(Peak):
    """Looks every two seconds: more often would cost the system as much as the adding does."""

    def run(self) -> None:
        while not self.done.wait(2):
            self.high = max(self.high, anonymous())


@contextmanager
def timed(results: dict[str, Any], name: str) -> Iterator[None]:
    start, cpu = time.perf_counter(), time.process_time()
    yield
    results[name] = round(time.perf_counter() - start, 4)
    if name == "seconds":
        results["processor_seconds"] = round(time.process_time() - cpu, 4)
        results["vectors_per_processor_second"] = round(results["documents"] / results["processor_seconds"])


def empty(path: Path, storage: str) -> IndexFolder:
    path.mkdir()
    write_model(path / "model", {"rotation": {"kind": "random"}}, {"rotation": ROTATION.matrix}, "# benchmark\n")
    return IndexFolder.create(path, ROTATION, start=64, ladder=LADDER, finding=Finding(storage))


def source(values: np.ndarray, first: int = 0) -> Source:
    """Rows with ids, a title and two fields of metadata each."""

    def batches() -> Iterator[Batch]:
        for start in range(0, len(values), 16_384):
            rows = range(first + start, first + min(start + 16_384, len(values)))
            documents = [Document(f"doc-{row}", f"title {row}", "", {"year": 1990 + row % 35, "lang": "en"}) for row in rows]
            yield Batch(Vectors(values[start : start + 16_384], [document.id for document in documents]), documents)

    return Source("vectors", len(values), WIDTH, batches)


def vectors(folder: Path, count: int) -> np.ndarray:
    """A memory-mapped file of unit vectors with a falling spectrum."""
    rng, spectrum = np.random.default_rng(0), np.exp(-np.arange(WIDTH) / 60).astype(np.float32) + 0.05
    file = np.lib.format.open_memmap(folder / "corpus.npy", mode="w+", dtype=np.float32, shape=(count, WIDTH))
    for start in range(0, count, 50_000):
        block = rng.standard_normal((min(50_000, count - start), WIDTH), dtype=np.float32) * spectrum
        file[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    file.flush()
    del file
    return np.load(folder / "corpus.npy", mmap_mode="r")


def bulk(folder: Path, values: np.ndarray) -> dict[str, Any]:
    """One commit of everything."""
    results: dict[str, Any] = {"documents": len(values), "commits": 1}
    index, before, watch = empty(folder / "bulk.index", "auto"), anonymous(), Seldom()
    watch.start()
    with timed(results, "seconds"):
        index.write(source(values))
    watch.done.set()
    watch.join()
    results["vectors_per_second"] = round(len(values) / results["seconds"])
    results["memory_grown_mb"] = round((watch.high - before) / 1e6)
    results["storage"] = index.facts()["segments"][0]["storage"]
    results["bytes"] = index.facts()["bytes"]
    index.close()
    with timed(results, "open_seconds"):
        index = IndexFolder(folder / "bulk.index")
    query = ROTATION.apply(np.asarray(values[:1]))
    for name in ("first_search_seconds", "search_seconds"):
        with timed(results, name):
            index.view.search(query, 64, 500)
    for name, year in (("first_filter_seconds", 2020), ("filter_seconds", 2021), ("kept_filter_seconds", 2021)):
        with timed(results, name):
            index.view.where(f"year >= {year}")
    index.remove(f"doc-{row}" for row in range(0, len(values), 10))
    with timed(results, "compact_seconds"):
        index.compact()
    return results


def stream(folder: Path, values: np.ndarray) -> dict[str, Any]:
    """Commits of 10,000."""
    results: dict[str, Any] = {"documents": len(values), "commits": -(-len(values) // BATCH)}
    index = empty(folder / "stream.index", "auto")
    with timed(results, "seconds"):
        for start in range(0, len(values), BATCH):
            index.write(source(values[start : start + BATCH], start))
    results["vectors_per_second"] = round(len(values) / results["seconds"])
    results["segments"] = len(index.facts()["segments"])
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "index_add.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        values = vectors(folder, options.documents)
        results = {"bulk": bulk(folder, values), "stream": stream(folder, values[: options.documents // 5])}
    text = json.dumps({"command": "python benchmarks/index_add.py", "width": WIDTH, **results}, indent=1)
    options.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
