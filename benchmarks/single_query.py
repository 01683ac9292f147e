"""Is a single query as fast as it was? The bundled collection on disk, this source against another one's, in turns.

    python benchmarks/single_query.py --source ../before/src            (writes results/single_query.json)
    python benchmarks/single_query.py --source ../before/src --index made.index --queries queries.npy --shortlist 100 --out FILE

Each side is a process of its own that searches the same index one vector at a time. Blocks of queries take turns, so that whatever
else the machine does falls on both. What counts is the ratio of the medians.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from adawidth import AdaWidth, bundled, load_dataset, open_index

HERE = Path(__file__).parent
ROUNDS, BLOCK = 40, 100
WORKER = """
import sys, time
import numpy as np
from adawidth import open_index
index, queries, shortlist = open_index(sys.argv[1]), np.load(sys.argv[2]), int(sys.argv[3])
for query in queries:
    index.search(query, shortlist=shortlist)
print("ready", flush=True)
place = 0
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        query, place = queries[place % len(queries)], place + 1
        begin = time.thread_time()
        index.search(query, shortlist=shortlist)
        times.append(time.thread_time() - begin)
    print(sorted(times)[len(times) // 2], flush=True)
"""


def worker(source: Path, index: Path, queries: Path, shortlist: int) -> subprocess.Popen[str]:
    """A process that searches with this source's AdaWidth."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER, str(index), str(queries), str(shortlist)]
    started = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    return started


def asked(side: subprocess.Popen[str], queries: int = BLOCK) -> float:
    """The median time of so many queries, in microseconds."""
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write(f"{queries}\n")
    side.stdin.flush()
    return 1e6 * float(side.stdout.readline())


def main() -> None:
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="src folder of the AdaWidth to compare with")
    parser.add_argument("--index", type=Path, help="index folder that both can open  [default: made by this one]")
    parser.add_argument("--queries", type=Path, help=".npy of queries for that index  [default: the bundled ones]")
    parser.add_argument("--shortlist", type=int, default=500)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "single_query.json")
    options = parser.parse_args()
    data = load_dataset(bundled.path())
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        np.save(home / "queries.npy", data.queries_of("test").all()[:200] if options.queries is None else np.load(options.queries)[:200])
        index = options.index or home / "index"
        if options.index is None:
            AdaWidth.fit(data, recipe="pca").index(data.documents, index).close()
        with open_index(index) as opened:
            documents, width = len(opened), opened.width
        sides = {
            "before": worker(options.source, index, home / "queries.npy", options.shortlist),
            "now": worker(HERE.parent / "src", index, home / "queries.npy", options.shortlist),
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(ROUNDS):
            for name, side in sides.items():
                times[name].append(asked(side))
        for side in sides.values():
            side.kill()
    median = {name: statistics.median(values) for name, values in times.items()}
    extra = f" --index made-before.index --queries queries.npy --shortlist {options.shortlist}" if options.index else ""
    result = {
        "command": f"python benchmarks/single_query.py --source ../before/src{extra}",
        "documents": documents,
        "width": width,
        "shortlist": options.shortlist,
        "microseconds": {name: round(value, 1) for name, value in median.items()},
        "ratio": round(median["now"] / median["before"], 3),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
