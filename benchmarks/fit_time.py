"""Is a fit as fast as it was? `auto` on one collection, this source against another one's, in turns, one thread, processor time.

    OMP_NUM_THREADS=1 python benchmarks/fit_time.py ../shared/datasets/medquad --encoder minilm --source ../before/src
                                                                                         (writes results/fit_time.json)

Each fit is a process of its own. Ready models are not compared here: test nDCG@10 at 64 coordinates stands beside the times, so that
speed is not bought with quality.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "fit_time.json"
WORKER = """
import json, sys, time
import numpy as np
from adawidth import AdaWidth, load_dataset
data = load_dataset(sys.argv[1], encoder=sys.argv[2])
began = time.process_time()
model = AdaWidth.fit(data)
seconds = time.process_time() - began
queries, documents = data.queries_of("test"), data.documents
held, asked = ((x := model.rotation.apply(part.all())[:, :64]) / np.linalg.norm(x, axis=1, keepdims=True) for part in (documents, queries))
best = np.argsort(-(asked @ held.T), axis=1, kind="stable")[:, :10]
gains = []
for query, rows in zip(queries.ids, best):
    wanted = data.qrels["test"].grades[query]
    found = [wanted.get(documents.ids[row], 0.0) for row in rows]
    ideal = sorted(wanted.values(), reverse=True)[:10]
    gains.append(sum(g / np.log2(i + 2) for i, g in enumerate(found)) / sum(g / np.log2(i + 2) for i, g in enumerate(ideal)))
print(json.dumps([seconds, float(np.mean(gains))]))
"""


def fitted(source: Path, dataset: Path, encoder: str) -> tuple[float, float]:
    """Processor seconds of a fit with this source's AdaWidth, and test nDCG@10 at 64."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER, str(dataset), encoder]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    seconds, quality = json.loads(done.stdout.splitlines()[-1])
    return seconds, quality


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--source", type=Path, required=True, help="src folder of the AdaWidth to compare with")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    sides = {"before": options.source, "now": HERE.parent / "src"}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(options.turns):
        for name, source in sides.items():
            found[name].append(fitted(source, options.dataset, options.encoder))
            print(name, found[name][-1], flush=True)
    median = {name: statistics.median(seconds for seconds, _ in fits) for name, fits in found.items()}
    result = {
        "command": f"OMP_NUM_THREADS=1 python benchmarks/fit_time.py {options.dataset} --encoder {options.encoder} --source ../before/src",
        "processor_seconds": {name: [round(seconds, 1) for seconds, _ in fits] for name, fits in found.items()},
        "nDCG@10 at 64": {name: round(fits[0][1], 4) for name, fits in found.items()},
        "ratio": round(median["now"] / median["before"], 3),
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
