"""How long does a new process wait for its first answer from an index on disk? With compiled code cached on disk, with that of a wheel, and
without.

    python benchmarks/first_query.py                 (writes results/first_query.json)
    python benchmarks/first_query.py --former SRC    (another version too, of which this is the source folder, in turns)

Seconds on the clock and of the processor, to import the package, to open the index, to answer a first query and a second one;
medians of some processes. Compiled code is kept in a folder of its own, as it is with a read-only install.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DOCUMENTS, WIDTH, PROCESSES = 100_000, 384, 5
HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results" / "first_query.json"
BUILD = """
import sys
from pathlib import Path
import numpy as np
import synthetic
from adawidth import Vectors
from ours import fitted
folder, documents, width = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
vectors = synthetic.make(documents, width, 1)
fitted(vectors).index(Vectors(vectors.documents, [str(row) for row in range(documents)]), folder / "index")
np.save(folder / "query.npy", vectors.queries[0])
"""
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


def run(source: Path, cache: Path, program: str, *options: object) -> str:
    """What a program printed, with the version in this source folder and compiled code kept here."""
    paths = f"{source}{os.pathsep}{source.parent / 'benchmarks'}"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": paths}
    command = [sys.executable, "-c", program, *map(str, options)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def compiled_ahead(folder: Path) -> Path:
    """The source as a wheel has it, with kernels that are compiled for levels of CPUs."""
    for name in ("src", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, folder / "tools" / "build_kernels.py"], stderr=subprocess.DEVNULL, check=True)
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--former", type=Path)
    former = parser.parse_args().former
    sources = {"now": ROOT / "src", **({"former": former.resolve()} if former else {})}
    states = ("never_compiled", "compiled_before")
    found: dict[str, dict[str, list[list[list[float]]]]] = {name: {state: [] for state in states} for name in sources}
    found["now"]["compiled_ahead"] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(list(sources.values())[-1], folder / "building", BUILD, folder, DOCUMENTS, WIDTH)  # by the oldest: a newer one opens it
        wheel = compiled_ahead(folder / "wheel")
        for turn in range(PROCESSES):
            answer = run(wheel, folder / f"ahead {turn}", PROGRAM, folder / "index", folder / "query.npy")
            found["now"]["compiled_ahead"].append(json.loads(answer))
            for version, source in sources.items():
                for state in states:
                    answer = run(source, folder / f"{version} {turn}", PROGRAM, folder / "index", folder / "query.npy")
                    found[version][state].append(json.loads(answer))
    steps = ("import", "open", "first_query", "second_query")
    medians = {
        version: {
            clock: {state: dict(zip(steps, np.median(runs, axis=0)[i].round(4).tolist(), strict=True)) for state, runs in measured.items()}
            for i, clock in enumerate(("seconds", "processor_seconds"))
        }
        for version, measured in found.items()
    }
    command = "python benchmarks/first_query.py" + " --former SRC" * bool(former)
    text = json.dumps({"command": command, "documents": DOCUMENTS, "width": WIDTH, **medians}, indent=1)
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
