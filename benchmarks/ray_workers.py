"""One worker of Ray against two: rotating Parquet, shard by shard, in turns.

    TMPDIR=/dev/shm python benchmarks/ray_workers.py [--rows 1000000] [--width 1024]

Every run reads, rotates to full width and writes all rows, in forty shards: with eight, a worker that is done first waits for the other
for up to an eighth of the time. What two gain is bounded by the machine: all that they and Ray's own processes work, spread over its
cores without a gap, against the time of one, to whom Ray's processes cost nothing as they have the other core. Other work takes the cores
from both. 1,000,000 rows of 1,024 take 8 GB, here of memory, so that no disk is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from adawidth import AdaWidth
from adawidth.batch import Rotate, shards_of
from adawidth.batch.parts import write_parts

RESULTS = Path(__file__).parent / "results" / "ray_workers.json"
SHARDS = 40


def written(folder: Path, rows: int, width: int) -> Path:
    """Random vectors in Parquet files, one for each shard."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(0)
    folder.mkdir()
    count = rows // SHARDS
    for number in range(SHARDS):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(count * width, np.float32)), width)
        ids = pa.array([str(row) for row in range(number * count, (number + 1) * count)])
        table = pa.table({"id": ids, "vector": vectors})
        parquet.write_table(table, folder / f"{number}.parquet", row_group_size=count, compression="none")
    return folder


def spent() -> float:
    """Seconds that this process and those that it started, Ray's and the workers, have worked."""
    ticks: dict[int, int] = {}
    above: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it may have ended since
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                above[int(entry.name)], ticks[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    own, found = {os.getpid()}, set[int]()
    while own:
        found |= own
        own = {process for process, parent in above.items() if parent in own}
    return sum(ticks[process] for process in found) / os.sysconf("SC_CLK_TCK")


def run(model: AdaWidth, source: Path, rows: int, out: Path, workers: int) -> tuple[float, float]:
    """Seconds, with Ray up and its workers warm, and how many cores it kept busy."""
    import ray

    ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        warm = ray.remote(lambda: __import__("adawidth.batch"))
        ray.get([warm.remote() for _ in range(2 * workers)])
        began, before = time.perf_counter(), spent()
        write_parts(Rotate(model), shards_of(str(source), rows // SHARDS), str(out), on="local")
        taken = time.perf_counter() - began
        return taken, (spent() - before) / taken
    finally:
        ray.shutdown()
        shutil.rmtree(out, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=1_024)
    parser.add_argument("--turns", type=int, default=1)
    arguments = parser.parse_args()
    sample = np.random.default_rng(1).standard_normal((300, arguments.width)).astype(np.float32)
    model = AdaWidth.fit(sample, recipe="pca")
    runs: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory() as folder:
        source = written(Path(folder) / "in", arguments.rows, arguments.width)
        for _ in range(arguments.turns):
            for workers, found in runs.items():
                found.append(run(model, source, arguments.rows, Path(folder) / "out", workers))
                print(workers, found[-1], flush=True)
    best = {workers: min(taken for taken, _ in found) for workers, found in runs.items()}
    cores = len(os.sched_getaffinity(0))
    worked = {workers: min(taken * cores for taken, cores in found) for workers, found in runs.items()}
    entry: dict[str, Any] = {
        "rows": arguments.rows,
        "width": arguments.width,
        "cores": cores,
        "load_average": round(os.getloadavg()[0], 1),
        "seconds": {workers: [round(taken, 2) for taken, _ in found] for workers, found in runs.items()},
        "busy_cores": {workers: [round(cores_, 2) for _, cores_ in found] for workers, found in runs.items()},
        "microseconds_per_row": {workers: round(1e6 * taken / arguments.rows, 2) for workers, taken in best.items()},
        "processor_seconds": {workers: round(seconds, 2) for workers, seconds in worked.items()},
        "speedup": round(best[1] / best[2], 2),
        "bound": round(min(2.0, cores * best[1] / worked[2]), 2),
    }
    RESULTS.write_text(json.dumps(entry, indent=1) + "\n")
    print(json.dumps(entry, indent=1))


if __name__ == "__main__":
    main()
