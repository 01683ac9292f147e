"""What do busy neighbours cost? CPU seconds of a small comparison on a quiet machine, and with two busy processes a core beside it.

    python benchmarks/busy.py --source ../adawidth-0.1.0/src            (writes results/busy.json)

The comparison fits and ranks with NumPy, faiss and torch, on a cut of the bundled vectors. CPU seconds, not wall time: what the
neighbours take is not counted, what spinning threads take is. `--source` adds another version of the code for contrast.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

METHODS = ("pca", "kyfan", "pq4", "matryoshka-adaptor")
QUERIES = {"train": 40, "dev": 40, "test": 200}
NEIGHBOURS = 2  # a core
LIMIT = 150  # seconds that a run may take
HERE = Path(__file__).parent
SPIN = "while True: pass"
WORK = f"""
from dataclasses import replace
from adawidth import bundled, compare, load_dataset
from adawidth.data import Qrels
data = load_dataset(bundled.path())
few = {{split: Qrels(dict(list(data.qrels[split].grades.items())[:count]), split) for split, count in {QUERIES!r}.items()}}
compare(replace(data, qrels=few), methods={METHODS!r}, widths=(32,))
"""


def cpu_seconds(source: Path, **environment: str) -> dict[str, float | bool]:
    """User and system time of one comparison, all its threads together; cut off where it takes too long."""
    free = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "OPENBLAS_", "GOMP_", "KMP_"))}
    worker = subprocess.Popen([sys.executable, "-c", WORK], env=free | {"PYTHONPATH": str(source)} | environment, stderr=subprocess.DEVNULL)
    timer = threading.Timer(LIMIT, worker.kill)
    timer.start()
    _, status, used = os.wait4(worker.pid, 0)
    timer.cancel()
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"{source}: the comparison failed")
    return {"seconds": round(used.ru_utime + used.ru_stime, 1), "finished": os.WIFEXITED(status)}


def beside_neighbours(source: Path) -> dict[str, float | bool]:
    """The same with busy neighbours."""
    neighbours = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(NEIGHBOURS * (os.cpu_count() or 1))]
    try:
        return cpu_seconds(source)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


def measured(source: Path) -> dict[str, object]:
    """Quiet, busy, and how many times as much."""
    cpu_seconds(source, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # compiles
    load = round(os.getloadavg()[0], 1)
    quiet, busy = cpu_seconds(source), beside_neighbours(source)
    ratio = round(busy["seconds"] / quiet["seconds"], 2) if quiet["finished"] and busy["finished"] else None
    return {"load_before": load, "quiet": quiet, "busy": busy, "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, help="folder of another version's package, for contrast")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "busy.json")
    given = parser.parse_args()
    command = "python benchmarks/busy.py --source ../adawidth-0.1.0/src"
    found: dict[str, object] = {"command": command, "cores": os.cpu_count(), "neighbours_per_core": NEIGHBOURS, "limit_seconds": LIMIT}
    found["now"] = measured(HERE.parent / "src")
    if given.source:
        found["before"] = measured(given.source)
    elif given.out.exists():
        found["before"] = json.loads(given.out.read_text()).get("before")
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
