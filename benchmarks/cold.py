"""How long do the first queries take after an index is opened, with its files in memory and without?

    python benchmarks/cold.py                      (writes results/cold.json)
    python benchmarks/cold.py --former SRC         (another version too, of which this is the source folder, in turns)

A million synthetic documents of width 256 with pq4, queries one by one in new processes: the first, the median of the second to the
twentieth, and the median of the last 200 of 1,200. Medians of some processes, in milliseconds, on the clock and of the processor.
Cold: the page cache is told to drop the index's files before a process starts. Warm: the same process, once more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DOCUMENTS, WIDTH, QUERIES, PROCESSES = 1_000_000, 256, 1_200, 7
HERE = Path(__file__).parent
RESULTS = HERE / "results" / "cold.json"
BUILD = """
import sys
from pathlib import Path
import numpy as np
import synthetic
from adawidth import Vectors
from ours import fitted
documents, width, queries = map(int, sys.argv[2:])
vectors = synthetic.make(documents, width, queries)
fitted(vectors).index(Vectors(vectors.documents, [str(row) for row in range(documents)]), Path(sys.argv[1]) / "index", storage="pq4")
np.save(Path(sys.argv[1]) / "queries.npy", vectors.queries)
"""
PROGRAM = """
import json, sys, time
import numpy as np
queries = np.random.default_rng(int(sys.argv[2])).permutation(np.load(sys.argv[1] + "/queries.npy"))
now = lambda: (time.perf_counter(), time.process_time())
from adawidth import open_index
marks = [now()]
index = open_index(sys.argv[1] + "/index")
marks.append(now())
for query in queries:
    index.search(query, 10)
    marks.append(now())
opened, first, *rest = 1000 * np.diff(marks, axis=0)
print(json.dumps([opened.tolist(), first.tolist(), np.median(rest[:19], axis=0).tolist(), np.median(rest[-200:], axis=0).tolist()]))
"""


def run(source: Path, program: str, *options: object) -> str:
    """What a program printed, with the version in this source folder."""
    paths = {"PYTHONPATH": os.pathsep.join((str(source), str(HERE)))}
    command = [sys.executable, "-c", program, *map(str, options)]
    return subprocess.run(command, env={**os.environ, **paths}, stdout=subprocess.PIPE, text=True, check=True).stdout


def drop(folder: Path) -> None:
    """Takes the files of a folder out of the page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            handle = os.open(file, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--former", type=Path)
    former = parser.parse_args().former
    sources = {"now": HERE.parent / "src", **({"former": former.resolve()} if former else {})}
    found: dict[str, dict[str, list[list[list[float]]]]] = {name: {"cold": [], "warm": []} for name in sources}
    with tempfile.TemporaryDirectory() as name:
        for version, source in sources.items():
            (Path(name) / version).mkdir()
            run(source, BUILD, Path(name) / version, DOCUMENTS, WIDTH, QUERIES)
            run(source, PROGRAM, Path(name) / version, 0)  # compiles
        for turn in range(PROCESSES):
            for state in ("cold", "warm"):
                for version, source in sources.items():
                    if state == "cold":
                        drop(Path(name) / version / "index")
                    found[version][state].append(json.loads(run(source, PROGRAM, Path(name) / version, turn)))
    steps = ("open", "query_1", "queries_2_to_20", "steady")
    medians = {
        version: {
            clock: {state: dict(zip(steps, np.median(runs, axis=0)[:, i].round(2).tolist(), strict=True)) for state, runs in states.items()}
            for i, clock in enumerate(("milliseconds", "processor_milliseconds"))
        }
        for version, states in found.items()
    }
    facts = {
        "command": "python benchmarks/cold.py" + " --former SRC" * bool(former),
        "documents": DOCUMENTS,
        "width": WIDTH,
        "processes": PROCESSES,
    }
    text = json.dumps({**facts, **medians}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
