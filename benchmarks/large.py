"""Is a search in many documents as fast as it was? An inverted file over ten million, this checkout against another one, in turns.

    python benchmarks/large.py --before ../before [--documents 10000000]            (writes results/large.json)

Synthetic vectors of width 256. Each side is a process of its own: it builds an index folder by its own benchmarks/ours.py, which
chooses the shortlist and the quality that keep a recall@10 of .98 on other queries, and is then asked one query at a time. Blocks of
queries take turns. About half an hour, 12 GB of disk.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import faiss
import numpy as np

import synthetic
from single_query import asked

HERE = Path(__file__).parent
WIDTH, QUERIES, K, WANTED, ROUNDS, BLOCK, PART = 256, 400, 10, 0.98, 20, 40, 100_000
WORKER = """
import json, sys, time
from pathlib import Path
import numpy as np
import synthetic
from ours import Ours
home, storage, wanted = Path(sys.argv[1]), sys.argv[3], float(sys.argv[4])
rows = np.load(home / "documents.npy", mmap_mode="r")
queries, others, truth, other = (np.load(home / f"{name}.npy") for name in ("queries", "others", "truth", "other"))
made = Ours(Path(sys.argv[2]), synthetic.Vectors(rows, queries, others), storage, other, wanted)
print(json.dumps(made.facts(queries, truth)), flush=True)
place = 0
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        query, place = queries[place % len(queries)][None], place + 1
        begin = time.thread_time()
        made(query)
        times.append(time.thread_time() - begin)
    print(sorted(times)[len(times) // 2], flush=True)
"""


def nearest(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The exact answer, some rows at a time. (Q, 10)"""
    found = faiss.ResultHeap(len(queries), K, keep_max=True)
    for start in range(0, len(rows), PART):
        scores, places = faiss.knn(queries, rows[start : start + PART].astype(np.float32), K, metric=faiss.METRIC_INNER_PRODUCT)
        found.add_result(scores, places + start)
    found.finalize()
    return np.asarray(found.I)


def started(checkout: Path, home: Path, name: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A process that has built its index and chosen its settings, and what these are."""
    paths = os.pathsep.join(str(checkout / part) for part in ("src", "benchmarks"))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER, str(home), str(home / f"{name}.index"), "ivf", str(WANTED)]
    side = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert side.stdout is not None
    facts = json.loads(side.stdout.readline())
    print(name, facts, flush=True)
    return side, facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the checkout to compare with")
    parser.add_argument("--documents", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "large.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        made = synthetic.make(options.documents, WIDTH, QUERIES)
        arrays = {"documents": made.documents, "queries": made.queries, "others": made.others}
        arrays |= {"truth": nearest(made.documents, made.queries), "other": nearest(made.documents, made.others)}
        for name, array in arrays.items():
            np.save(home / f"{name}.npy", array)
        del made, arrays
        sides, facts = {}, {}
        for name, checkout in (("before", options.before), ("now", HERE.parent)):
            sides[name], facts[name] = started(checkout.resolve(), home, name)
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, side in sides.items():
                times[name].append(asked(side, BLOCK))
        for side in sides.values():
            side.kill()
    median = {name: statistics.median(taken) for name, taken in times.items()}
    result = {
        "command": "python benchmarks/large.py --before ../before",
        "documents": options.documents,
        "width": WIDTH,
        "wanted": WANTED,
        "before_commit": subprocess.check_output(["git", "-C", options.before, "rev-parse", "--short", "HEAD"], text=True).strip(),
        **{name: {**facts[name], "microseconds": round(median[name], 1)} for name in sides},
        "ratio": round(median["now"] / median["before"], 3),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
