"""How fast are rows rotated, against numpy's own matrix product?

    python benchmarks/rotate.py                      (about a minute; writes results/rotate.json)

One million rows, 1,024 wide, in blocks of 100,000; the two alternate, so that a noisy machine slows both.
"""

import json
import time
from pathlib import Path

import numpy as np

from adawidth import Rotation

ROWS, WIDTH, BLOCK = 1_000_000, 1_024, 100_000


def main() -> None:
    rotation = Rotation.random(WIDTH)
    rows = np.random.default_rng(0).standard_normal((BLOCK, WIDTH), dtype=np.float32)
    seconds = {"rotation.apply": 0.0, "X @ R.T": 0.0}
    rotation.apply(rows[:1000])
    for _ in range(ROWS // BLOCK):
        for name, call in (("rotation.apply", lambda: rotation.apply(rows)), ("X @ R.T", lambda: rows @ rotation.matrix.T)):
            start = time.perf_counter()
            call()
            seconds[name] += time.perf_counter() - start
    result = {
        "command": "python benchmarks/rotate.py",
        "rows": ROWS,
        "width": WIDTH,
        "seconds": {name: round(value, 2) for name, value in seconds.items()},
        "ratio": round(seconds["rotation.apply"] / seconds["X @ R.T"], 3),
    }
    (Path(__file__).parent / "results" / "rotate.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
