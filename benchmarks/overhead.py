"""Where does the time of a single query go? An index folder over real vectors, one thread.

    python benchmarks/overhead.py ../shared/datasets [--encoder minilm] [--shortlist 80]          (writes results/overhead.json)

Rotation, scan and rescoring are timed alone, on the queries that whole searches are timed on; what is left of a search is Python: the
options are checked, the policy is looked up, and the answer is made. Medians, in microseconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from adawidth import open_index
from adawidth.index.view import View
from adawidth.model.index import _chosen
from adawidth.rotation import Rotated
from real import CHOOSING, K, built, collection

RESULTS = Path(__file__).parent / "results" / "overhead.json"
TURNS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--shortlist", type=int, default=80)
    options = parser.parse_args()
    rows, held = collection(options.encoder, [options.folder])
    asked = [held[i : i + 1] for i in range(CHOOSING, len(held))]
    with tempfile.TemporaryDirectory() as folder:
        built(rows, held[:CHOOSING], Path(folder) / "index", "pq4")
        index = open_index(Path(folder) / "index")
        view, rotation = index.store.view, index.model.rotation
        assert isinstance(view, View)
        policy = _chosen(index.model.policies, None, None, None, view.width, None, K, 0, view.start)
        view.segments[0].check()  # else those would be timed that no query has read yet
        codes, width = view.segments[0].codes, view._coded_width
        narrow = [Rotated(query, rotation).upto(width)[:, :width] for query in asked]
        found = [codes.search(query, options.shortlist) for query in narrow]

        def rescored(i: int) -> Callable[[], object]:
            query = Rotated(asked[i], rotation)
            ready = view._rescorer.asked(query, width)
            return lambda: view._rescorer.answer(query, found[i], policy, K, ready)

        parts: dict[str, Callable[[int], Callable[[], object]]] = {
            "search": lambda i: lambda: index.search(asked[i], K, shortlist=options.shortlist, width="full"),
            "rotation": lambda i: lambda: view._rescorer.asked(Rotated(asked[i], rotation), width),
            "scan": lambda i: lambda: codes.search(narrow[i], options.shortlist),
            "rescoring": rescored,
        }
        times: dict[str, list[float]] = {name: [] for name in parts}
        for turn in range(TURNS):
            for name, make in parts.items():
                for i in range(turn, len(asked), TURNS):
                    call = make(i)
                    began = time.perf_counter()
                    call()
                    times[name].append(1e6 * (time.perf_counter() - began))
        index.close()
    medians = {name: round(float(np.median(taken)), 1) for name, taken in times.items()}
    python = medians["search"] - sum(value for name, value in medians.items() if name != "search")
    result = {
        "command": "python benchmarks/overhead.py ../shared/datasets",
        "documents": len(rows),
        "width": rows.shape[1],
        "shortlist": options.shortlist,
        "microseconds": {**medians, "python": round(python, 1)},
    }
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
