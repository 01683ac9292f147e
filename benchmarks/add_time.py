"""How much faster are durable adds and building lists than they were? This source against another one's, in turns, processor time.

    python benchmarks/add_time.py --source ../before/src                      (writes results/add_time.json)

The vectors and documents of index_add.py in one commit, with storage `pq4` and `ivf`. Each side adds them as the index_add.py of its own
checkout does; the documents are made before. Then building the lists of `ivf` alone, over the prefixes of the same vectors. Every figure
is of a process of its own with one thread, which has added or built something small before.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from adawidth.data import unit
from index_add import ROTATION, WIDTH, vectors

HERE = Path(__file__).parent
CODED = 128  # coordinates that the codes of such an index cover, at two bits each
STORAGES = ("pq4", "ivf")
FEW = 3_000  # added, or built lists of, before
WORKER = """
import sys, time
from pathlib import Path
import numpy as np
what, file, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
values = np.load(file, mmap_mode="r")
if what == "lists":
    import faiss
    from adawidth.index import codes
    faiss.omp_set_num_threads(1)
    def work(rows, name):
        codes.build(rows, "ivf", 0, 2)
else:
    import gc, index_add
    from dataclasses import replace
    def ready(rows):
        source = index_add.source(rows)
        batches = list(source.batches())
        gc.freeze()
        return replace(source, batches=lambda: iter(batches))
    def work(source, name):
        index_add.empty(folder / name, what).write(source)
few, all = (values[:FEW], values) if what == "lists" else (ready(values[:FEW]), ready(values))
work(few, "few")
began = time.process_time()
work(all, "all")
print(time.process_time() - began)
""".replace("FEW", str(FEW))


def seconds(source: Path, what: str, file: Path) -> float:
    """Processor seconds of this source's AdaWidth."""
    paths = f"{source.resolve()}{os.pathsep}{source.resolve().parent / 'benchmarks'}"
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        command = [sys.executable, "-c", WORKER, what, str(file), folder]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def prefixes(values: np.ndarray, file: Path) -> None:
    """The blocks of which lists are built, as a file."""
    block = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(len(values), CODED))
    for start in range(0, len(values), 16_384):
        rotated = ROTATION.apply(np.asarray(values[start : start + 16_384]), CODED)
        block[start : start + 16_384] = unit(rotated.astype(np.float16))
    block.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="src folder of a checkout of the AdaWidth to compare with")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "add_time.json")
    options = parser.parse_args()
    sides = {"before": options.source, "now": HERE.parent / "src"}
    taken: dict[str, dict[str, list[float]]] = {what: {name: [] for name in sides} for what in (*STORAGES, "lists")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prefixes(vectors(folder, options.documents), folder / "prefixes.npy")
        for _ in range(options.turns):
            for what, times in taken.items():
                for side, source in sides.items():
                    times[side].append(seconds(source, what, folder / ("prefixes.npy" if what == "lists" else "corpus.npy")))
                    print(what, side, round(times[side][-1], 2), flush=True)
    commit = subprocess.run(
        ["git", "-C", options.source, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout
    median = {what: {side: statistics.median(times[side]) for side in sides} for what, times in taken.items()}
    added = {
        what: {
            "rows_per_processor_second": {side: round(options.documents / median[what][side]) for side in sides},
            "times_the_rate": round(median[what]["before"] / median[what]["now"], 2),
        }
        for what in STORAGES
    }
    result = {
        "command": "python benchmarks/add_time.py --source ../before/src",
        "before": commit.strip(),
        "documents": options.documents,
        "width": WIDTH,
        "adds": added,
        "lists": {"share_of_the_time": round(median["lists"]["now"] / median["lists"]["before"], 2)},
        "processor_seconds": {what: {side: [round(t, 2) for t in times[side]] for side in sides} for what, times in taken.items()},
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
