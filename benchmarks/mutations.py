"""Does a damaged or crafted file ever crash, hang, exhaust memory or answer wrongly?

    python benchmarks/mutations.py                 (writes results/mutations.json)
    python benchmarks/mutations.py --minutes 10    (as much as that gives; the next run goes on from there)

10,000 copies of index folders, model folders and input files, each damaged in one way, and all crafted ones: see tests/faults/mutations.py.
Each must be refused with an AdaWidthError or answer rightly (well-formed, where contents were changed and every checksum made right),
within 10 s of CPU time and 1 GB beyond what the process has (tests/faults/watched.py).
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from kept import Kept, summed

TESTS = Path(__file__).parents[1] / "tests"
sys.path[0] = str(TESTS)  # whose `faults` is meant

from faults import mutations  # noqa: E402
from faults.crafted import CRAFTED  # noqa: E402
from faults.watched import Case, watched  # noqa: E402

WORDS = ("right", "answered", "refused")
BATCH = 500


def run(cases: list[Case], home: Path) -> dict[str, Any]:
    """Counts outcomes by kind, and keeps what was none of those allowed."""
    counts: dict[str, Counter[str]] = {}
    problems: list[dict[str, Any]] = []
    for case, said in watched(Path(mutations.__file__), [home], cases):
        word = next((word for word in WORDS if said.startswith(word)), "problem")
        counts.setdefault(case.get("kind", "crafted"), Counter())[word] += 1
        if word == "problem":
            problems.append({**case, "said": said})
    return {"cases": len(cases), "outcomes": counts, "problems": problems}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--crafted", type=int, default=len(CRAFTED))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "mutations.json")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    cases = list(mutations.cases(options.mutations, options.seed))
    cases += [{"crafted": name} for name in list(CRAFTED)[: options.crafted]]
    random.Random(options.seed).shuffle(cases)  # so that some of them are some of every kind
    command = f"python benchmarks/mutations.py --seed {options.seed}"
    about = {"command": command, "seed": options.seed, "mutations": options.mutations, "crafted": options.crafted}
    kept = Kept(options.out, about, Path(__file__).name)
    with tempfile.TemporaryDirectory() as home:
        mutations.prepare(Path(home))
        for first in range(BATCH * len(kept.parts), len(cases), BATCH):
            if time.monotonic() > end:
                break
            kept.add(run(cases[first : first + BATCH], Path(home)))
            found = summed(kept.parts)
            found["outcomes"] = {kind: dict(sorted(counts.items())) for kind, counts in sorted(found["outcomes"].items())}
            total = summed(list(found["outcomes"].values()))
            report = {**about, "all_cases": len(cases), "all": total, **found}
            options.out.write_text(json.dumps(report, indent=1) + "\n")
            print(f"{found['cases']} of {len(cases)} cases, {len(found['problems'])} problems", file=sys.stderr)
        else:
            kept.end()
    raise SystemExit(1 if any(part["problems"] for part in kept.parts) else 0)


if __name__ == "__main__":
    main()
